"""What classes are described by, and classes that are added later, on CUB: ``python -m benchmarks.words [--test]``.

Validation folds (PS) without ``--test``, CUB's test classes with it. PREN_DATA says where CUB is; names need
``pip install 'pren[text]'``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Table
from pren.cli.options import parse_assignments
from pren.data import load
from pren.data.class_sources import TEMPLATE
from pren.methods.base import Method
from pren.methods.registry import create
from pren.problem import ClassTable, Problem
from pren.signatures import Signatures, combine, encode, in_template

METHODS = [
    "pren-pool",
    "ridge-s2v:features=whitened:refinement=soft-kmeans",
    "sje:features=whitened:refinement=soft-kmeans",
    "ridge-s2v:features=whitened",
    "sje:features=whitened",
]
BIRD = "a photo of a {}, a type of bird."
TEMPLATES = {"names": TEMPLATE, "names, 'a type of bird'": BIRD}
CHOICES = [
    ["attributes"],
    ["sentences"],
    ["names"],
    ["names, 'a type of bird'"],
    ["attributes", "sentences"],
    ["attributes", "names, 'a type of bird'"],
    ["sentences", "names, 'a type of bird'"],
    ["attributes", "sentences", "names, 'a type of bird'"],
]
Numbers = NDArray[np.int64]


class Trial(NamedTuple):
    """A problem whose true classes are known."""

    problem: Problem
    truth: Numbers


def described(source: str, **options: Any) -> tuple[Trial, Signatures]:
    """CUB with signatures of one source, as it gives them."""
    kind = "sentences" if source == "sentences" else "attributes"
    problem, answers = load("cub", features="efflite0.mat", signatures=kind, **options)
    assert answers is not None
    table = problem.classes
    made = Signatures(table.names, table.signatures, {"kind": source})
    if source in TEMPLATES:
        plain = [re.sub(r"^\d+\.", "", name) for name in table.names]
        made = encode("minilm", table.names, [[in_template(TEMPLATES[source], name)] for name in plain])
    return Trial(problem, answers.labels), made


def trial(choice: Sequence[str], **options: Any) -> Trial:
    """CUB with signatures of one source or of several."""
    read = [described(source, **options) for source in choice]
    problem, truth = read[0][0]
    table = problem.classes
    made = combine([signatures for _, signatures in read], table.seen)
    classes = ClassTable.build(table.names, made.values, table.seen, normalise=len(choice) == 1)
    return Trial(replace(problem, classes=classes, source={}), truth)


def top1(method: Method, problem: Problem, truth: Numbers) -> float:
    """Per cent right, mean of the classes."""
    right = method.predict(problem.pool) == truth
    return 100 * float(np.mean([right[truth == row].mean() for row in np.unique(truth)]))


def create_from(text: str) -> Method:
    """A method with parameters, as ``sje:features=whitened``."""
    name, *settings = text.split(":")
    return create(name, **parse_assignments(settings))


def sources(test: bool) -> Table:
    """Top-1 by what describes the classes."""
    folds: list[dict[str, Any]] = [{}] if test else [{"fold": number} for number in (1, 2, 3)]
    where = "CUB's test classes (PS)" if test else "CUB's validation folds, mean of three"
    table = Table(f"Top-1, {where}", ["signatures", *(method.replace(":", " ") for method in METHODS)])
    for choice in CHOICES:
        trials = [trial(choice, **fold) for fold in folds]
        cells = [f"{np.mean([top1(create_from(m).fit(t.problem), *t) for t in trials]):.1f}" for m in METHODS]
        table.rows.append((" + ".join(choice), *cells))
        print(*table.rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return table


if __name__ == "__main__":
    print(sources("--test" in sys.argv).markdown())
