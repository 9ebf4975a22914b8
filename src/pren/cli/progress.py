"""Progress: one line per finished round or part, and a bar in a terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pren.cli.output import say, stderr

if TYPE_CHECKING:
    from pren.core.progressive import Round
    from pren.images.extraction import OnProgress
    from pren.methods.base import Method
    from pren.runs.steps import OnRound
    from pren.trust import OnRehearsal

SECONDS_BETWEEN_LINES = 10
SECONDS_WORTH_A_WORD = 60


@contextmanager
def rounds(title: str, quiet: bool = False) -> Iterator[OnRound | None]:
    """Show the rounds of a run; yields a function to call after each, None if quiet."""
    if quiet:
        yield None
        return
    with counted(title, "training") as show:
        left = TimeLeft()

        def show_round(done: Round, method: Method) -> None:
            figures = [_figure(name, value) for name, value in done.figures.items() if value and not math.isnan(value)]
            line = "   ".join([f"{done.kind} {done.number:2d}/{done.of}", *figures, *left.after(done.of - done.number)])
            show(done.number, done.of, line)

        yield show_round


class TimeLeft:
    """How long the rest of some equal parts takes, from the time of those that are done."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start, self._parts = clock(), 0

    def after(self, left: int) -> list[str]:
        """One more part is done; in words how long `left` others take, nothing if that is not worth a word."""
        self._parts += 1
        from pren.images.duration import in_words

        seconds = (self._clock() - self._start) / self._parts * left
        return [f"about {in_words(seconds)} left"] if seconds > SECONDS_WORTH_A_WORD else []


def _figure(name: str, value: float) -> str:
    """A figure of a round, a float with three digits."""
    shown = f"{value:8.3f}" if isinstance(value, float) else f"{value:5d}"
    return f"{name.replace('_', '-')} {shown}"


@contextmanager
def counted(title: str, unit: str, quiet: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """Show work with counted parts; yields a function of parts done, all parts, and a line to print."""
    if quiet:
        yield lambda done, total, line: None
        return
    with _bar(unit, TimeElapsedColumn()) as (console, progress):
        task = progress.add_task(unit, total=None)
        say(title, console, "bold")

        def show(done: int, total: int, line: str) -> None:
            say(f"  {line}", console)
            progress.update(task, completed=done, total=total)

        yield show


@contextmanager
def extraction(quiet: bool = False, doing: str = "extracting") -> Iterator[OnProgress | None]:
    """Show how many photographs are done, the speed and the time left; yields as `rounds` does."""
    if quiet:
        yield None
        return
    with _bar(doing, TextColumn("{task.fields[rate]}"), TimeRemainingColumn()) as (console, progress):
        task = progress.add_task(doing, total=None, visible=False, rate="")
        started = said = last = time.monotonic()
        before = 0

        def show(done: int, fresh: int, total: int) -> None:
            nonlocal started, said, last, before
            now = time.monotonic()
            if done < before:  # the pool begins after the labelled photographs
                started = last
            last, before = now, done
            rate = fresh / max(now - started, 1e-9)
            progress.update(task, completed=done, total=total, visible=fresh > 0, rate=f"{rate:.0f} photographs/s")
            if fresh and not console.is_terminal and now - said > SECONDS_BETWEEN_LINES:
                said = now
                left = (total - done) / rate
                console.print(f"  {doing} {done}/{total}   {rate:.0f} photographs/s   {left:.0f} s left")

        yield show


@contextmanager
def rehearsals(quiet: bool = False) -> Iterator[OnRehearsal | None]:
    """Show how many rehearsals are done; yields as `rounds` does."""
    if quiet:
        yield None
        return
    with _bar("rehearsing", TimeElapsedColumn()) as (_, progress):
        task = progress.add_task("rehearsing", total=None, visible=False)

        def show(done: int, total: int, right: float) -> None:
            progress.update(task, completed=done, total=total, visible=done < total)

        yield show


@contextmanager
def interruptible(how_to_go_on: Callable[[], str], quiet: bool = False) -> Iterator[None]:
    """On Ctrl-C, print how to continue unless quiet, and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        if not quiet:
            say(f"Interrupted. {how_to_go_on()}", stderr())
        raise typer.Exit(130) from None


def continued(folder: Path, quiet: bool = False) -> AbstractContextManager[None]:
    """On Ctrl-C, print that the same command continues unless quiet, and exit with 130."""
    return interruptible(lambda: f"Finished work is kept in {folder}: the same command continues.", quiet)


@contextmanager
def _bar(label: str, *columns: ProgressColumn) -> Iterator[tuple[Console, Progress]]:
    """A bar, hidden unless in a terminal."""
    console = stderr()
    shown = (TextColumn(f"  {label}"), BarColumn(24), MofNCompleteColumn(), *columns)
    with Progress(*shown, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield console, progress
