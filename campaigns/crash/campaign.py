"""Kill ``pren fit`` at random moments, resume, and compare.

Every run is a real process, killed with SIGKILL three to eight times and resumed by another real process (which is
killed in its turn) until it ends by itself. It then has to be the same, bit by bit, as an uninterrupted run.
"""

from __future__ import annotations

import math
import shutil
import signal
import time
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pren
from campaigns.crash.comparison import differences
from campaigns.crash.moments import Draw, draw_moments, wait_for
from campaigns.crash.phases import PHASES
from campaigns.crash.processes import HANGS, Case, process
from campaigns.crash.reference import Reference, hash_models, measure, seconds_of_imports
from pren.foundation.files import sha256
from pren.methods.storage import MODEL_FILE

# Short rounds with large checkpoints: kills often hit a write.
SHARED: dict[str, Any] = {"dim": 8, "rounds": 10, "hidden": [128, 128], "batch_size": 32, "first_rounds": 4}
IMAGES: dict[str, Any] = {**SHARED, "heads": 4, "initial_batches": 2, "batches": 1}
FEATURES: dict[str, Any] = {**SHARED, "heads": 8, "initial_batches": 5, "batches": 5}
USER_CAN_MEND = 2  # the exit code of `pren` for an error of the user


class LostError(Exception):
    """A run cannot be resumed, or ends with another result."""


@dataclass
class Outcome:
    """The outcome of a run.

    Attributes:
        number: Which run of the campaign.
        case: What it trained.
        draws: When it was to be killed.
        phases: What it was doing at each kill that came in time.
        lost: Why it is lost, None if it is not.
    """

    number: int
    case: Case
    draws: list[Draw]
    phases: list[str] = field(default_factory=list)
    lost: str | None = None

    def line(self) -> str:
        """The outcome in one line."""
        phases = ", ".join(f"{times} {name}" for name, times in Counter(self.phases).items())
        end = "ok" if self.lost is None else f"LOST: {self.lost}"
        about = f"{self.case.data} {self.case.setting}"
        return f"run {self.number:3d}  {about:21s}  {len(self.phases)} kills ({phases})  {end}"


def all_cases(seed: int) -> list[Case]:
    """The settings of the runs, which share the campaign's seed."""
    return [
        Case(data, setting, {**params, "seed": seed})
        for data, params in (("numbers", IMAGES), ("numbers-features", FEATURES))
        for setting in ("zsl", "gzsl")
    ]


def make_references(cases: Sequence[Case], folder: Path, jobs: int) -> list[Reference]:
    """Do every case without interruption."""
    folders = [folder / f"reference-{index}" for index in range(len(cases))]
    for path in folders:
        path.mkdir()
    models = [hash_models(case, path / "here") for case, path in zip(cases, folders, strict=True)]
    imports = seconds_of_imports(cases[0], folder)
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(partial(measure, imports=imports), cases, folders, models))


def crash_run(number: int, seed: int, reference: Reference, folder: Path) -> Outcome:
    """Kill and resume one run until it ends by itself, and compare it.

    Args:
        number: Which run of the campaign.
        seed: The campaign's.
        reference: What it has to end with.
        folder: A new folder for the run and what its processes say.
    """
    folder.mkdir()
    outcome = Outcome(number, reference.case, draw_moments(seed, number))
    try:
        _suffer(outcome, reference, folder)
        different = differences(reference.run, folder / "run")
        if different:
            raise LostError(f"ended with something different: {'; '.join(different)}")
    except LostError as error:
        outcome.lost = str(error)
    return outcome


