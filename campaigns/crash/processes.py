"""Real ``pren fit`` processes: started, watched and killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns.crash.forks import ENVIRONMENT, Forked
from campaigns.crash.phases import Snapshot, phase, rounds_on_disk, snapshot
from pren.store.manifest import MANIFEST

COMMAND = (sys.executable, "-m", "pren.cli")
HANGS = 120.0  # seconds after which a process is taken to hang
STARTING, RUNNING = 0.005, 0.0005  # seconds between two looks: while it imports, and when it may write any moment


@dataclass(frozen=True)
class Case:
    """What the runs of a campaign train.

    Attributes:
        data: A registered name.
        setting: "zsl" or "gzsl".
        params: Parameters of the method; `rounds` among them.
    """

    data: str
    setting: str
    params: dict[str, Any]

    @property
    def rounds(self) -> int:
        """The number of the last round."""
        return int(self.params["rounds"])

    def command(self, out: Path, *, resume: bool) -> list[str]:
        """The arguments of ``pren`` that start the run, or go on with it."""
        if resume:
            return ["fit", "--resume", str(out), "--no-report"]
        assignments = [f"--set={key}={value}" for key, value in self.params.items()]
        options = ["--method", "pren", "--setting", self.setting, *assignments]
        return ["fit", self.data, *options, "--no-report", "--out", str(out)]


class Process:
    """A process at work in a run folder, and what could be seen of it so far.

    A cold one has still to import everything, the others are forked from one that has.

    Attributes:
        before: The run folder when the process was started.
        started: When that was.
        seen: When something was first seen: "words" (everything is imported), "config", "last" (the last round's
            checkpoint), "finished".
        sightings: How many new or changed files were seen in the run folder ("publish"), and how many new folders in
            its checkpoint/ ("checkpoint"), whatever their names: a write that does not go to a temporary name first is
            the one that most needs to be hit.
    """

    def __init__(self, case: Case, run: Path, log: Path, *, resume: bool, cold: bool = False) -> None:
        self.case, self.run, self.log = case, run, log
        self.before: Snapshot = snapshot(run)
        self.seen: dict[str, float] = {}
        self.sightings: Counter[str] = Counter()
        self._marks = self._entries()[1]
        log.touch()
        command = case.command(run, resume=resume)
        self._process = _start_cold(command, log) if cold else Forked(command, ENVIRONMENT, log, log.parent)
        self.started = time.monotonic()

    @property
    def rounds_left(self) -> float:
        """The share of the rounds that was still to be done when the process was started."""
        done = rounds_on_disk(self.before)
        number = int(done[-1].rpartition("-")[2]) if done else -1
        return (self.case.rounds - number) / (self.case.rounds + 1)

    def wait_until(self, condition: Callable[[], bool]) -> bool:
        """Watch until the condition holds; False if the process ends first or hangs."""
        while self._process.poll() is None and not self.hangs():
            self._look()
            if condition():
                return True
            time.sleep(RUNNING if "words" in self.seen else STARTING)
        return False

    def wait(self) -> None:
        """Watch until the process ends or hangs."""
        self.wait_until(lambda: False)

    def hangs(self) -> bool:
        """Whether it has taken too long."""
        return time.monotonic() - self.started > HANGS

    def kill(self) -> int:
        """Send SIGKILL, which nothing can catch.

        Returns:
            The exit code: -9, or what it was if the process had ended by itself.
        """
        self._process.kill()
        return self._process.wait()

    def phase(self) -> str:
        """What the process was doing when it died."""
        return phase(self.before, snapshot(self.run), self.case.rounds, spoke=self.log.stat().st_size > 0)

    def last_words(self) -> str:
        """The end of what it said."""
        return " | ".join(self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:])

    def _look(self) -> None:
        now = time.monotonic()
        if self.log.stat().st_size:
            self.seen.setdefault("words", now)
        names, marks = self._entries()
        for event, name in (
            ("config", "config.yaml"),
            ("last", f"round-{self.case.rounds:04d}"),
            ("finished", MANIFEST),
        ):
            if name in names:
                self.seen.setdefault(event, now)
        self.sightings.update(place for place, _, _ in marks - self._marks)
        self._marks = marks

    def _entries(self) -> tuple[set[str], set[tuple[str, int, int]]]:
        """All names in the two folders written to, and marks (place, inode, time) that renaming leaves alone."""
        names: set[str] = set()
        marks: set[tuple[str, int, int]] = set()
        with suppress(OSError), os.scandir(self.run) as entries:  # it may not be made yet
            for entry in entries:
                names.add(entry.name)
                with suppress(OSError):  # renamed since
                    if not entry.is_dir():
                        marks.add(("publish", entry.inode(), entry.stat().st_mtime_ns))
        with suppress(OSError), os.scandir(self.run / "checkpoint") as entries:
            for entry in entries:
                names.add(entry.name)
                marks.add(("checkpoint", entry.inode(), 0))
        return names, marks


def _start_cold(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen([*COMMAND, *command], env=ENVIRONMENT, stdout=file, stderr=file)


@contextmanager
def process(case: Case, run: Path, log: Path, *, resume: bool, cold: bool = False) -> Iterator[Process]:
    """Start a process that does not outlive the block."""
    started = Process(case, run, log, resume=resume, cold=cold)
    try:
        yield started
    finally:
        started.kill()
