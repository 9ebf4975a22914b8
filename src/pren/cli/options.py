"""Options that several verbs share: single ones, and those that belong together as one dataclass.

The names of a dataclass's fields are those of `pren.runs.settings.Settings`, so that a verb only passes them on.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pren.foundation.children import THREAD_VARIABLES
from pren.foundation.errors import PrenError
from pren.foundation.plain_yaml import parse_yaml

if TYPE_CHECKING:
    from pren.runs.settings import Settings

DATA, BACKBONE, METHOD, TRUST, RUNNING = "Data", "Backbone", "Method", "Trust", "Running"
EXPERT = "For experts"
PANELS = (DATA, BACKBONE, METHOD, TRUST, RUNNING, EXPERT)  # in the order of the help


def use_threads(threads: int | None) -> int | None:
    """Limit the threads of this process and of those that it starts."""
    if threads is not None:
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
        import torch
        from threadpoolctl import threadpool_limits

        torch.set_num_threads(threads)
        threadpool_limits(threads)
    return threads


Data = typer.Argument(metavar="DATA", help="A folder of photographs, a .npz file, or a name of 'pren list datasets'.")
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that 'pren fit' made.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="A name of 'pren list methods'; pren-pool by default. auto takes the method with the best forecast.",
        rich_help_panel=METHOD,
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of the method, such as heads=20. Repeat.",
        rich_help_panel=METHOD,
    ),
]
Root = Annotated[
    str | None,
    typer.Option(
        "--root", metavar="DIR", help="Where a benchmark's files are; $PREN_DATA by default.", rich_help_panel=DATA
    ),
]
Signatures = Annotated[
    str | None,
    typer.Option(
        "--signatures",
        metavar="NAME[,NAME]",
        help="What describes the classes, if several do: attributes (default), sentences, names, or some.",
        rich_help_panel=DATA,
    ),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        "--encoder", metavar="NAME", help="The text encoder for words; see 'pren list encoders'.", rich_help_panel=DATA
    ),
]
DataOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="More options of the data, such as fold=1. Repeat.",
        rich_help_panel=EXPERT,
    ),
]
WeightsFile = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="FILE",
        help="The backbone's weights: a file, or 'random'. Trained ones by default.",
        rich_help_panel=BACKBONE,
    ),
]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache", metavar="DIR", help="Where features are kept; $PREN_CACHE or ~/.cache/pren.", rich_help_panel=RUNNING
    ),
]
Rehearsals = Annotated[
    int | None,
    typer.Option(
        "--rehearsals",
        min=0,
        help="How often to try the method on held-out classes, to tell how sure labels are; 0 for never.",
        rich_help_panel=TRUST,
    ),
]
MinAccuracy = Annotated[
    float | None,
    typer.Option(
        "--min-accuracy",
        metavar="SHARE",
        help="Label only what is so sure that this share of the labels is right, such as 0.95.",
        rich_help_panel=TRUST,
    ),
]
Accelerator = Annotated[
    Literal["auto", "cpu", "cuda", "mps"],
    typer.Option("--accelerator", help="Where to compute.", rich_help_panel=RUNNING),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        callback=use_threads,
        help="Threads of each process; one per core by default. Beside other busy programs, 1 is fastest.",
        rich_help_panel=RUNNING,
    ),
]


@dataclass(frozen=True)
class DataChoice:
    """Which data are meant, beside their name."""

    setting: Annotated[
        str | None, typer.Option(help="zsl (default), or gzsl if the pool has seen classes, too.", rich_help_panel=DATA)
    ] = None
    signatures: Signatures = None
    encoder: Encoder = None
    root: Root = None
    split: Annotated[str | None, typer.Option(help="Which split of a benchmark.", rich_help_panel=DATA)] = None
    features_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.mat", help="A benchmark's features: a name in its folder, or a path.", rich_help_panel=DATA
        ),
    ] = None
    hold_out: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="In gzsl, put this share of the labelled photographs into the pool, to evaluate with.",
            rich_help_panel=EXPERT,
        ),
    ] = None
    data_assignments: DataOptions = None


@dataclass(frozen=True)
class BackboneChoice:
    """The backbone that photographs go through."""

    backbone: Annotated[
        str | None,
        typer.Option(help="A name of 'pren list backbones', or several: a+b.", rich_help_panel=BACKBONE),
    ] = None
    weights: WeightsFile = None
    finetune: Annotated[
        bool,
        typer.Option(
            "--finetune",
            help="Let the last stage learn the seen classes first, if that helps held-out ones.",
            rich_help_panel=BACKBONE,
        ),
    ] = False
    mirrored: Annotated[
        bool,
        typer.Option(
            "--mirrored",
            help="Average the features with those of the mirror image: twice the time.",
            rich_help_panel=BACKBONE,
        ),
    ] = False
    frozen: Annotated[
        bool,
        typer.Option(
            "--frozen", help="Keep the backbone as it is, also for methods that train one.", rich_help_panel=BACKBONE
        ),
    ] = False
    geometry: Annotated[
        Literal["whole", "timm"] | None,
        typer.Option(help="Squeeze the whole photograph (default), or crop as timm does.", rich_help_panel=EXPERT),
    ] = None
    train_from: Annotated[
        str | None,
        typer.Option(
            metavar="STAGE",
            help="Train the backbone from this stage on; see 'pren list backbones --stages NAME'.",
            rich_help_panel=EXPERT,
        ),
    ] = None
    finetune_strength: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="How far --finetune goes, from 0 to 1; 0.25 by default.", rich_help_panel=EXPERT
        ),
    ] = None
    finetune_epochs: Annotated[
        int | None, typer.Option(min=1, help="How often --finetune sees each photograph.", rich_help_panel=EXPERT)
    ] = None
    finetune_targets: Annotated[
        Literal["classes", "signatures", "both"] | None,
        typer.Option(help="What --finetune learns; classes by default.", rich_help_panel=EXPERT),
    ] = None
    cache: CacheFolder = None


@dataclass(frozen=True)
class TrustChoice:
    """How far labels can be trusted."""

    rehearsals: Rehearsals = None
    min_accuracy: MinAccuracy = None


@dataclass(frozen=True)
class RunData:
    """Where the data of a run are now, if they have moved."""

    data: Annotated[str | None, typer.Option("--data", metavar="PATH", help="Where the data are now.")] = None
    root: Root = None
    weights: WeightsFile = None
    cache: CacheFolder = None

    def said(self) -> dict[str, str | None]:
        """By the names that `pren.runs` has for them."""
        cache = None if self.cache is None else str(self.cache)
        return {"data": self.data, "root": self.root, "weights": self.weights, "cache": cache}


def settings_of(*choices: DataChoice | BackboneChoice | TrustChoice, **given: Any) -> Settings:
    """What was said on the command line; the fields of choices and of settings have the same names."""
    from pren.runs.settings import Settings

    said = {field.name: getattr(choice, field.name) for choice in choices for field in fields(choice)}
    said["options"] = parse_assignments(said.pop("data_assignments", None), "--option", "fold=1")
    said["params"] = parse_assignments(given.pop("assignments", None))
    return Settings(**said, **given)


def parse_assignments(assignments: list[str] | None, flag: str = "--set", example: str = "heads=20") -> dict[str, Any]:
    """Turn ``["heads=20", "hidden=[256, 256]"]`` into names and values, which are read as YAML."""
    params: dict[str, Any] = {}
    for assignment in assignments or []:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise PrenError("option-value", f"{flag} takes NAME=VALUE, such as {flag} {example}, not {assignment!r}.")
        params[key.strip()] = parse_yaml(text, f"{flag} {assignment}: the value")
    return params


def check_new(out: Path | None) -> None:
    """Refuse to write over something."""
    if out is not None and out.exists():
        raise PrenError("out-taken", f"{out} already exists: choose another --out or remove it.")


def command_line() -> str:
    """How this process was started, for the record."""
    return shlex.join(["pren", *sys.argv[1:]])
