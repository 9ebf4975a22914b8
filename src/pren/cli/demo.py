"""``pren demo``: a pile is labelled, then PrEN is compared with its variants; embedded data, two minutes."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pren.cli.bundles import bundled
from pren.cli.fit import show_result
from pren.cli.options import Json, command_line, use_threads
from pren.cli.output import Talk, percent, print_json, say, show_log, stdout, table
from pren.cli.progress import counted, interruptible, rehearsals
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.label.result import RunResult

# Labelled images and the pile are of one kind, as those of one camera are.
SAME_KIND: dict[str, Any] = {"shift": {"slant": 0.0, "blur": 0.0, "noise": 0.0}}
VARIANTS = ("pren", "pren-no-projection", "progressive")
SEEDS = 5
QUICK: dict[str, Any] = {"heads": 20, "rounds": 6, "hidden": (128, 128)}  # the paper: 50, 20, (512, 512)
IMAGES = 20  # how many images of the pile are written out to try `pren predict` on

THE_PILE = """\
Images of two-digit numbers, made of scikit-learn's handwritten digits: 80 numbers have 30 labelled
images each, and a pile has 600 images of the 20 others, made of other samples of the digits. A table
describes every number: which digit the tens are, and which the units. The default method labels the
pile from the pixels; photographs would first go through a trained network."""
THE_PAPER = f"""\
The method of the paper (Ye & Guo, CVPR 2019) and its two variants label the same pile, from the same
pixels. To be quick: {QUICK["heads"]} heads instead of 50, {QUICK["rounds"]} rounds instead of 20, hidden layers
of 128 units instead of 512, and no network below the heads."""


@bundled
def demo(
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder to write to; runs/demo by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help=f"The first of {SEEDS} seeds.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads; beside other busy programs, 1 is fastest.")] = 1,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.html.")] = False,
    json: Json = False,
    talk: Talk,
) -> None:
    """Label a pile of embedded images, then compare PrEN with its variants, in two minutes."""
    show_log(talk)
    use_threads(threads)
    names = (Path(f"runs/demo-{number}" if number > 1 else "runs/demo") for number in count(1))
    folder = out or next(path for path in names if not path.exists())
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PrenError("out-taken", f"{folder} is not an empty folder: choose another with --out.")
    with interruptible(lambda: f"What is finished is in {folder}.", talk.quiet):
        if not json:
            _begin("1. A pile is labelled", THE_PILE)
        result = _label_the_pile(folder, not no_report, talk.quiet)
        if not json:
            say("")
            show_result(replace(result, figures=None))  # as with photographs of one's own, where answers are unknown
            say("")
            say(truth(result))
            _begin("2. PrEN beside its variants", THE_PAPER)
        right = _compare(seed, talk)
    if json:
        print_json({"out": str(folder), "seed": seed, "run": result.to_dict(), "top1": right})
        return
    _show_comparison(right)
    _begin("3. Try next", "")
    for line in _commands(folder):
        say(line)


def truth(result: RunResult) -> str:
    """How many labels of the pile are right, and whether the forecast holds."""
    assert result.forecast is not None
    assert result.figures is not None
    right = 100 * result.figures.top1  # all classes have as many images, so the mean over classes is the share of all
    low, high = result.forecast.percent()
    holds = "the forecast holds" if low <= right <= high else "the forecast misses"
    return f"The answers are known here only because this is a demo: {right:.1f} % of the labels are right, so {holds}."


def verdict(right: Mapping[str, Sequence[float]], first: str, second: str) -> str:
    """Whether two methods differ by more than their seeds do.

    They do if the ranges from a standard deviation below the mean to one above are apart. With five seeds that is
    about what a t-test on the level of 5 % asks for.
    """
    low, high = sorted((first, second), key=lambda title: fmean(right[title]))
    gap = 100 * (fmean(right[high]) - fmean(right[low]))
    spread = 100 * (stdev(right[low]) + stdev(right[high]))
    said = f"{high} is {gap:.1f} points above {low}"
    if gap <= spread:
        return f"{said}, which is within the spread of {spread:.1f}: these seeds do not say which is better."
    return f"{said}, which is beyond the spread of {spread:.1f}."


def _begin(title: str, text: str) -> None:
    say("")
    say(title, style="bold")
    for line in text.splitlines():
        say(line)


def _label_the_pile(folder: Path, report: bool, quiet: bool) -> RunResult:
    """Do what `pren fit` does, and write out some images of the pile."""
    import numpy as np

    from pren.images.files import save_images
    from pren.methods.registry import DEFAULT
    from pren.runs.run import Progress, run_config
    from pren.store.config import RunConfig

    config = RunConfig(data="numbers", options=SAME_KIND, method=DEFAULT)
    with rehearsals(quiet) as on_rehearsal:
        progress = Progress(on_rehearsal=on_rehearsal)
        result = run_config(config, folder / "pile", command=command_line(), report=report, progress=progress)
    assert result is not None
    assert result.outcome is not None
    save_images(result.outcome.problem.pool, np.arange(IMAGES), folder / "images")
    return result


def _compare(first_seed: int, talk: Talk) -> dict[str, list[float]]:
    """The share of right labels of every variant, by title, for every seed."""
    from contextlib import nullcontext

    from pren.data import load
    from pren.evaluation import evaluate
    from pren.methods.registry import METHODS, create
    from pren.trust.quiet import quietly

    problem, answers = load("numbers-features", **SAME_KIND)
    assert answers is not None
    right: dict[str, list[float]] = {METHODS[name].title: [] for name in VARIANTS}
    with (
        counted("", "seeds", talk.quiet) as show,
        nullcontext() if talk.verbose else quietly(),  # which classes got no label in some round is a detail here
    ):
        for done in range(1, SEEDS + 1):
            seed = first_seed + done - 1
            for name in VARIANTS:
                params = {key: value for key, value in QUICK.items() if key not in METHODS[name].preset}
                model = create(name, seed=seed, **params).fit(problem)
                right[METHODS[name].title].append(evaluate(model, problem, answers).top1)
            figures = ", ".join(f"{title} {percent(values[-1])}" for title, values in right.items())
            show(done, SEEDS, f"seed {seed}: {figures}")
    return right


def _show_comparison(right: Mapping[str, Sequence[float]]) -> None:
    say("")
    cells = [(title, percent(fmean(values)), percent(stdev(values))) for title, values in right.items()]
    stdout().print(table([f"labels that are right, per cent, {SEEDS} seeds", "mean", "standard deviation"], cells), "")
    say("The spread of two methods is the sum of their standard deviations.")
    pren, *variants = right
    for variant in variants:
        say(verdict(right, pren, variant))


def _commands(folder: Path) -> list[str]:
    """What to try, as lines that can be copied."""
    pren = "pren" if shutil.which("pren") else sys.argv[0]  # after `make demo` it is .venv/bin/pren
    run, images, labels = (shlex.quote(str(folder / name)) for name in ("pile", "images", "labels.csv"))
    commands = {
        f"suggest {run}": "which labels to check first",
        f"predict {run} {images} --out {labels}": "label more images",
        f"report {run}": "write the report again",
        "fit YOURFOLDER": "your own photographs, see docs/guide/own-data.md",
    }
    width = max(map(len, commands))
    return [f"  {shlex.quote(pren)} {command:{width}}  # {why}" for command, why in commands.items()]
