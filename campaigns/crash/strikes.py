"""Kill every command that writes files during a write, resume it, and compare.

A hook in the process (``inside/sitecustomize.py``) strikes at the n-th call that changes a file: before it, such as
between the writing of a temporary name and its renaming, or after it, or in the middle of a write.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from campaigns.crash.forks import ENVIRONMENT, PYTHONPATH, Forked
from campaigns.crash.jobs import JOBS, ORDER, Job, prepare
from campaigns.crash.processes import HANGS
from campaigns.crash.talks import talk

FEWEST, MOST = 2, 4  # strikes of one run
LOOK = 0.005  # seconds between two checks of a process


@dataclass
class Struck:
    """The outcome of a run.

    Attributes:
        job: What it was.
        number: Which run of the campaign.
        strikes: What was struck.
        late: How many strikes came too late.
        lost: Why it is lost, None if it is not.
    """

    job: str
    number: int
    strikes: list[str] = field(default_factory=list)
    late: int = 0
    lost: str | None = None

    def line(self) -> str:
        """The outcome in one line."""
        end = "ok" if self.lost is None else f"LOST: {self.lost}"
        return f"strike {self.number:3d}  {self.job:20s}  {len(self.strikes)} kills ({'; '.join(self.strikes)})  {end}"


class Yard:
    """A folder with the inputs of jobs, and with their uninterrupted results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places = prepare(folder)
        self._writes: dict[str, int] = {}  # how many calls change files in an uninterrupted run

    def reference(self, job: Job) -> tuple[Path, int]:
        """The folder of an uninterrupted run, and how many calls have changed files there."""
        place = self.folder / "references" / str(JOBS.index(job))
        if job.name not in self._writes:
            job.make_place(place, self.places)
            code, words = self.run(job, place, "reference")
            if code != 0:
                raise RuntimeError(f"{job.name} failed without a strike: {words}")
            self._writes[job.name] = (place / "reference.count").stat().st_size
        return place / "out", self._writes[job.name]

    def run(self, job: Job, place: Path, name: str, at: int = 0, when: str = "before") -> tuple[int, str]:
        """Run a job in a folder until it ends or is killed; returns its exit code and its last output."""
        count, log = place / f"{name}.count", place / f"{name}.log"
        environment = {
            **ENVIRONMENT,
            "PYTHONPATH": PYTHONPATH,  # for the processes that it starts in its turn
            "PREN_STRIKE_COUNT": str(count),
            "PREN_STRIKE_WITHIN": str(place / "out"),
            "PREN_STRIKE_AT": str(at),
            "PREN_STRIKE_WHEN": when,
        }
        places = {**self.places, "out": str(place / "out"), "cache": str(place / "cache")}
        log.touch()
        process = Forked(job.arguments(places), environment, log, place)
        started, fault = time.monotonic(), ""
        try:
            if job.talk is not None:
                fault = talk(process, log, place, job.talk)
            while process.poll() is None and time.monotonic() - started < HANGS:
                if at and Path(f"{count}.struck").exists():  # one of its processes is struck: all die
                    break
                time.sleep(LOOK)
        finally:
            process.kill()
            code = process.wait()
        words = " | ".join(log.read_text(errors="replace").strip().splitlines()[-3:])
        if time.monotonic() - started >= HANGS:
            return 1, f"it hung for {HANGS:.0f} s: {words}"
        return (1, fault) if fault else (code, words)


def strike_run(yard: Yard, number: int, seed: int) -> Struck:
    """Strike one run several times, let it end, and compare."""
    rng = np.random.default_rng([seed, number, 1])
    job = ORDER[number % len(ORDER)]
    outcome = Struck(job.name, number)
    reference, writes = yard.reference(job)
    place = yard.folder / f"strike-{number:04d}"
    job.make_place(place, yard.places)
    for turn in range(int(rng.integers(FEWEST, MOST + 1))):
        if job.ended(place / "out"):
            outcome.late += 1
            continue
        # What is left to write gets less with every turn.
        at, when = int(rng.integers(1, max(2, writes // (turn + 1)))), str(rng.choice(["before", "after"]))
        code, words = yard.run(job, place, f"turn-{turn}", at, when)
        note = place / f"turn-{turn}.count.struck"
        if note.exists():
            outcome.strikes.append(note.read_text())
            _wait_for_the_others(place / "out")
        elif code == 0:
            outcome.late += 1
        else:
            outcome.lost = f"turn {turn} ended with {code}: {words}"
            return outcome
    code, words = (0, "") if job.ended(place / "out") else yard.run(job, place, "end")
    if code != 0:
        outcome.lost = f"it could not go on ({code}): {words}"
    elif different := job.compare(reference, place / "out"):
        outcome.lost = f"it ended with something different: {'; '.join(different)}"
    return outcome


def _wait_for_the_others(folder: Path) -> None:
    """Wait until the other processes of a command have noticed its end."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and _uses(folder):
        time.sleep(0.05)


def _uses(folder: Path) -> bool:
    """Whether any process was started with this folder among its arguments."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if os.fsencode(folder) in path.read_bytes() and int(path.parent.name) != os.getpid():
                return True
    return False


def strikes(
    folder: Path,
    *,
    kills: int,
    seed: int,
    seconds: float | None,
    keep: bool = False,
    first: int = 0,
    verb: str | None = None,
) -> Iterator[Struck]:
    """Kill until there are enough kills, or time is up.

    Args:
        folder: Where everything is made.
        kills: How many processes to kill at least.
        seed: Fixes what is struck.
        seconds: When to start no further run; None for never.
        keep: Whether to leave the folders of runs that are not lost.
        first: The number of the first run.
        verb: Only runs of this verb of ``pren``; None for all.

    Yields:
        Every run when it is done.
    """
    yard, began, number = Yard(folder), time.monotonic(), first
    while kills > 0 and (seconds is None or time.monotonic() - began < seconds):
        if verb not in (None, ORDER[number % len(ORDER)].command[0]):
            number += 1
            continue
        outcome = strike_run(yard, number, seed)
        kills -= len(outcome.strikes)
        if outcome.lost is None and not keep:
            shutil.rmtree(folder / f"strike-{number:04d}")
        number += 1
        yield outcome


def strikes_summary(outcomes: Sequence[Struck]) -> str:
    """The figures of all strikes as a table."""
    kinds = Counter(" ".join(strike.split()[:-1]) for outcome in outcomes for strike in outcome.strikes)
    jobs = Counter({job.name: 0 for job in JOBS})
    for outcome in outcomes:
        jobs[outcome.job] += len(outcome.strikes)
    rows = [
        ("kills at moments of writing", kinds.total()),
        *((f"  {name}", count) for name, count in sorted(kinds.items())),
        *((f"  in {name}", count) for name, count in jobs.items()),
        ("strikes that came too late", sum(outcome.late for outcome in outcomes)),
        ("runs", len(outcomes)),
        ("lost", sum(outcome.lost is not None for outcome in outcomes)),
    ]
    return "\n".join(f"{name:34s}{value:6d}" for name, value in rows)
