"""``pren demo``: PrEN-Pool, PrEN, its variants and an inductive baseline on the embedded data, in a few minutes."""

from __future__ import annotations

import shutil
import sys
import time
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from pren.cli.options import Json, Threads, command_line
from pren.cli.output import Talk, percent, print_json, say, show_log, stderr, stdout, table
from pren.cli.progress import interruptible, rounds
from pren.foundation.errors import PrenError

METHODS = ("pren-pool", "pren", "pren-no-projection", "progressive", "eszsl")
# The paper has 20 rounds and larger heads; so the demo ends in three minutes on two cores.
QUICK: dict[str, Any] = {"rounds": 8, "dim": 10, "hidden": (128, 128)}
INTRODUCTION = f"""\
80 two-digit numbers have labelled images, 20 have none. Those are recognised
from their signatures (which tens, which units), although their handwriting is
slanted, blurred and noisy. To be quick: {QUICK["rounds"]} rounds instead of the paper's 20,
and heads of (128, 128) units instead of (512, 512).
"""
REMARK = """\
PrEN-Pool, the default of 'pren fit', wants the features of a trained backbone.
Here it gets bare pixels, slanted, blurred and noisy; PrEN trains a small
network on them.
"""
IMAGES = 20  # how many pool images are written out to try `pren predict` on


def demo(
    out: Annotated[Path | None, typer.Option(help="Where to put the runs; runs/demo by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result, with as many threads.")] = 0,
    threads: Threads = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.html.")] = False,
    json: Json = False,
) -> None:
    """Recognise two-digit numbers nobody ever labelled: trains PrEN-Pool, PrEN and rivals on embedded data."""
    show_log(Talk())
    from pren.methods.registry import DEFAULT
    from pren.runs.store.folder import REPORT_FILE
    from pren.trust import Trust

    names = (Path(f"runs/demo-{number}" if number > 1 else "runs/demo") for number in count(1))
    folder = out or next(path for path in names if not path.exists())
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PrenError("out-taken", f"{folder} is not an empty folder: choose another with --out.")
    stderr().print(INTRODUCTION)
    rows = [_run(name, folder / name, seed, no_report) for name in METHODS]
    _write_images(folder / "images")
    trust = Trust.load(folder / DEFAULT)
    assert trust is not None
    forecast = trust.forecast
    if json:
        found = {"results": rows, "forecast": forecast.model_dump(mode="json")}
        print_json({"out": str(folder), "seed": seed, **found})
        return
    stdout().print(f"\n[bold]On the 20 classes that were never labelled (per cent, seed {seed})[/]")
    cells = [(row["title"], percent(row["top1"]), percent(row["macc"]), f"{row['seconds']:.0f} s") for row in rows]
    stdout().print(table(["", "Top-1", "mAcc", "time"], cells), "")
    stdout().print(REMARK)
    say(f"PrEN-Pool said before it saw an answer: {forecast.sentence()}")
    pren = "pren" if shutil.which("pren") else sys.argv[0]  # after `make demo` it is .venv/bin/pren
    run, images = folder / "pren", folder / "images"
    if not no_report:
        say(f"To look at, in a browser: {folder / DEFAULT / REPORT_FILE}, and for PrEN {run / REPORT_FILE}")
    say(f"The run folder is {run}. Try next:")
    for arguments in (
        f"show {run}",
        f"evaluate {run}",
        f"predict {run} {images / 'image-0000.png'}",
        f"predict {run} {images} --out predictions.csv",
        "fit numbers --method pren --out runs/numbers     # all 20 rounds",
    ):
        say(f"  {pren} {arguments}")


def _run(name: str, folder: Path, seed: int, no_report: bool) -> dict[str, Any]:
    """Train one method, with the demo's settings where it has them."""
    from pren.cli.fit import how_to_resume
    from pren.methods.registry import DEFAULT, METHODS
    from pren.runs.config import RunConfig
    from pren.runs.run import Progress, run_config

    entry = METHODS[name]
    wanted = {**QUICK, "seed": seed}.items()
    params = {key: value for key, value in wanted if key in entry.method.params and key not in entry.preset}
    rehearsals = None if name == DEFAULT else 0
    config = RunConfig(data="numbers", method=name, params=params, rehearsals=rehearsals)
    began = time.perf_counter()
    with rounds(entry.title) as on_round, interruptible(lambda: how_to_resume(folder)):
        result = run_config(config, folder, command=command_line(), report=not no_report, progress=Progress(on_round))
    assert result is not None
    assert result.figures is not None
    seconds = round(time.perf_counter() - began, 1)
    figures = result.figures
    return {"method": name, "title": entry.title, "top1": figures.top1, "macc": figures.macc, "seconds": seconds}


def _write_images(folder: Path) -> None:
    """Some images of the pool, to try `pren predict` on."""
    import numpy as np

    from pren.data import load
    from pren.images.files import save_images

    problem, _ = load("numbers")
    save_images(problem.pool, np.arange(IMAGES), folder)
