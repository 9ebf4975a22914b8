"""``pren fit``: fit a method, label the pool and write a run folder."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
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
from pren.foundation.allocation import keep_all_memory
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.label.result import RunResult, RunState
    from pren.store.config import RunConfig


@dataclass(frozen=True)
class RunChoice:
    """The run folder: a new one, or one to resume or to continue."""

    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The run folder; by default under runs/.")] = None
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with this interrupted run.")] = None
    start: Annotated[
        Path | None,
        typer.Option(
            "--continue", metavar="RUN", help="Start a new run from this one, after you have labelled more. Add --out."
        ),
    ] = None
    no_report: Annotated[bool, options.output_option("--no-report", help="Write no report.html.")] = False

    def __post_init__(self) -> None:
        if self.start is not None and self.out is None:
            raise PrenError("option-conflict", "--continue RUN makes a new run: name its folder with --out.")
        if self.resume is not None and self.out is not None:
            raise PrenError("option-conflict", "--resume RUN writes to the folder RUN: omit --out.")


@bundled
def fit(
    data: Annotated[str | None, options.Data] = None,
    *,
    chosen: DataChoice,
    vision: BackboneChoice,
    method: options.MethodName = None,
    assignments: options.Assignments = None,
    seed: Annotated[int | None, options.method_option(help="The same seed and threads give the same model.")] = None,
    trust: TrustChoice,
    run: RunChoice,
    config: Annotated[
        Path | None,
        options.running_option(
            metavar="FILE.yaml", help="Read settings from this file, such as one of 'pren tune'. Options override it."
        ),
    ] = None,
    accelerator: options.Accelerator = "auto",
    threads: options.Threads = None,
    processes: Processes,
    json: Json = False,
    talk: Talk,
) -> None:
    """Label photographs of classes that have no labelled ones.

    DATA is a folder with images/CLASS/*.jpg (labelled), unlabelled/*.jpg, and descriptions
    of all classes: signatures.csv or descriptions.csv. Check it with 'pren data check DATA'.
    """
    show_log(talk)
    fabric = launch(processes, accelerator)  # first: a process that only starts others loads neither torch nor sklearn
    settings = settings_of(chosen, vision, trust, data=data, method=method, assignments=assignments, seed=seed)
    from pren.methods.registry import METHODS, trains_backbone
    from pren.runs.fit import configure
    from pren.runs.run import Progress, run_config

    quiet = talk.quiet or not fabric.is_global_zero  # one of several processes prints
    with extraction(quiet) as on_extract, rehearsals(quiet) as on_rehearsal:
        progress = Progress(None, on_extract, on_rehearsal)
        wanted = configure(settings, resume=run.resume, start=run.start, file=config, fabric=fabric, progress=progress)
        if wanted.extractor is None and "features" not in wanted.options and trains_backbone(wanted.method):
            keep_all_memory()
        folder = run.resume or run.out or default_folder(wanted)
        title = f"{METHODS[wanted.method].title} on {wanted.data}"
        with rounds(title, quiet) as on_round, interruptible(partial(how_to_resume, folder), quiet):
            result = run_config(
                wanted,
                folder,
                resume=run.resume is not None,
                start=run.start,
                report=not run.no_report,
                command=command_line(),
                progress=Progress(on_round, on_extract, on_rehearsal),
                fabric=fabric,
            )
    if result is not None:
        print_json(result.to_dict()) if json else show_result(result)


def show_state(state: RunState) -> None:
    """Print the title of a run."""
    title, *more = state.opening()
    say(title, style="bold")
    for line in more:
        say(line)
    hashes = state.config.record.get("hashes")
    split_hash = hashes.get("split", "?") if isinstance(hashes, dict) else "?"
    say(f"split {split_hash}, seed {state.params.get('seed', '-')}")


def show_result(result: RunResult, every_class: bool = False) -> None:
    """Print the title of a run, what to expect of its labels, and where they are."""
    show_state(result)
    say("")
    first, *rest = result.lines(every_class)
    say(first, style="bold")
    for line in (*rest, "", *result.places()):
        say(line)


def how_to_resume(folder: Path) -> str:
    """What an interrupted run has kept, and the command that goes on."""
    from pren.methods.storage import MODEL_FILE

    kept = (folder / MODEL_FILE).is_file()
    left = "The model of the last finished round is kept." if kept else "No round is finished yet."
    return f"{left} Go on with: pren fit --resume {shlex.quote(str(folder))}"


def default_folder(config: RunConfig) -> Path:
    """A name per run, such as runs/cub-PS-gzsl-fold=1-pren-0."""
    backbone = config.params.get("backbone")
    if config.extractor is not None:
        asked = config.extractor
        way = "finetuned" if asked.finetune is not None else "trained" if asked.until is not None else "frozen"
        backbone = "-".join(filter(None, [way, "mirrored" if asked.mirrored else None, asked.backbone]))
    own = {key: value for key, value in config.options.items() if key != "images"}  # the backbone implies them
    short = {key: Path(value).stem if isinstance(value, str) else value for key, value in own.items()}
    chosen = [f"{key}={value}" for key, value in sorted(short.items())]
    setting = None if config.find_setting or config.setting == "zsl" else config.setting
    name = Path(config.data).resolve().stem  # "." has none
    parts = [name, config.split, setting, backbone, *chosen, config.method, str(config.params.get("seed", 0))]
    return Path("runs") / "-".join(filter(None, parts)).replace("/", "-")  # of clip:MODEL/TAG
