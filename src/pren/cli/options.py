"""Options that several verbs share, and how they become a configuration."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pren.foundation.children import THREAD_VARIABLES
from pren.foundation.errors import PrenError
from pren.foundation.plain_yaml import parse_yaml

if TYPE_CHECKING:
    from pren.runs.config import RunConfig


log = logging.getLogger(__name__)


def use_threads(threads: int | None) -> int | None:
    """Limit the threads of this process and of those that it starts."""
    if threads is not None:
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
        import torch
        from threadpoolctl import threadpool_limits

        torch.set_num_threads(threads)
        threadpool_limits(threads)
    return threads


Accelerator = Annotated[Literal["auto", "cpu", "cuda", "mps"], typer.Option("--accelerator", help="Where to compute.")]
Data = typer.Argument(metavar="DATA", help="A registered name, a folder, or a .npz file.")
Root = Annotated[
    str | None, typer.Option("--root", help="The folder of a data set that is not embedded; $PREN_DATA by default.")
]
MethodName = Annotated[
    str | None,
    typer.Option("--method", help="See 'pren list methods'; pren-pool by default. auto takes the best forecast."),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any parameter of the method; repeatable."),
]
Signatures = Annotated[
    str | None,
    typer.Option(
        "--signatures",
        metavar="NAME[,NAME]",
        help="What describes the classes, where the data have several; attributes by default, or attributes,sentences.",
    ),
]
DataOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="Any option of the data set, such as fold=1; repeatable."),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        callback=use_threads,
        help="Threads of each process; beside other busy processes 1 is fastest. One per core by default.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, as 'pren fit' makes it.")]


@dataclass(frozen=True)
class DataChoice:
    """The options that say which data are meant, beside their name."""

    root: Root = None
    split: Annotated[str | None, typer.Option(help="Which split of the data.")] = None
    setting: Annotated[str | None, typer.Option(help="zsl (default) or gzsl.")] = None
    features: Annotated[
        str | None, typer.Option(metavar="FILE.mat", help="A features file: a name in the data's folder, or a path.")
    ] = None
    signatures: Signatures = None
    hold_out: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="In gzsl, put this share of your labelled images into the pool, to evaluate with."
        ),
    ] = None
    data_assignments: DataOptions = None

    def settings(self) -> dict[str, str | None]:
        """Those that are settings of a configuration."""
        return {"root": self.root, "split": self.split, "setting": self.setting}

    def options(self) -> dict[str, Any]:
        """Those that the data set alone understands."""
        given = parse_assignments(self.data_assignments or [], "--option", "fold=1")
        own = {"features": self.features, "signatures": self.signatures, "hold_out": self.hold_out}
        return given | {key: value for key, value in own.items() if value is not None}


def parse_assignments(assignments: list[str], flag: str = "--set", example: str = "heads=20") -> dict[str, Any]:
    """Turn ``["heads=20", "hidden=[256, 256]"]`` into names and values, which are read as YAML."""
    params: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise PrenError("option-value", f"{flag} takes key=value, such as {flag} {example}, not {assignment!r}.")
        params[key.strip()] = parse_yaml(text, f"{flag} {assignment}: the value")
    return params


def build_config(
    given: dict[str, Any],
    options: dict[str, Any],
    params: dict[str, Any],
    file: Path | None = None,
    base: dict[str, Any] | None = None,
) -> RunConfig:
    """Join what an interrupted run or a YAML file says with what the command line says, which wins.

    Args:
        given: Settings of the command line; None where not given.
        options: The data set's.
        params: The method's.
        file: A YAML file with settings.
        base: The settings of an interrupted run.
    """
    from pren.runs.config import parse_config, read_yaml

    content = (base or {}) | ({} if file is None else read_yaml(file))
    content |= {key: value for key, value in given.items() if value is not None}
    if "data" not in content:
        raise PrenError(
            "data-missing", "Say which data to fit: a registered name ('pren list datasets'), a .npz file or a folder."
        )
    for group, new in (("options", options), ("params", params)):
        old = {} if content.get(group) is None else content[group]
        if isinstance(old, dict):  # else `parse_config` says that it is not
            content[group] = {**old, **new}
    content.pop("record", None)
    return parse_config(content, "The command line" if file is None else str(file))


def check_new(out: Path | None) -> None:
    """Refuse to write over something."""
    if out is not None and out.exists():
        raise PrenError("out-taken", f"{out} already exists: choose another --out or remove it.")


def command_line() -> str:
    """How this process was started, for the record."""
    return shlex.join(["pren", *sys.argv[1:]])


def with_seed(config: RunConfig, seed: int | None) -> RunConfig:
    """The configuration with a seed, if one is given and the method has a use for it."""
    from pren.methods.registry import METHODS

    if seed is None:
        return config
    entry = METHODS[config.method]
    if "seed" not in entry.method.params:
        log.info("%s leaves nothing to chance: --seed is ignored.", entry.title)
        return config
    return config.model_copy(update={"params": {**config.params, "seed": seed}})
