"""Options that several verbs share: single ones, and groups as dataclasses.

The fields of `DataChoice`, `BackboneChoice` and `TrustChoice` have the names of `pren.runs.settings.Settings`.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pren.foundation.children import THREAD_VARIABLES
from pren.foundation.errors import PrenError
from pren.foundation.plain_yaml import parse_yaml

if TYPE_CHECKING:
    from pren.runs.settings import Settings

# The panels of the help, in its order. Options without a panel come first: what a newcomer needs.
DATA, BACKBONE, METHOD, RUNNING, OUTPUT, EXPERT = "Data", "Backbone", "Method", "Running", "Output", "For experts"
PANELS = (DATA, BACKBONE, METHOD, RUNNING, OUTPUT, EXPERT)
data_option, backbone_option, method_option, running_option, output_option, expert_option = (
    partial(typer.Option, rich_help_panel=panel) for panel in PANELS
)


def use_threads(threads: int | None) -> int | None:
    """Limit the threads of this process and of the processes that it starts."""
    if threads is not None:
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
        import torch
        from threadpoolctl import threadpool_limits

        torch.set_num_threads(threads)
        threadpool_limits(threads)
    return threads


Data = typer.Argument(metavar="DATA", help="A folder of photographs, a .npz file, or a name of 'pren list datasets'.")
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder of 'pren fit'.")]
Json = Annotated[bool, output_option("--json", help="Print the result as JSON.")]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method", help="A name of 'pren list methods', or auto: the one with the best forecast. Default: pren-vote."
    ),
]
Assignments = Annotated[
    list[str] | None,
    method_option("--set", metavar="NAME=VALUE", help="A parameter of the method, such as heads=20. Repeat."),
]
Root = Annotated[
    str | None, data_option("--root", metavar="DIR", help="The folder of a benchmark's files; $PREN_DATA by default.")
]
Signatures = Annotated[
    str | None,
    data_option(
        "--signatures",
        metavar="NAME[,NAME]",
        help="How to describe the classes: attributes, sentences, descriptions, names, or several of them.",
    ),
]
Encoder = Annotated[
    str | None, data_option("--encoder", metavar="NAME", help="The text encoder, of 'pren list encoders'.")
]
DataOptions = Annotated[
    list[str] | None,
    expert_option("--option", metavar="NAME=VALUE", help="Another option of the data, such as fold=1. Repeat."),
]
WeightsFile = Annotated[
    str | None,
    backbone_option(
        "--weights",
        metavar="FILE",
        help="A file (or folder) with the backbone's weights, or 'random'. Default: trained weights.",
    ),
]
CacheFolder = Annotated[
    Path | None, running_option("--cache", metavar="DIR", help="The folder for features; $PREN_CACHE or ~/.cache/pren.")
]
Rehearsals = Annotated[
    int | None,
    method_option(
        "--rehearsals", min=0, help="How many tests on held-out classes, which measure how sure labels are; 0 for none."
    ),
]
MinAccuracy = Annotated[
    float | None,
    typer.Option(
        "--min-accuracy",
        metavar="SHARE",
        help="Leave doubtful inputs without a label, so that this share of the labels is right, such as 0.95.",
    ),
]
Accelerator = Annotated[Literal["auto", "cpu", "cuda", "mps"], running_option("--accelerator", help="The device.")]
Threads = Annotated[
    int | None,
    running_option(
        "--threads",
        min=1,
        callback=use_threads,
        help="Threads per process; one per core by default. On a busy machine, 1 is fastest.",
    ),
]


@dataclass(frozen=True)
class DataChoice:
    """How to read the data."""

    setting: Annotated[
        str | None, data_option(help="zsl (default), gzsl if the pool has seen classes, too, or auto to find out.")
    ] = None
    signatures: Signatures = None
    encoder: Encoder = None
    root: Root = None
    split: Annotated[str | None, data_option(help="The split of a benchmark.")] = None
    features_file: Annotated[
        str | None, data_option(metavar="FILE.mat", help="A benchmark's features: a name in its folder, or a path.")
    ] = None
    hold_out: Annotated[
        float | None,
        expert_option(
            metavar="SHARE", help="In gzsl, move this share of the labelled photographs into the pool, for evaluation."
        ),
    ] = None
    data_assignments: DataOptions = None


@dataclass(frozen=True)
class BackboneChoice:
    """The backbone that photographs go through."""

    backbone: Annotated[
        str | None, typer.Option(help="The network for photographs: a name of 'pren list backbones', or several: a+b.")
    ] = None
    weights: WeightsFile = None
    finetune: Annotated[
        bool,
        backbone_option(
            "--finetune", help="Train the last stage on the seen classes first, if that improves held-out ones."
        ),
    ] = False
    mirrored: Annotated[
        bool,
        backbone_option(
            "--mirrored", help="Average the features over each photograph and its mirror image: twice the time."
        ),
    ] = False
    frozen: Annotated[
        bool, backbone_option("--frozen", help="Do not train the backbone, also for methods that can.")
    ] = False
    quality: Annotated[
        Literal["fast", "good", "best"] | None,
        backbone_option(help="Choose frozen backbones by how long they may take; says how long beforehand."),
    ] = None
    size: Annotated[
        int | None,
        expert_option(min=1, metavar="PIXELS", help="The side of a frozen backbone's images; chosen by default."),
    ] = None
    engine: Annotated[
        Literal["torch", "openvino", "openvino-bfloat16"] | None,
        backbone_option(
            help="What runs a frozen backbone; by default OpenVINO on CPUs, if it is installed, in float32."
        ),
    ] = None
    alike: Annotated[
        bool | None,
        backbone_option(
            "--alike/--no-alike",
            help="Make labelled photographs look like those of a pool from another camera; by itself for a folder.",
        ),
    ] = None
    geometry: Annotated[
        Literal["whole", "timm"] | None,
        expert_option(help="Resize the whole photograph (default), or crop as timm does."),
    ] = None
    train_from: Annotated[
        str | None,
        expert_option(
            metavar="STAGE", help="Train the backbone from this stage on, of 'pren list backbones --stages NAME'."
        ),
    ] = None
    finetune_strength: Annotated[
        float | None, expert_option(min=0, max=1, help="How far --finetune goes; 0.25 by default.")
    ] = None
    finetune_epochs: Annotated[int | None, expert_option(min=1, help="How many epochs --finetune trains.")] = None
    finetune_targets: Annotated[
        Literal["classes", "signatures", "both"] | None,
        expert_option(help="What --finetune learns; classes by default."),
    ] = None
    cache: CacheFolder = None


@dataclass(frozen=True)
class TrustChoice:
    """How far to trust labels."""

    rehearsals: Rehearsals = None
    min_accuracy: MinAccuracy = None


@dataclass(frozen=True)
class CellChoice:
    """How to compute the results of several fits."""

    jobs: Annotated[int, typer.Option(min=1, help="How many results to compute at a time.")] = 1
    retry: Annotated[bool, typer.Option("--retry", help="Compute failed results again.")] = False
    stored: Annotated[bool, typer.Option("--stored", help="Show stored results and compute nothing.")] = False


@dataclass(frozen=True)
class RunData:
    """Where the data of a run are now, if they have moved."""

    data: Annotated[str | None, typer.Option("--data", metavar="PATH", help="The data, if they have moved.")] = None
    root: Root = None
    weights: WeightsFile = None
    cache: CacheFolder = None

    def said(self) -> dict[str, str | None]:
        """As keywords of `pren.runs`."""
        cache = None if self.cache is None else str(self.cache)
        return {"data": self.data, "root": self.root, "weights": self.weights, "cache": cache}


def settings_of(*choices: DataChoice | BackboneChoice | TrustChoice, **given: Any) -> Settings:
    """The settings on the command line."""
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
    """Refuse to overwrite a file."""
    if out is not None and out.exists():
        raise PrenError("out-taken", f"{out} already exists: choose another --out or remove it.")


def command_line() -> str:
    """The command of this process, for the record."""
    return shlex.join(["pren", *sys.argv[1:]])
