"""What is said about photographs on the command line, in the same way for every verb."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pydantic import ValidationError

from pren.cli.options import Root
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.images.extraction import Extractor
    from pren.runs.config import RunConfig


BackboneName = Annotated[
    str | None,
    typer.Option("--backbone", help="The network that photographs go through, or several: a+b; 'pren list backbones'."),
]
WeightsFile = Annotated[
    str | None,
    typer.Option("--weights", metavar="FILE", help="Its weights: a file, or 'random'; trained ones by default."),
]
GeometryName = Annotated[
    Literal["whole", "timm"] | None,
    typer.Option("--geometry", help="Squeeze the whole image (default, as in the paper), or crop as timm does."),
]
MirroredToo = Annotated[
    bool,
    typer.Option(
        "--mirrored", help="Features are the mean of those of a photograph and of its mirror image: twice the time."
    ),
]
CacheFolder = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Where features are kept; $PREN_CACHE or ~/.cache/pren by default."),
]
Frozen = Annotated[
    bool, typer.Option("--frozen", help="Train on the features of a backbone that stays as it is, once extracted.")
]
TrainFrom = Annotated[
    str | None,
    typer.Option(
        metavar="STAGE",
        help="Train the backbone from this stage on, by name or counted from the end; what comes before is computed "
        "once and kept. See 'pren list backbones --stages NAME'.",
    ),
]


Finetune = Annotated[
    bool,
    typer.Option(
        "--finetune",
        help="Let the backbone's last stage (or all from --train-from on) learn the seen classes first, if that "
        "helps held-out ones; any method gets the features then.",
    ),
]
Strength = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="With --finetune: how far to go, from 0 to 1; by default 0.25, if it helps."),
]
Epochs = Annotated[int | None, typer.Option(min=1, help="With --finetune: passes over the labelled images.")]
TargetsName = Annotated[
    Literal["classes", "signatures", "both"] | None,
    typer.Option("--targets", help="With --finetune: what it learns to tell; classes by default."),
]


@dataclass(frozen=True)
class BackboneChoice:
    """The options about the backbone that photographs go through."""

    backbone: BackboneName = None
    weights: WeightsFile = None
    geometry: GeometryName = None
    frozen: Frozen = False
    cache: CacheFolder = None
    train_from: TrainFrom = None
    finetune: Finetune = False
    strength: Strength = None
    epochs: Epochs = None
    targets: TargetsName = None
    mirrored: MirroredToo = False

    def said(self) -> dict[str, str]:
        """What was said, by the names of `Extractor` and of PrEN's parameters."""
        said = {"backbone": self.backbone, "weights": self.weights, "geometry": self.geometry}
        return {key: value for key, value in said.items() if value is not None}

    def _how(self) -> dict[str, Any]:
        """What was said about fine-tuning, by the names of `Finetuning`."""
        said = {"strength": self.strength, "epochs": self.epochs, "targets": self.targets}
        return {key: value for key, value in said.items() if value is not None}

    def extractor(self, known: dict[str, Any] | None = None) -> Extractor:
        """What makes features, with what was said in place of what is known of it."""
        from pren.images.extraction import Extractor

        said: dict[str, Any] = {**(known or {}), **self.said()}
        if self.train_from is not None:
            said["until"] = self.train_from
        if self.mirrored:
            said["mirrored"] = True
        how = self._how()
        if how and not self.finetune and said.get("finetune") is None:
            raise PrenError(
                "option-conflict",
                f"--{next(iter(how))} says how a backbone learns the seen classes first: add --finetune.",
            )
        if self.finetune or how:
            said["finetune"] = {**(said.get("finetune") or {}), **how}
        try:
            return Extractor.model_validate(said)
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise PrenError("backbone-settings", f"The backbone cannot be had like this: {why}.") from error

    def applied(self, config: RunConfig, methods: Sequence[str] = ()) -> RunConfig:
        """A configuration (for its method, or for these methods) with all this as its extractor or its parameters.

        Raises:
            PrenError: If there is no such backbone, the data are not photographs, or a method has no use for it.
        """
        from pren.images.backbones import find_backbone, split_names
        from pren.images.side_by_side import single_extractors
        from pren.methods.registry import trains_backbone
        from pren.runs.opening import check_trains_backbone

        update: dict[str, Any] = {} if self.cache is None else {"cache": str(self.cache)}
        said, names = self.said(), methods or [config.method]
        if self.train_from is not None and self.frozen:
            raise PrenError(
                "option-conflict", "--frozen trains no part of the backbone, --train-from one: leave one out."
            )
        if self.frozen and self.finetune:
            raise PrenError(
                "option-conflict", "--frozen trains no part of the backbone, --finetune one: leave one out."
            )
        tuned = self.finetune or bool(self._how())
        frozen = self.frozen or self.mirrored
        if said or frozen or tuned or self.train_from is not None:
            if self.backbone is not None:
                list(map(find_backbone, split_names(self.backbone)))  # before any data are read
            if wants_images(config.data, config.options):
                update["options"] = {**config.options, "images": True}
            if self.train_from is not None and not self.finetune:
                check_trains_backbone(names)
                update["extractor"] = self.extractor()
                update["params"] = {**config.params, **{k: v for k, v in said.items() if k == "weights"}}
            elif frozen or tuned or config.extractor is not None:
                keep = config.extractor is not None and self.backbone is None
                asked = config.extractor.model_dump() if keep and config.extractor is not None else {}
                update["extractor"] = self.extractor(asked)
            elif any(map(trains_backbone, names)):
                check_trains_backbone(names)  # all of them: a mixture has to be told what is meant
                if self.backbone is not None:
                    find_backbone(self.backbone)  # one, not several
                update["params"] = {**config.params, **said}
        config = config.model_copy(update=update).with_features(names, said)
        if config.extractor is not None:
            single_extractors(config.extractor)  # what cannot be asked of several backbones
        return config


@dataclass(frozen=True)
class RunData:
    """The options that say where the data of a run are now."""

    data: Annotated[
        str | None, typer.Option("--data", metavar="PATH", help="Where the data are, if they have moved.")
    ] = None
    root: Root = None
    weights: WeightsFile = None
    cache: CacheFolder = None

    def said(self) -> dict[str, str | None]:
        """By the names that `pren.runs` has for them."""
        cache = None if self.cache is None else str(self.cache)
        return {"data": self.data, "root": self.root, "weights": self.weights, "cache": cache}


def wants_images(data: str | None, data_options: dict[str, Any]) -> bool:
    """Whether a data set that also comes as features has to be told that it is photographs that are meant."""
    from pren.data import DATASETS

    benchmark = data is not None and data in DATASETS and DATASETS[data].needs_root
    if benchmark and "features" in data_options:
        raise PrenError(
            "option-conflict", "--backbone and --frozen are for photographs, --features for features: leave one out."
        )
    return benchmark and "images" not in data_options
