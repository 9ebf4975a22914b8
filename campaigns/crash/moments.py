"""When to kill: drawn at random, the same for the same seed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from campaigns.crash.processes import Process
from campaigns.crash.reference import Lengths

Kind = Literal["start", "time", "checkpoint", "publish", "end"]
# Imports take most of a short process's time, but there is little in them that a kill could harm.
CHANCES: dict[Kind, float] = {"start": 0.08, "time": 0.30, "checkpoint": 0.22, "publish": 0.22, "end": 0.18}
FEWEST, MOST = 3, 8  # kills of one run: resuming a resumed run is the hard case
# Seconds from the sighting of a write to the kill: about as long as it takes to write.
LONGEST_DELAYS: dict[Kind, float] = {"checkpoint": 0.030, "publish": 0.005}
BEYOND = 1.15  # how far after the end of the run a kill may be aimed at, as a share of what it takes


@dataclass(frozen=True)
class Draw:
    """One moment.

    Attributes:
        kind: "start" (while a cold process imports), "time" (any time after), "checkpoint" or "publish" (when a
            checkpoint or a file of the run folder is seen to appear or change), "end" (after the last round's
            checkpoint).
        place: Where in what is left of the run, from 0 to 1.
        delay: Only for "checkpoint" and "publish": seconds from the sighting to the kill.
    """

    kind: Kind
    place: float
    delay: float

    def __str__(self) -> str:
        return f"{self.kind} {self.place:.4f}" + (f" +{1000 * self.delay:.1f} ms" if self.delay else "")


def draw_moments(seed: int, number: int) -> list[Draw]:
    """The moments at which a run is killed; they depend on nothing but the campaign's seed and the run's number."""
    rng = np.random.default_rng([seed, number])
    count = int(rng.integers(FEWEST, MOST + 1))
    kinds = rng.choice(list(CHANCES), count, p=list(CHANCES.values())).tolist()
    draws = [Draw(kind, float(rng.random()), float(rng.uniform(0, LONGEST_DELAYS.get(kind, 0.0)))) for kind in kinds]
    return sorted(draws, key=lambda draw: draw.kind == "end")  # what comes after the end is at the end too


def wait_for(draw: Draw, watched: Process, kills_left: int, lengths: Lengths) -> None:
    """Watch a process until the moment has come, or until it has ended or hangs.

    Args:
        draw: The moment.
        watched: The process, just started.
        kills_left: How many kills the run has still to suffer, this one included.
        lengths: Of the uninterrupted run.
    """
    left = watched.rounds_left
    # The first of so many moments spread evenly over what is left: so the kills of a run are spread evenly over it,
    # although each can only fall after the one before.
    place = 1 - (1 - draw.place) ** (1 / kills_left)
    if draw.kind == "start":
        _pause(watched, since=watched.started, seconds=draw.place * lengths.start)
    elif draw.kind in LONGEST_DELAYS:
        # After the last round there is no checkpoint to come, but about as many files as in another round.
        what, share = (draw.kind, left) if left else ("publish", 1 / (watched.case.rounds + 1))
        nth = 1 + int(place * lengths.sightings[what] * share)
        if watched.wait_until(lambda: watched.sightings[what] >= nth):
            time.sleep(draw.delay)
    elif draw.kind == "time":
        whole = lengths.loading + lengths.rounds * left + lengths.end * BEYOND
        _pause_after(watched, "words", place * whole)
    elif left:
        _pause_after(watched, "last", draw.place * lengths.end * BEYOND)
    else:
        _pause_after(watched, "words", draw.place * (lengths.loading + lengths.end * BEYOND))


def _pause_after(watched: Process, event: str, seconds: float) -> None:
    if watched.wait_until(lambda: event in watched.seen):
        _pause(watched, watched.seen[event], seconds)


def _pause(watched: Process, since: float, seconds: float) -> None:
    watched.wait_until(lambda: time.monotonic() - since >= seconds)
