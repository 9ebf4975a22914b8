"""``pren fit``: fit a method, label the pool and keep it all in a run folder."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pren.cli import options
from pren.cli.bundles import bundled
from pren.cli.launch import Processes, launch
from pren.cli.options import BackboneChoice, DataChoice, Json, TrustChoice, command_line, settings_of
from pren.cli.output import Talk, print_json, say, show_log
from pren.cli.progress import extraction, interruptible, rehearsals, rounds
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.runs.config import RunConfig
    from pren.runs.result import RunResult, RunState


@bundled
def fit(
    data: Annotated[str | None, options.Data] = None,
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run folder; by default a name under runs/.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="RUN", help="Go on with this run, which was interrupted.")
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--continue",
            metavar="RUN",
            help="A new run with the settings and the model of this one, after you labelled more.",
        ),
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.html.")] = False,
    json: Json = False,
    talk: Talk,
    chosen: DataChoice,
    vision: BackboneChoice,
    method: options.MethodName = None,
    assignments: options.Assignments = None,
    seed: Annotated[
        int | None,
        typer.Option(help="The same seed gives the same model, with as many threads.", rich_help_panel=options.METHOD),
    ] = None,
    trust: TrustChoice,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.yaml",
            help="Settings, such as 'pren tune' writes; options win.",
            rich_help_panel=options.RUNNING,
        ),
    ] = None,
    accelerator: options.Accelerator = "auto",
    threads: options.Threads = None,
    processes: Processes,
) -> None:
    """Label photographs of classes that have no labelled ones.

    DATA is a folder with images/CLASS/*.jpg (labelled), unlabelled/*.jpg and a description of every class
    (signatures.csv or descriptions.csv). 'pren data check DATA' says what is missing.
    """
    show_log(talk)
    if start is not None and out is None:
        raise PrenError("option-conflict", "--continue RUN makes a new run: name its folder with --out.")
    if resume is not None and out is not None:
        raise PrenError("option-conflict", "--resume RUN goes on in that folder: leave --out out.")
    settings = settings_of(chosen, vision, trust, data=data, method=method, assignments=assignments, seed=seed)
    fabric = launch(processes, accelerator)
    from pren.methods.registry import METHODS
    from pren.runs.fit import configure
    from pren.runs.run import Progress, run_config

    quiet = talk.quiet or not fabric.is_global_zero  # of several processes, one speaks
    with extraction(quiet) as on_extract, rehearsals(quiet) as on_rehearsal:
        progress = Progress(None, on_extract, on_rehearsal)
        wanted = configure(settings, resume=resume, start=start, file=config, fabric=fabric, progress=progress)
        folder = resume or out or default_folder(wanted)
        title = f"{METHODS[wanted.method].title} on {wanted.data}"
        with rounds(title, quiet) as on_round, interruptible(partial(how_to_resume, folder), quiet):
            result = run_config(
                wanted,
                folder,
                resume=resume is not None,
                start=start,
                report=not no_report,
                command=command_line(),
                progress=Progress(on_round, on_extract, on_rehearsal),
                fabric=fabric,
            )
    if result is not None:
        print_json(result.to_dict()) if json else show_result(result)


def show_state(state: RunState) -> None:
    """Say what a run is."""
    title, *more = state.opening()
    say(title, style="bold")
    for line in more:
        say(line)
    hashes = state.config.record.get("hashes")
    split_hash = hashes.get("split", "?") if isinstance(hashes, dict) else "?"
    say(f"split {split_hash}, seed {state.params.get('seed', '-')}")


def show_result(result: RunResult, every_class: bool = False) -> None:
    """Say what a run is, what to expect of its labels, and where they are."""
    show_state(result)
    say("")
    first, *rest = result.lines(every_class)
    say(first, style="bold")
    for line in (*rest, "", *result.places()):
        say(line)


def how_to_resume(folder: Path) -> str:
    """What an interrupted run has left, and how to go on with it."""
    from pren.methods.storage import MODEL_FILE

    kept = (folder / MODEL_FILE).is_file()
    left = "The model of the last finished round is kept and can be used." if kept else "No round was finished yet."
    return f"{left} Go on with: pren fit --resume {shlex.quote(str(folder))}"


def default_folder(config: RunConfig) -> Path:
    """A name that tells runs apart: runs/cub-PS-gzsl-fold=1-pren-0."""
    backbone = config.params.get("backbone")
    if config.extractor is not None:
        asked = config.extractor
        way = "finetuned" if asked.finetune is not None else "trained" if asked.until is not None else "frozen"
        backbone = "-".join(filter(None, [way, "mirrored" if asked.mirrored else None, asked.backbone]))
    # That these are photographs shows in the backbone.
    options = {key: value for key, value in config.options.items() if key != "images"}
    # Of a file the name without its ending; of a share like 0.2 all.
    short = {key: Path(value).stem if isinstance(value, str) else value for key, value in options.items()}
    chosen = [f"{key}={value}" for key, value in sorted(short.items())]
    setting = config.setting if config.setting != "zsl" else None
    name = Path(config.data).resolve().stem  # also of "."
    parts = [name, config.split, setting, backbone, *chosen, config.method, str(config.params.get("seed", 0))]
    return Path("runs") / "-".join(filter(None, parts)).replace("/", "-")  # as in clip:MODEL/TAG