def _suffer(outcome: Outcome, reference: Reference, folder: Path) -> None:
    """Start, kill and resume until a process ends by itself."""
    run, case = folder / "run", outcome.case
    rounds_shown = 0
    for index in range(len(outcome.draws) + 1):
        resume = (run / "config.yaml").is_file()
        kills = index < len(outcome.draws)
        cold = kills and outcome.draws[index].kind == "start"
        with process(case, run, folder / f"log-{index}.txt", resume=resume, cold=cold) as watched:
            if kills:
                wait_for(outcome.draws[index], watched, len(outcome.draws) - index, reference.lengths)
            else:
                watched.wait()
            hung, code = watched.hangs(), watched.kill()
        what = "resuming" if resume else "starting"
        if hung:
            raise LostError(f"{what} hung for {HANGS:.0f} s: {watched.last_words()}")
        if code == 0:
            return
        if code != -signal.SIGKILL:
            raise LostError(f"{what} failed with exit code {code}: {watched.last_words()}")
        outcome.phases.append(watched.phase())
        rounds_shown = _check_model(run, reference, rounds_shown)
        if not (run / "config.yaml").is_file():
            _check_refusal(case, run, folder / f"log-{index}-refusal.txt")


def _check_model(run: Path, reference: Reference, rounds_shown: int) -> int:
    """Check that the model in the folder, if there is one, is complete and not older than before.

    Returns:
        After how many rounds the model is.
    """
    path = run / MODEL_FILE
    if not path.is_file():
        if rounds_shown:
            raise LostError("the model is gone")
        return 0
    try:
        pren.load_model(run)
    except pren.PrenError as error:
        raise LostError(f"the model cannot be loaded: {error}") from error
    found = sha256(path)
    if found not in reference.models:
        raise LostError("the model is not that of any round")
    rounds = reference.models.index(found) + 1
    if rounds < rounds_shown:
        raise LostError(f"the model went back from {rounds_shown} finished rounds to {rounds}")
    return rounds


def _check_refusal(case: Case, run: Path, log: Path) -> None:
    """Check that `--resume` refuses a folder without a run."""
    with process(case, run, log, resume=True) as watched:
        watched.wait()
        hung, code = watched.hangs(), watched.kill()
    if hung:
        raise LostError("resuming what was never begun hung")
    if code != USER_CAN_MEND:
        raise LostError(f"resuming what was never begun ended with exit code {code}, not {USER_CAN_MEND}")


def campaign(
    references: Sequence[Reference],
    folder: Path,
    *,
    kills: int,
    seed: int,
    jobs: int,
    keep: bool = False,
    seconds: float | None = None,
    done: Collection[int] = (),
) -> Iterator[Outcome]:
    """Make runs until there are enough kills, or time is up.

    Args:
        references: What the runs train, in turn.
        folder: Where their folders are made.
        kills: How many processes to kill at least.
        seed: Fixes every draw.
        jobs: How many runs at a time.
        keep: Whether to leave the folders of runs that are not lost.
        seconds: When to start no further run; None for never.
        done: The numbers of runs that need not be done.

    Yields:
        Every run when it is done, in no fixed order.
    """
    end = math.inf if seconds is None else time.monotonic() + seconds
    # If a run is not killed once, another would not be, either.
    numbers = deque(number for number in range(kills + len(done)) if number not in done)
    running: dict[Future[Outcome], int] = {}  # and the expected number of kills
    with ThreadPoolExecutor(jobs) as pool:
        while True:
            while numbers and len(running) < jobs and sum(running.values()) < kills and time.monotonic() < end:
                number = numbers.popleft()
                reference = references[number % len(references)]
                future = pool.submit(crash_run, number, seed, reference, folder / f"run-{number:03d}")
                running[future] = len(draw_moments(seed, number))
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                del running[future]
                outcome = future.result()
                kills -= len(outcome.phases)
                if outcome.lost is None and not keep:
                    shutil.rmtree(folder / f"run-{outcome.number:03d}")
                yield outcome


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    """The figures of a campaign as a table."""
    phases = Counter(name for outcome in outcomes for name in outcome.phases)
    late = sum(len(outcome.draws) for outcome in outcomes if outcome.lost is None) - sum(
        len(outcome.phases) for outcome in outcomes if outcome.lost is None
    )
    rows = [
        ("kills", phases.total()),
        *((f"  {name}", phases[name]) for name in PHASES),
        ("draws that came too late", late),
        ("runs", len(outcomes)),
        ("lost", sum(outcome.lost is not None for outcome in outcomes)),
        ("seconds", round(seconds)),
    ]
    return "\n".join(f"{name:30s}{value:6d}" for name, value in rows)
