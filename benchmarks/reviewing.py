"""How long a person waits on the review page: ``python -m benchmarks.reviewing``.

The state of a review of 100,000 photographs and 500 classes, as the page asks for it; and a fit after an answer, of
3,000 photographs with 1,280 features and 50 unseen classes, without and with the forecast. Made-up features and labels.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.tables import Table
from pren.problem import Answers, ClassTable, Problem
from pren.review import facts
from pren.review.journal import Verdict
from pren.review.session import Change
from pren.review.snapshot import Snapshot
from pren.runs.fit import fit

REPEATS = 20


def review(photographs: int, classes: int) -> Any:
    """What the facts need of a session."""
    rng = np.random.default_rng(0)
    names = [f"class {row}" for row in range(classes + 10)]
    seen = np.arange(classes + 10) >= classes
    table = ClassTable.build(names, rng.random((classes + 10, 85)), seen)
    labels = rng.integers(0, classes, photographs)
    confidence = rng.random(photographs)
    snapshot = Snapshot(
        position=0,
        table=table,
        candidates=np.arange(classes),
        labels=labels,
        scores=rng.random(photographs),
        confidence=confidence,
        familiarity=np.ones(photographs),
        likely=rng.integers(0, classes, (photographs, 5)),
        queue=np.argsort(confidence),
        names={},
        forecast=(80, 90),
        sentence="",
    )
    files = [f"{place:06d}.jpg" for place in range(photographs)]
    verdicts = {files[place]: Verdict(names[0]) for place in range(1000)}
    journal = SimpleNamespace(position=1000, verdicts=lambda: verdicts, group_verdicts=lambda after: {})
    refitter = SimpleNamespace(doing="nothing", failure="")
    return SimpleNamespace(
        snapshot=snapshot,
        first=snapshot,
        journal=journal,
        refitter=refitter,
        files=files,
        place={name: place for place, name in enumerate(files)},
        change=Change(),
        steady=0,
        revision=1,
        learned=True,
        title="",
        setting="zsl",
    )


def problem(photographs: int, unseen: int, seen: int = 100, each: int = 30, width: int = 1280) -> Problem:
    """Classes around centres that their descriptions say roughly."""
    rng = np.random.default_rng(0)
    signatures = rng.random((seen + unseen, 85))
    centres = signatures @ rng.normal(size=(85, width))
    labels = np.repeat(np.arange(seen), each)
    pool = rng.integers(seen, seen + unseen, photographs)
    train, pile = (centres[which] + 4 * rng.normal(size=(len(which), width)) for which in (labels, pool))
    names = [f"class {row}" for row in range(seen + unseen)]
    table = ClassTable.build(names, signatures, np.arange(seen + unseen) < seen)
    return Problem.from_arrays(
        train.astype(np.float32),
        np.array(names)[labels],
        table.signatures,
        pile.astype(np.float32),
        names,
    )


def timed(what: str, run: Callable[[], Any], repeats: int) -> list[str]:
    """The median and the 95th percentile in milliseconds."""
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        took.append(1000 * (time.perf_counter() - start))
    return [what, f"{np.median(took):.0f}", f"{np.percentile(took, 95):.0f}"]


def run() -> Table:
    """All waits."""
    session = review(100_000, 500)
    table = Table("Waits on the review page", ["what", "median, ms", "p95, ms"])
    table.rows.append(timed("state, 100,000 photographs", lambda: json.dumps(facts.state(session)), REPEATS))
    page = ("doubt", "", 0, 120)
    table.rows.append(timed("a page of the grid", lambda: json.dumps(facts.photographs(session, *page)), REPEATS))
    pile = problem(3000, 50)
    names = tuple(f"{place}.jpg" for place in range(3000))
    pair = (pile, Answers(np.full(3000, -1), names))
    first = fit(pair, method="pren-vote", report=False, rehearsals=2)
    assert first.outcome is not None
    trust = first.outcome.trust

    def quick() -> Snapshot:
        return Snapshot.of(fit(pair, method="pren-vote", report=False, rehearsals=0), names, 1, trust)

    table.rows.append(timed("an answer's labels, 3,000 photographs", quick, REPEATS))
    table.rows.append(
        timed("its forecast", lambda: Snapshot.of(fit(pair, method="pren-vote", report=False), names, 1), 2)
    )
    return table


if __name__ == "__main__":
    print(run().markdown())
