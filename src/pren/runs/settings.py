"""What a person says about a run, and the rules that make a configuration of it.

The command line and `pren.fit` both fill in `Settings`; what goes together, and what does not, is decided here alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from pren.data import DATASETS
from pren.foundation.errors import PrenError, suggest
from pren.images.backbones import find_backbone, split_names
from pren.images.extraction import Extractor
from pren.images.preprocessing import Geometry
from pren.images.side_by_side import single_extractors
from pren.methods.registry import METHODS, trains_backbone
from pren.problem import Setting
from pren.runs.config import RunConfig, parse_config, read_yaml
from pren.runs.opening import check_trains_backbone

log = logging.getLogger(__name__)

AUTO = "auto"  # the method with the best forecast
Given = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a run; None where nothing is said.

    Attributes:
        data: A registered name, or the path of a file or a folder.
        root: The folder of a data set that is not embedded.
        split: Which of its splits.
        setting: "zsl" or "gzsl".
        features_file: A features file of a benchmark: a name in its folder, or a path.
        signatures: What describes the classes, where the data have several descriptions: "attributes,sentences".
        encoder: The text encoder for descriptions in words.
        hold_out: In GZSL, the share of labelled inputs that goes to the pool, to evaluate with.
        options: More options of the data set, by name.
        method: A registered name, or "auto".
        params: Parameters of the method, by name.
        seed: The same seed gives the same model, with as many threads.
        backbone: The network that photographs go through; several frozen ones are ``a+b``.
        weights: A file with its weights, or "random".
        geometry: "whole" squeezes the whole photograph, "timm" crops.
        mirrored: Whether features are the mean of those of a photograph and of its mirror image.
        frozen: Whether the backbone stays as it is, also where the method could train it.
        train_from: The stage from which on the backbone is trained.
        finetune: Whether the backbone learns the seen classes first.
        finetune_strength: How far it goes, from 0 to 1.
        finetune_epochs: Passes over the labelled photographs.
        finetune_targets: What it learns to tell: "classes", "signatures" or "both".
        cache: Where features are kept.
        rehearsals: How often the method is tried on held-out classes.
        min_accuracy: Labels that are less sure than this share of right ones asks for are left empty.
    """

    data: str | Path | None = None
    root: str | Path | None = None
    split: str | None = None
    setting: Setting | None = None
    features_file: str | None = None
    signatures: str | None = None
    encoder: str | None = None
    hold_out: float | None = None
    options: Given = field(default_factory=dict)
    method: str | None = None
    params: Given = field(default_factory=dict)
    seed: int | None = None
    backbone: str | None = None
    weights: str | Path | None = None
    geometry: Geometry | None = None
    mirrored: bool = False
    frozen: bool = False
    train_from: str | None = None
    finetune: bool = False
    finetune_strength: float | None = None
    finetune_epochs: int | None = None
    finetune_targets: Literal["classes", "signatures", "both"] | None = None
    cache: str | Path | None = None
    rehearsals: int | None = None
    min_accuracy: float | None = None

    @classmethod
    def of(cls, given: Given) -> Settings:
        """Settings by name; what is none of them is a parameter of the method."""
        known = {each.name for each in fields(cls)}
        own = {name: value for name, value in given.items() if name in known}
        params = {name: value for name, value in given.items() if name not in known}
        if params and own.get("method") == AUTO:
            name = next(iter(params))
            raise PrenError("unknown-name", f"There is no setting {name!r}. {suggest(name, known)}")
        return cls(**{**own, "params": {**own.get("params", {}), **params}})

    def config(self, base: RunConfig | None = None, file: Path | None = None) -> RunConfig:
        """The configuration of one method, without its backbone (see `with_backbone`).

        Args:
            base: The configuration of an earlier run to start from.
            file: A YAML file with a configuration; what is said here wins.

        Raises:
            PrenError: If data or method are unknown, or a setting has no use.
        """
        content = {} if base is None else base.model_dump()
        content |= {} if file is None else read_yaml(file)
        said = {
            "data": self.data,
            "root": self.root,
            "split": self.split,
            "setting": self.setting,
            "method": self.method,
            "cache": self.cache,
            "rehearsals": self.rehearsals,
            "min_accuracy": self.min_accuracy,
        }
        content |= {
            name: str(value) if isinstance(value, Path) else value for name, value in said.items() if value is not None
        }
        if "data" not in content:
            raise PrenError(
                "data-missing", "Name the data: a registered name ('pren list datasets'), a .npz file or a folder."
            )
        for group, new in (("options", self.data_options()), ("params", dict(self.params))):
            old = {} if content.get(group) is None else content[group]
            if isinstance(old, dict):  # else `parse_config` says that it is not
                content[group] = {**old, **new}
        content.pop("record", None)
        config = parse_config(content, "This call" if file is None else str(file))
        return config if config.method == AUTO else self._seeded(config)

    def data_options(self) -> dict[str, Any]:
        """The options that the data set alone understands."""
        own = {
            "features": self.features_file,
            "signatures": self.signatures,
            "encoder": self.encoder,
            "hold_out": self.hold_out,
        }
        return {**self.options, **{name: value for name, value in own.items() if value is not None}}

    def with_backbone(self, config: RunConfig, methods: Sequence[str] = ()) -> RunConfig:
        """A configuration, for its method or for several, with the backbone as its extractor or its parameters.

        Raises:
            PrenError: If there is no such backbone, the data are not photographs, or a method has no use for it.
        """
        names, said = methods or [config.method], self._backbone()
        trained, tuned = self.train_from is not None, self.finetune or bool(self._finetuning())
        frozen = self.frozen or self.mirrored
        for other, asked in (("train_from", trained), ("finetune", self.finetune)):
            if self.frozen and asked:
                flag = other.replace("_", "-")
                raise PrenError(
                    "option-conflict", f"--frozen trains no part of the backbone, --{flag} does: choose one."
                )
        update: dict[str, Any] = {}
        if said or frozen or tuned or trained:
            if self.backbone is not None:
                list(map(find_backbone, split_names(self.backbone)))  # before any data are read
            if wants_images(config.data, config.options):
                update["options"] = {**config.options, "images": True}
            if trained and not self.finetune:
                check_trains_backbone(names)
                update["extractor"] = self.extractor()
                update["params"] = {**config.params, **{k: v for k, v in said.items() if k == "weights"}}
            elif frozen or tuned or config.extractor is not None:
                keep = config.extractor if self.backbone is None else None
                update["extractor"] = self.extractor({} if keep is None else keep.model_dump())
            elif any(map(trains_backbone, names)):
                check_trains_backbone(names)  # all of them: a mixture has to say what is meant
                if self.backbone is not None:
                    find_backbone(self.backbone)  # one, not several
                update["params"] = {**config.params, **said}
        config = config.model_copy(update=update).with_features(names, said)
        if config.extractor is not None:
            single_extractors(config.extractor)  # what several backbones cannot do
        return config

    def extractor(self, known: Given | None = None) -> Extractor:
        """What makes features, with what is said here in place of what is known of it."""
        said: dict[str, Any] = {**(known or {}), **self._backbone()}
        if self.train_from is not None:
            said["until"] = self.train_from
        if self.mirrored:
            said["mirrored"] = True
        how = self._finetuning()
        if how and not self.finetune and said.get("finetune") is None:
            raise PrenError("option-conflict", f"--finetune-{next(iter(how))} is for --finetune: add that, too.")
        if self.finetune or how:
            said["finetune"] = {**(said.get("finetune") or {}), **how}
        try:
            return Extractor.model_validate(said)
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise PrenError("backbone-settings", f"The settings of the backbone do not go together: {why}.") from error

    def _backbone(self) -> dict[str, str]:
        """What is said about the backbone, by the names of `Extractor` and of PrEN's parameters."""
        said = {"backbone": self.backbone, "weights": self.weights, "geometry": self.geometry}
        return {name: str(value) for name, value in said.items() if value is not None}

    def _finetuning(self) -> dict[str, Any]:
        """What is said about fine-tuning, by the names of `Finetuning`."""
        said = {
            "strength": self.finetune_strength,
            "epochs": self.finetune_epochs,
            "targets": self.finetune_targets,
        }
        return {name: value for name, value in said.items() if value is not None}

    def _seeded(self, config: RunConfig) -> RunConfig:
        if self.seed is None:
            return config
        entry = METHODS[config.method]
        if "seed" not in entry.method.params:
            log.info("%s has no randomness: the seed is ignored.", entry.title)
            return config
        return config.model_copy(update={"params": {**config.params, "seed": self.seed}})


def wants_images(data: str | None, options: Given) -> bool:
    """Whether a data set that also comes as features must be told that photographs are meant."""
    benchmark = data is not None and data in DATASETS and DATASETS[data].needs_root
    if benchmark and "features" in options:
        raise PrenError(
            "option-conflict", "--backbone and --frozen are for photographs, --features-file for features: choose one."
        )
    return benchmark and "images" not in options
