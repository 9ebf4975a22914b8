"""``pren fit``: train a method and leave a run folder."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from pren.cli import options
from pren.cli.options import Json
from pren.cli.output import print_json, show_log
from pren.cli.progress import resumable, rounds


def fit(
    data: Annotated[str | None, typer.Argument(metavar="DATA", help="A registered name or a .npz file.")] = None,
    root: Annotated[str | None, typer.Option(help="The folder of a data set that is not embedded.")] = None,
    split: Annotated[str | None, typer.Option(help="Which split of the data.")] = None,
    setting: Annotated[str | None, typer.Option(help="zsl (default) or gzsl.")] = None,
    method: Annotated[str | None, typer.Option(help="See 'pren list methods'; pren by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same model.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder; runs/DATA-METHOD-SEED by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run in --out.")] = False,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any parameter of the method; repeatable.")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Settings; other options win.")] = None,
    json: Json = False,
) -> None:
    """Train a method, label the pool and keep the model."""
    show_log()
    params = options.parse_assignments(assignments or [])
    if seed is not None:
        params["seed"] = seed
    from pren.cli.summary import run_summary, show_summary
    from pren.methods.registry import get_entry
    from pren.runs.folder import RunFolder
    from pren.runs.train import train

    given = {"data": data, "root": root, "split": split, "setting": setting, "method": method}
    base = RunFolder.open(out).config().model_dump() if resume and out is not None else None
    wanted = options.build_config(config, given, params, base).resolved()
    folder = out or Path("runs") / "-".join([Path(wanted.data).stem, wanted.method, str(wanted.params.get("seed", 0))])
    command = shlex.join(["pren", *sys.argv[1:]])
    title = f"{get_entry(wanted.method).title} on {wanted.data}"
    with rounds(title, wanted.params.get("rounds", 0)) as on_round, resumable(folder):
        run = train(wanted, folder, resume=resume, command=command, on_round=on_round)
    summary = run_summary(run)
    if json:
        print_json(summary)
    else:
        show_summary(summary)
