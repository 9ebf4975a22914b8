"""The settings of a user, and the rules that turn them into a configuration.

The command line and `pren.fit` both use `Settings`; conflicts between settings are found here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from pren.data import DATASETS
from pren.data.registry import is_path
from pren.foundation.errors import PrenError, suggest
from pren.images.backbones import find_backbone, split_names
from pren.images.engines import EngineName
from pren.images.extraction import Extractor
from pren.images.preprocessing import Geometry
from pren.images.quality import Quality, choose, with_usual
from pren.images.side_by_side import single_extractors
from pren.images.weights import RANDOM
from pren.methods.registry import METHODS, trains_backbone
from pren.problem import Setting
from pren.runs.opening import check_trains_backbone
from pren.store.config import RunConfig, parse_config, read_yaml

log = logging.getLogger(__name__)

AUTO = "auto"  # the method with the best forecast; the setting that the pool asks for
FROZEN = ("engine", "size", "alike")  # settings of frozen backbones only
Given = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a run; None for the default.

    Attributes:
        data: A registered name, or the path of a file or a folder.
        root: The folder of a data set that is not embedded.
        split: The split of the data set.
        setting: "zsl" or "gzsl", or "auto" to find out; that is the default for a folder of photographs.
        features_file: A features file of a benchmark: a name in its folder, or a path.
        signatures: Which descriptions of the classes to use, such as "attributes,sentences".
        encoder: The text encoder for descriptions in words.
        hold_out: In GZSL, the share of labelled inputs to move to the pool, for evaluation.
        options: More options of the data set, by name.
        method: A registered name, or "auto".
        params: Parameters of the method, by name.
        seed: The same seed and threads give the same model.
        backbone: The network for photographs; several frozen ones are ``a+b``.
        weights: A file with its weights, or "random".
        geometry: "whole" resizes the whole photograph, "timm" crops.
        mirrored: Whether to average features over a photograph and its mirror image.
        quality: How much time to spend on backbones: "fast", "good" or "best".
        size: The side of a frozen backbone's images in pixels; None for the usual one.
        engine: What runs a frozen backbone: "torch", "openvino" or "openvino-bfloat16"; None for OpenVINO on CPUs if
            it is installed, in float32, and else torch.
        alike: Whether labelled photographs are made to look like the pool's, where that helps; None for a folder only.
        frozen: Whether not to train the backbone, also if the method can.
        train_from: The first stage to train.
        finetune: Whether to train the backbone on the seen classes first.
        finetune_strength: How far fine-tuning goes, from 0 to 1.
        finetune_epochs: Passes over the labelled photographs.
        finetune_targets: What it learns: "classes", "signatures" or "both".
        cache: Where features are kept.
        rehearsals: How many tests on held-out classes.
        min_accuracy: Leave doubtful inputs without a label, so that this share of the labels is right.
    """

    data: str | Path | None = None
    root: str | Path | None = None
    split: str | None = None
    setting: Setting | Literal["auto"] | None = None
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
    quality: Quality | None = None
    size: int | None = None
    engine: EngineName | None = None
    alike: bool | None = None
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
        """Settings by name; other names are parameters of the method."""
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
            file: A YAML file with a configuration; settings override it.

        Raises:
            PrenError: If the data or the method is unknown, or a setting has no effect.
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
            raise PrenError("data-missing", "Name the data: a folder, a .npz file or a name of 'pren list datasets'.")
        for group, new in (("options", self.data_options()), ("params", dict(self.params))):
            old = {} if content.get(group) is None else content[group]
            if isinstance(old, dict):  # else `parse_config` refuses it
                content[group] = {**old, **new}
        content.pop("record", None)
        config = parse_config(content, "This call" if file is None else str(file))
        return config if config.method == AUTO else self._seeded(config)

    def data_options(self) -> dict[str, Any]:
        """The options of the data set."""
        own = {
            "features": self.features_file,
            "signatures": self.signatures,
            "encoder": self.encoder,
            "hold_out": self.hold_out,
        }
        return {**self.options, **{name: value for name, value in own.items() if value is not None}}

    def finding(self, base: RunConfig | None = None, file: Path | None = None) -> RunConfig:
        """`config` for one run, which finds out its setting if that is asked for, or is the default of its data.

        That is the default for a folder of photographs, unless an earlier run or a file says which setting it is.
        """
        auto = self.setting == AUTO
        config = replace(self, setting=None if auto else self.setting).config(base, file)
        begun = base is not None or file is not None
        folder = not begun and Path(config.data).is_dir() and "hold_out" not in config.options
        if auto or (self.setting is None and folder):
            return config.model_copy(update={"setting": "gzsl", "find_setting": True})
        return config

    def with_backbone(self, config: RunConfig, methods: Sequence[str] = ()) -> RunConfig:
        """A configuration with the backbone as its extractor or in its parameters, for its method or for several.

        Raises:
            PrenError: If the backbone is unknown, the data are not photographs, or a method cannot use it.
        """
        names, said = methods or [config.method], self._backbone()
        trained, tuned = self.train_from is not None, self.finetune or bool(self._finetuning())
        frozen = self.frozen or self.mirrored or self.quality is not None
        for other, asked in (("train_from", trained), ("finetune", self.finetune)):
            if self.frozen and asked:
                flag = other.replace("_", "-")
                raise PrenError("option-conflict", f"--frozen does not train the backbone, --{flag} does: choose one.")
        update: dict[str, Any] = {}
        if said or frozen or tuned or trained:
            if self.backbone is not None:
                list(map(find_backbone, split_names(self.backbone)))  # fails before the data are read
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
                check_trains_backbone(names)  # a mixture needs --frozen or --train-from
                if self.backbone is not None:
                    find_backbone(self.backbone)  # refuses several
                update["params"] = {**config.params, **said}
        config = config.model_copy(update=update).with_features(names, said)
        own = [name for name in FROZEN if getattr(self, name) is not None]
        for name in own:
            if config.extractor is None:
                message = f"--{name} is for a frozen backbone, and there is none: leave it out, or add --frozen."
                raise PrenError("option-conflict", message)
        if config.extractor is not None and own:
            config = config.model_copy(update={"extractor": self.extractor(config.extractor.model_dump())})
        if config.extractor is not None:
            single_extractors(config.extractor)  # refuses what several backbones cannot do
        return config

    def extractor(self, known: Given | None = None) -> Extractor:
        """The extractor of features: these settings over those that are known."""
        said: dict[str, Any] = {**(known or {}), **self._backbone()}
        if self.quality is not None:
            said |= self._of_quality(self.quality)
        if self.train_from is not None:
            said["until"] = self.train_from
        if self.mirrored:
            said["mirrored"] = True
        said |= {name: value for name in FROZEN if (value := getattr(self, name)) is not None}
        how = self._finetuning()
        if how and not self.finetune and said.get("finetune") is None:
            raise PrenError("option-conflict", f"--finetune-{next(iter(how))} needs --finetune: add it.")
        if self.finetune or how:
            said["finetune"] = {**(said.get("finetune") or {}), **how}
        said = with_usual(said, own=self.data is not None and is_path(self.data))
        try:
            return Extractor.model_validate(said)
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise PrenError("backbone-settings", f"The settings of the backbone are in conflict: {why}.") from error

    def _of_quality(self, quality: Quality) -> dict[str, Any]:
        """The settings of the backbones of a quality."""
        if self.backbone is not None or self.finetune or self.train_from is not None:
            other = "--backbone" if self.backbone is not None else "training one"
            raise PrenError("option-conflict", f"--quality chooses frozen backbones: leave it out, or {other}.")
        weights = None if self.weights is None else str(self.weights)
        if weights not in (None, RANDOM) and not Path(weights).is_dir():
            raise PrenError("option-conflict", "With --quality, --weights names a folder of files: name one.")
        chosen = choose(quality, weights)
        log.info(
            "--quality %s takes %s%s.", quality, chosen.backbone, ", with mirror images" if chosen.mirrored else ""
        )
        return {"backbone": chosen.backbone, "mirrored": chosen.mirrored or self.mirrored}

    def _backbone(self) -> dict[str, str]:
        """Settings of the backbone, by the names of `Extractor` and of PrEN's parameters."""
        said = {"backbone": self.backbone, "weights": self.weights, "geometry": self.geometry}
        return {name: str(value) for name, value in said.items() if value is not None}

    def _finetuning(self) -> dict[str, Any]:
        """Settings of fine-tuning, by the names of `Finetuning`."""
        said = {"strength": self.finetune_strength, "epochs": self.finetune_epochs, "targets": self.finetune_targets}
        return {name: value for name, value in said.items() if value is not None}

    def _seeded(self, config: RunConfig) -> RunConfig:
        if self.seed is None:
            return config
        entry = METHODS[config.method]
        if "seed" not in entry.method.params:
            log.info("%s has no randomness: the seed has no effect.", entry.title)
            return config
        return config.model_copy(update={"params": {**config.params, "seed": self.seed}})


def wants_images(data: str | None, options: Given) -> bool:
    """Whether to add the option for photographs to a data set that also has features."""
    benchmark = data is not None and data in DATASETS and DATASETS[data].needs_root
    if benchmark and "features" in options:
        raise PrenError(
            "option-conflict", "--backbone and --frozen need photographs, --features-file has features: choose one."
        )
    return benchmark and "images" not in options
