"""Times of several tasks, measured in turns.

On a machine that others use too, two blocks of measurements one after the other compare two loads rather than two
programs. So the tasks take turns, and what is compared is the median (or the best) of each.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Clock = Literal["wall", "cpu"]
CLOCKS: dict[Clock, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True)
class Settings:
    """How a benchmark is run.

    Attributes:
        quick: Tiny sizes and few repetitions: only to see that everything runs.
        clock: "wall", or "cpu" for the processor time of this process: with one thread the same thing on a quiet
            machine, and still meaningful on a busy one.
    """

    quick: bool = False
    clock: Clock = "wall"

    def now(self) -> float:
        """Seconds on the chosen clock."""
        return CLOCKS[self.clock]()


@dataclass
class Timing:
    """The seconds that a task took, once per call."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The figure for ratios."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """The figure for rates: other processes can only add to it."""
        return min(self.seconds)


def interleave(
    tasks: Mapping[str, Callable[[], object]], settings: Settings, rounds: int, calls: int = 1, settle: int = 1
) -> dict[str, Timing]:
    """Time every task `calls` times in each of several rounds.

    Args:
        tasks: What to time, by name.
        settings: Which clock.
        rounds: How often the tasks take turns.
        calls: Timed calls per turn.
        settle: Calls before them that are not timed, so that a turn does not begin with the caches of another's.
    """
    timings = {name: Timing() for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            for _ in range(settle):
                task()
            for _ in range(calls):
                start = settings.now()
                task()
                timings[name].seconds.append(settings.now() - start)
    return timings


class OtherLoad:
    """The load of other processes on the machine since this was made."""

    def __init__(self) -> None:
        self._start = self._read()

    @staticmethod
    def _read() -> tuple[float, float, float] | None:
        """Seconds: of the clock, of all processors' work, of our own work (children that ended included)."""
        stat = Path("/proc/stat")
        if not stat.exists():
            return None
        user, nice, system, _, _, irq, softirq = (int(n) for n in stat.read_text().split()[1:8])
        busy = (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
        ours = os.times()
        return time.perf_counter(), busy, sum(ours[:4])

    def share(self) -> float | None:
        """Processor time of others over that of all cores, 0 to 1; None if it is not known."""
        end = self._read()
        if self._start is None or end is None:
            return None
        elapsed, busy, ours = (b - a for a, b in zip(self._start, end, strict=True))
        return max(0.0, busy - ours) / (elapsed * (os.cpu_count() or 1))
