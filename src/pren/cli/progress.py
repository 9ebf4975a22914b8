"""Live progress: one line per finished round or part, and a bar where there is a terminal."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pren.cli.output import safe, stderr

if TYPE_CHECKING:
    from pren.core.progressive import Round
    from pren.methods.base import Method
    from pren.runs.train import OnRound
    from pren.vision.extraction import OnProgress

SECONDS_BETWEEN_LINES = 10


@contextmanager
def rounds(title: str, quiet: bool = False) -> Iterator[OnRound | None]:
    """Show the rounds of a run.

    Args:
        title: What is being trained.
        quiet: Show nothing; of several processes, one speaks.

    Yields:
        What to call after every round.
    """
    if quiet:
        yield None
        return
    with _bar(title, "training") as (console, update):

        def show(done: Round, method: Method) -> None:
            figures = "   ".join(_figure(name, value) for name, value in done.figures.items() if value)
            console.print(f"  {done.kind} {done.number:2d}/{done.of}   {figures}")
            update(done.number, done.of)

        yield show


def _figure(name: str, value: float) -> str:
    """A figure of a round: whole numbers after their name, others with three digits."""
    shown = f"{value:8.3f}" if isinstance(value, float) else f"{value:5d}"
    return f"{name.replace('_', '-')} {shown}"


@contextmanager
def extraction(quiet: bool = False) -> Iterator[OnProgress | None]:
    """Show how far an extraction is, how fast it goes and how long it will take.

    Args:
        quiet: Show nothing; of several processes, one speaks.

    Yields:
        What to call after every batch.
    """
    if quiet:
        yield None
        return
    console = stderr()
    columns = (
        TextColumn("  extracting"),
        BarColumn(24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("extracting", total=None, visible=False, rate="")
        started = said = last = time.monotonic()
        before = 0

        def show(done: int, fresh: int, total: int) -> None:
            nonlocal started, said, last, before
            now = time.monotonic()
            if done < before:  # other files begin: first the labelled ones, then the pool
                started = last
            last, before = now, done
            rate = fresh / max(now - started, 1e-9)
            progress.update(task, completed=done, total=total, visible=fresh > 0, rate=f"{rate:.0f} images/s")
            if not console.is_terminal and now - said > SECONDS_BETWEEN_LINES:
                said = now
                console.print(f"  extracted {done}/{total}   {rate:.0f} images/s   {(total - done) / rate:.0f} s left")

        yield show


@contextmanager
def resumable(folder: Path, quiet: bool = False) -> Iterator[None]:
    """On Ctrl-C, say what is left and how to go on (unless told to be quiet), and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        if quiet:
            raise typer.Exit(130) from None
        from pren.methods.storage import MODEL_FILE

        left = "The model of the last finished round is kept and can be used."
        if not (folder / MODEL_FILE).is_file():
            left = "No round was finished yet."
        stderr().print(
            f"Interrupted. {left} Go on with: pren fit --resume --out {safe(shlex.quote(str(folder)))}", soft_wrap=True
        )
        raise typer.Exit(130) from None


@contextmanager
def counted(title: str, unit: str) -> Iterator[Callable[[int, int, str], None]]:
    """Show work of which the parts are counted.

    Args:
        title: What is being done.
        unit: What the parts are called.

    Yields:
        What to call after every part, with how many are done, how many there are, and a line about the last one.
    """
    with _bar(title, unit) as (console, update):

        def say(done: int, total: int, line: str) -> None:
            console.print(f"  {done:3d}/{total}   {safe(line)}", soft_wrap=True)
            update(done, total)

        yield say


@contextmanager
def continued(folder: Path) -> Iterator[None]:
    """On Ctrl-C, say that the same command goes on, and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        stderr().print(
            f"Interrupted. What was finished is kept in {safe(folder)}: the same command goes on from there.",
            soft_wrap=True,
        )
        raise typer.Exit(130) from None


@contextmanager
def _bar(title: str, unit: str) -> Iterator[tuple[Console, Callable[[int, int], None]]]:
    """A title, and a bar where there is a terminal."""
    console = stderr()
    columns = (TextColumn("  {task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(unit, total=None)
        console.print(f"[bold]{safe(title)}[/]")
        yield console, lambda done, total: progress.update(task, completed=done, total=total)
