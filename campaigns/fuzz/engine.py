"""Properties, and hypothesis at work on them."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from campaigns.fuzz.command import TOO_LARGE, TooLarge
from campaigns.fuzz.templates import Workshop
from campaigns.journal import Journal

BLOCK = 100  # cases that hypothesis plans at once; time is checked between blocks
STEP = 1_000_003  # between the seeds of blocks, so that neighbouring seeds share none


@dataclass(frozen=True)
class Property:
    """A property that must hold in every case.

    Attributes:
        name: For the table and ``--only``.
        share: Of all cases.
        cases: Where cases come from.
        check: Runs a case and returns the name of its outcome; raises if the property does not hold.
    """

    name: str
    share: float
    cases: SearchStrategy[Any]
    check: Callable[[Workshop, Any], str]


@dataclass
class Report:
    """The outcome of a property.

    Attributes:
        outcomes: How many cases had which outcome.
        seconds: How long they took.
        failure: The smallest case that fails and why; "" if none does.
        repeat: The arguments that lead to the failure again.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    failure: str = ""
    repeat: str = ""


def run(
    prop: Property,
    workshop: Workshop,
    cases: int,
    seed: int,
    seconds: float | None = None,
    journal: Journal = Journal(None),  # noqa: B008 - writes nothing
) -> Report:
    """Try cases of a property in blocks until one fails or time is up, without those in the journal."""
    report = Report()
    known = {entry["seed"]: entry for entry in journal.read(prop.name)}
    for block, start in enumerate(range(0, cases, BLOCK)):
        if seconds is not None and report.seconds > seconds:
            break
        size, its_seed, began = min(BLOCK, cases - start), seed + block * STEP, time.perf_counter()
        if (entry := known.get(its_seed)) is None:
            outcomes: Counter[str] = Counter()
            try:
                hypothesis.seed(its_seed)(as_test(prop, workshop, outcomes, max_examples=size))()
            except Exception as error:  # any error of a case is a finding
                report.failure = _explain(error)
                report.repeat = f"--only '{prop.name}' --cases {size} --seed {its_seed}"
            entry = {"seed": its_seed, "outcomes": outcomes, "seconds": time.perf_counter() - began}
            if not report.failure:
                journal.add(prop.name, entry)
        report.outcomes.update(entry["outcomes"])
        report.seconds += entry["seconds"]
        if report.failure:
            break
    return report


def as_test(prop: Property, workshop: Workshop, outcomes: Counter[str], **options: Any) -> Callable[[], None]:
    """The property as a hypothesis test, which counts outcomes."""
    chosen = settings(
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        **options,
    )

    @chosen
    @given(case=prop.cases)
    def holds(case: Any) -> None:
        try:
            outcome = prop.check(workshop, case)
        except TooLarge:
            outcome = TOO_LARGE
        outcomes[outcome] += 1

    return holds


def _explain(error: Exception) -> str:
    """The case that fails first, then the innermost frames of what it caused."""
    notes = "\n".join(getattr(error, "__notes__", []))
    frames = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)[-6:]))
    return f"{notes}\n{frames}{type(error).__name__}: {error}"
