"""``pren fit``: train a method and leave a run folder."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pren.cli import options
from pren.cli.bundles import bundled
from pren.cli.forecast import chosen_method
from pren.cli.launch import Processes, launch
from pren.cli.options import DataChoice, Json, command_line
from pren.cli.output import print_json, show_log
from pren.cli.progress import extraction, interruptible, rehearsals, rounds
from pren.cli.report import NoReport, write_report
from pren.cli.trust import TrustChoice
from pren.cli.vision import BackboneChoice
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from pren.runs.config import RunConfig


@bundled
def fit(
    data: Annotated[str | None, options.Data] = None,
    *,
    chosen: DataChoice,
    vision: BackboneChoice,
    method: options.MethodName = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same model, with as many threads.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder; by default a name under runs/.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run in --out.")] = False,
    start: Annotated[
        Path | None,
        typer.Option("--continue", metavar="RUN", help="A new run from this one's model and settings: more data."),
    ] = None,
    assignments: options.Assignments = None,
    trust: TrustChoice,
    processes: Processes,
    accelerator: options.Accelerator = "auto",
    config: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Settings; other options win.")] = None,
    threads: options.Threads = None,
    no_report: NoReport = False,
    json: Json = False,
) -> None:
    """Train a method, label the pool and keep the model."""
    show_log()
    if start is not None and (resume or out is None):
        raise PrenError(
            "option-conflict", "--continue RUN makes a new run: name its folder with --out, and leave --resume out."
        )
    params, data_options = options.parse_assignments(assignments or []), chosen.options()
    fabric = launch(processes, accelerator)

    def read_config() -> RunConfig:
        from pren.runs.store.folder import RunFolder

        before = out if resume else start
        base = None if before is None else RunFolder.open(before).config().model_dump()
        given = {"data": data, "method": method, **chosen.settings(), **trust.settings()}
        built = options.build_config(given, data_options, params, config, base)
        return options.with_seed(chosen_method(built, vision, quiet=not fabric.is_global_zero), seed)

    wanted = _agree(fabric, read_config)
    folder = out or _default_folder(wanted)
    quiet = not fabric.is_global_zero  # of several processes, one speaks
    from pren.methods.registry import METHODS
    from pren.runs.store.folder import REPORT_FILE
    from pren.runs.train import train

    title, command = f"{METHODS[wanted.method].title} on {wanted.data}", command_line()
    advice = partial(how_to_resume, folder)
    with (
        rounds(title, quiet) as on_round,
        extraction(quiet) as on_extract,
        rehearsals(quiet) as on_rehearsal,
        interruptible(advice, quiet),
    ):
        run = train(
            wanted,
            folder,
            resume=resume,
            start=start,
            command=command,
            on_round=on_round,
            on_extract=on_extract,
            on_rehearsal=on_rehearsal,
            on_finish=None if no_report else write_report,
            fabric=fabric,
        )
    if not quiet:
        if not no_report and not (run.path / REPORT_FILE).exists():  # it was finished before
            write_report(run, None)
        from pren.cli.summary import show_summary
        from pren.runs.summary import run_summary

        (print_json if json else show_summary)(run_summary(run))


def how_to_resume(folder: Path) -> str:
    """What an interrupted run has left, and how to go on with it."""
    from pren.methods.storage import MODEL_FILE

    kept = (folder / MODEL_FILE).is_file()
    left = "The model of the last finished round is kept and can be used." if kept else "No round was finished yet."
    return f"{left} Go on with: pren fit --resume --out {shlex.quote(str(folder))}"


def _default_folder(config: RunConfig) -> Path:
    """A name that tells runs apart: runs/cub-PS-gzsl-fold=1-pren-0."""
    backbone = config.params.get("backbone")
    if config.extractor is not None:
        asked = config.extractor
        way = "finetuned" if asked.finetune is not None else "trained" if asked.until is not None else "frozen"
        backbone = "-".join(filter(None, [way, "mirrored" if asked.mirrored else None, asked.backbone]))
    # That it is images shows in the backbone.
    options = {key: value for key, value in config.options.items() if key != "images"}
    # Of a file the name without its ending; of a share like 0.2 all.
    short = {key: Path(value).stem if isinstance(value, str) else value for key, value in options.items()}
    chosen = [f"{key}={value}" for key, value in sorted(short.items())]
    setting = config.setting if config.setting != "zsl" else None
    name = Path(config.data).resolve().stem  # also of "."
    parts = [name, config.split, setting, backbone, *chosen, config.method, str(config.params.get("seed", 0))]
    return Path("runs") / "-".join(filter(None, parts)).replace("/", "-")  # as in clip:MODEL/TAG


def _agree(fabric: Fabric, read_config: Callable[[], RunConfig]) -> RunConfig:
    """What to do, in every process; the first one alone needs the files that say it."""
    if fabric.world_size == 1:
        return read_config()
    from pren.runs.config import RunConfig
    from pren.training.processes import agreed, share_text, watching

    text = ""
    with watching(fabric):
        with agreed(fabric):
            if fabric.is_global_zero:
                try:
                    text = read_config().model_dump_json()
                except ValueError as error:  # half a character in a name, for example
                    raise PrenError(
                        "settings-not-text", f"These settings cannot be passed on to other processes: {error}"
                    ) from error
        return RunConfig.model_validate_json(share_text(fabric, text))
