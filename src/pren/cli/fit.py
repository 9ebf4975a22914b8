"""``pren fit``: train a method and leave a run folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pren.cli import options
from pren.cli.bundles import bundled
from pren.cli.launch import Processes, launch
from pren.cli.options import DataChoice, Json, command_line
from pren.cli.output import print_json, show_log
from pren.cli.progress import extraction, resumable, rounds
from pren.cli.vision import BackboneChoice
from pren.errors import PrenError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from pren.runs.config import RunConfig
    from pren.runs.folder import RunFolder


@bundled
def fit(
    data: Annotated[str | None, options.Data] = None,
    *,
    chosen: DataChoice,
    vision: BackboneChoice,
    method: Annotated[str | None, typer.Option(help="See 'pren list methods'; pren by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same model.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder; by default a name under runs/.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run in --out.")] = False,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any parameter of the method; repeatable.")
    ] = None,
    processes: Processes,
    accelerator: options.AcceleratorName = options.Accelerator.auto,
    config: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Settings; other options win.")] = None,
    threads: options.Threads = None,
    json: Json = False,
) -> None:
    """Train a method, label the pool and keep the model."""
    show_log()
    params, data_options = options.parse_assignments(assignments or []), chosen.options()
    fabric = launch(processes, accelerator.value)

    def read_config() -> RunConfig:
        from pren.runs.folder import RunFolder

        base = RunFolder.open(out).config().model_dump() if resume and out is not None else None
        given = {"data": data, "method": method, **chosen.settings()}
        built = options.build_config(config, given, params, base, data_options)
        return options.with_seed(vision.applied(built), seed)

    wanted = _agree(fabric, read_config)
    run = _train(wanted, out or _default_folder(wanted), resume, fabric)
    if fabric.is_global_zero:
        from pren.cli.summary import run_summary, show_summary

        (print_json if json else show_summary)(run_summary(run))


def _train(config: RunConfig, folder: Path, resume: bool, fabric: Fabric) -> RunFolder:
    """Train with everything to be seen on the way."""
    from pren.methods.registry import METHODS
    from pren.runs.train import train

    quiet = not fabric.is_global_zero  # of several processes, one speaks
    title = f"{METHODS[config.method].title} on {config.data}"
    command = command_line()
    with rounds(title, quiet) as on_round, extraction(quiet) as on_extract, resumable(folder, quiet):
        return train(
            config, folder, resume=resume, command=command, on_round=on_round, on_extract=on_extract, fabric=fabric
        )


def _default_folder(config: RunConfig) -> Path:
    """A name that tells runs apart: runs/cub-PS-gzsl-fold=1-pren-0."""
    setting = [config.setting] if config.setting != "zsl" else []
    if config.extractor is not None:
        backbone = [f"frozen-{config.extractor.backbone}"]
    else:
        backbone = [str(config.params["backbone"])] if config.params.get("backbone") else []
    # That it is images shows in the backbone.
    options = {key: value for key, value in config.options.items() if key != "images"}
    chosen = [f"{key}={Path(str(value)).stem}" for key, value in sorted(options.items())]
    split = [config.split] if config.split else []
    seed = str(config.params.get("seed", 0))
    name = Path(config.data).resolve().stem  # also of "."
    return Path("runs") / "-".join([name, *split, *setting, *backbone, *chosen, config.method, seed])


def _agree(fabric: Fabric, read_config: Callable[[], RunConfig]) -> RunConfig:
    """What to do, in every process; the first one alone needs the files that say it."""
    if fabric.world_size == 1:
        return read_config()
    from pren.engine.processes import agreed, share_text, watching
    from pren.runs.config import RunConfig

    text = ""
    with watching(fabric):
        with agreed(fabric):
            if fabric.is_global_zero:
                text = _as_json(read_config())
        return RunConfig.model_validate_json(share_text(fabric, text))


def _as_json(config: RunConfig) -> str:
    try:
        return config.model_dump_json()
    except ValueError as error:  # half a character in a name, for example
        raise PrenError(f"These settings cannot be passed on to other processes: {error}") from error
