"""What describes classes, and classes added later, on CUB: ``python -m benchmarks.words [--test] [METHOD ...]``.

``--weights`` shows instead what PrEN-Pool makes of two sources that count differently, on the folds, and then on the
test classes with what was best on the folds. ``--encoders NAME,NAME`` compares text encoders, also on draws of
`benchmarks.names`.

With METHOD, a name with parameters as for `benchmarks.drawn`, only what becomes of classes that are added later to it.
Validation folds (PS) without ``--test``, CUB's test classes with it. PREN_DATA says where CUB is; names need
the extra ``words``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.bird_sentences import sentences
from benchmarks.names import KINDS, problems
from benchmarks.tables import Table
from pren.cli.options import parse_assignments
from pren.data import load
from pren.data.describe import TEMPLATES as PLAIN
from pren.data.describe import Signatures, combine, encode, in_templates
from pren.methods.base import Method
from pren.methods.registry import create
from pren.problem import ClassTable, Problem
from pren.research.weights import from_ratios

METHODS = [
    "pren-pool",
    "ridge-s2v:features=whitened:refinement=soft-kmeans",
    "sje:features=whitened:refinement=soft-kmeans",
    "ridge-s2v:features=whitened",
    "sje:features=whitened",
]
ADDED = ["pren-pool", "ridge-s2v:features=whitened", "sje:features=whitened"]
REED = "people's sentences (sent_splits.mat)"
ONE, FOUR = "sentences of our own, as one text", "sentences of our own, four rows"
LATER, DRAWS = 10, 3
BIRD = "a photo of a {}, a type of bird."
TEMPLATES = {"names": PLAIN[0], "names, 'a type of bird'": BIRD}
CHOICES = [
    ["attributes"],
    [REED],
    [ONE],
    [FOUR],
    ["names"],
    ["names, 'a type of bird'"],
    ["attributes", REED],
    ["attributes", FOUR],
    ["attributes", "names, 'a type of bird'"],
    [REED, "names, 'a type of bird'"],
    ["attributes", REED, "names, 'a type of bird'"],
]
PAIRS = [["attributes", REED], ["attributes", FOUR], ["attributes", "names, 'a type of bird'"]]
RATIOS = (0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0)
FOLDS = [{"fold": number} for number in (1, 2, 3)]
DRAWN = (0, 6)  # draws of `benchmarks.names`
Numbers = NDArray[np.int64]


class Trial(NamedTuple):
    """A problem whose true classes are known."""

    problem: Problem
    truth: Numbers


def described(source: str, encoder: str = "minilm", **options: Any) -> tuple[Trial, Signatures]:
    """CUB with the signatures of one source."""
    kind = "sentences" if source == REED else "attributes"
    problem, answers = load("cub", features="efflite0.mat", signatures=kind, **options)
    assert answers is not None
    table = problem.classes
    made = Signatures(table.names, table.signatures, {"kind": source})
    if source in (ONE, FOUR):
        texts = [sentences(row) for row in table.signatures]
        made = encode(encoder, table.names, [[" ".join(text)] for text in texts] if source == ONE else texts)
    if source in TEMPLATES:
        plain = [re.sub(r"^\d+\.", "", name) for name in table.names]
        made = encode(encoder, table.names, [in_templates([TEMPLATES[source]], name) for name in plain])
    return Trial(problem, answers.labels), made


def trial(choice: Sequence[str], weights: Sequence[float] | None = None, **options: Any) -> Trial:
    """CUB with signatures of one source or of several, maybe with weights."""
    read = [described(source, **options) for source in choice]
    problem, truth = read[0][0]
    table = problem.classes
    made = combine([signatures for _, signatures in read], table.seen, weights)
    classes = ClassTable.build(table.names, made.values, table.seen, normalise=len(choice) == 1)
    return Trial(replace(problem, classes=classes, source={}), truth)


def encoded(encoder: str, source: str, test: bool) -> list[Trial]:
    """CUB's folds or test classes, described in words by a text encoder."""
    trials = []
    for options in [{}] if test else FOLDS:
        (problem, truth), made = described(source, encoder, **options)
        trials.append(Trial(problem.redescribed(_unit(made.values), {}), truth))
    return trials


def encoded_draws(encoder: str, seen: int, unseen: int) -> Iterator[Trial]:
    """Draws of `benchmarks.names` with sentences through a text encoder."""
    table = load("cub", features="efflite0.mat")[0].classes
    values = encode(encoder, table.names, [sentences(row) for row in table.signatures]).values
    rows = {name: row for row, name in enumerate(table.names)}
    for draw in range(*DRAWN):
        _, problem, truth = next(problems(seen, unseen, draw))
        own = [rows[name] for name in problem.classes.names]
        yield Trial(problem.redescribed(_unit(values[own]), {}), truth)


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths: NDArray[np.float64] = np.linalg.norm(values, axis=1, keepdims=True)
    return values / lengths


def encoders(names: Sequence[str]) -> Table:
    """Top-1 of the same words through several text encoders."""
    table = Table("Top-1 (per cent) by the text encoder", ["words", "method", *(Path(name).name for name in names)])
    asked: list[tuple[str, str, Callable[[str], Iterable[Trial]]]] = [
        (f"{source}, {'test classes' if test else 'folds'}", "pren-pool", partial(encoded, source=source, test=test))
        for test in (False, True)
        for source in (ONE, FOUR, *TEMPLATES)
    ]
    asked += [
        (f"{FOUR}, drawn {seen} + {unseen}", method, partial(encoded_draws, seen=seen, unseen=unseen))
        for method in ("pren-pool", "pren-vote")
        for seen, unseen in KINDS.values()
    ]
    for words, method, trials in asked:
        tops = ([top1(create(method).fit(t.problem), *t) for t in trials(name)] for name in names)
        table.rows.append((words, method, *(f"{np.mean(own):.1f}" for own in tops)))
        print(*table.rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return table


def top1(method: Method, problem: Problem, truth: Numbers) -> float:
    """Per cent right, mean of the classes."""
    right = method.predict(problem.pool) == problem.classes.named(truth)
    return 100 * float(np.mean([right[truth == row].mean() for row in np.unique(truth)]))


def create_from(text: str) -> Method:
    """A method with parameters, as ``sje:features=whitened``."""
    name, *settings = text.split(":")
    return create(name, **parse_assignments(settings))


def sources(test: bool) -> Table:
    """Top-1 for each description of the classes."""
    folds: list[dict[str, Any]] = [{}] if test else FOLDS
    where = "CUB's test classes (PS)" if test else "CUB's validation folds, mean of three"
    table = Table(f"Top-1, {where}", ["signatures", *(method.replace(":", " ") for method in METHODS)])
    for choice in CHOICES:
        trials = [trial(choice, **fold) for fold in folds]
        cells = [f"{np.mean([top1(create_from(m).fit(t.problem), *t) for t in trials]):.1f}" for m in METHODS]
        table.rows.append((" + ".join(choice), *cells))
        print(*table.rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return table


def weights() -> Table:
    """Top-1 for each weight of the second source."""
    columns = ["signatures", *(f"{ratio:g}" for ratio in RATIOS), "test classes, with the best of these"]
    table = Table("Top-1 of PrEN-Pool on CUB's validation folds, by the weight of the second source", columns)
    for pair in PAIRS:
        means = []
        for ratio in RATIOS:
            trials = [trial(pair, from_ratios([1, ratio]), fold=number) for number in (1, 2, 3)]
            means.append(float(np.mean([top1(create_from("pren-pool").fit(t.problem), *t) for t in trials])))
        best = RATIOS[int(np.argmax(means))]
        test = trial(pair, from_ratios([1, best]))
        result = f"{top1(create_from('pren-pool').fit(test.problem), *test):.1f} ({best:g})"
        table.rows.append((" + ".join(pair), *(f"{mean:.1f}" for mean in means), result))
        print(*table.rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return table


def without(problem: Problem, truth: Numbers, rows: Numbers) -> Problem:
    """The same without some unseen classes and their images."""
    table = problem.classes
    kept = np.setdiff1d(np.arange(len(table)), rows)
    names = tuple(table.names[row] for row in kept)
    return replace(
        problem,
        labels=np.searchsorted(kept, problem.labels),
        pool=problem.pool.select(np.flatnonzero(~np.isin(truth, rows))),
        classes=ClassTable(names, table.signatures[kept], table.seen[kept], table.normalised),
    )


def shares(method: Method, problem: Problem, truth: Numbers, rows: Numbers) -> list[float]:
    """Per cent right, mean of the classes: of all unseen classes, of those from the start, of those that came later."""
    place = {name: row for row, name in enumerate(problem.classes.names)}
    found = np.array([place[name] for name in method.predict(problem.pool).tolist()])
    right = {row: float((found[truth == row] == row).mean()) for row in np.unique(truth)}
    groups = (list(right), [row for row in right if row not in rows], list(rows))
    return [100 * float(np.mean([right[row] for row in group])) for group in groups]


def later(test: bool, methods: Sequence[str]) -> Table:
    """Ten unseen classes are added after training, which used neither them nor their inputs."""
    folds: list[dict[str, Any]] = [{}] if test else FOLDS
    where = "CUB's test classes (PS)" if test else "CUB's validation folds"
    columns = ["method", "all from the start", "ten added later", "trained on with them and their images"]
    table = Table(f"Top-1 of all unseen classes (of the old ones, of the ten), {where}", columns)
    for text in methods:
        outcomes: list[list[list[float]]] = []
        for fold in folds:
            problem, truth = trial(["attributes"], **fold)
            start = create_from(text).fit(problem)
            for draw in range(DRAWS):
                unseen = np.flatnonzero(problem.classes.unseen)
                rows = np.sort(np.random.default_rng([LATER, draw]).permutation(unseen)[:LATER])
                before = create_from(text).fit(without(problem, truth, rows))
                grown, continued = before, start  # a method without rounds gives the same
                for row in rows:
                    grown = grown.with_class(problem.classes.names[row], problem.classes.signatures[row])
                if type(start).fit_rounds is not Method.fit_rounds:
                    continued = create_from(text)
                    for _ in continued.fit_rounds(problem, start=before):
                        pass
                outcomes.append([shares(method, problem, truth, rows) for method in (start, grown, continued)])
        cells = [f"{a:.1f} ({b:.1f}, {c:.1f})" for a, b, c in np.mean(outcomes, axis=0)]
        table.rows.append((text.replace(":", " "), *cells))
        print(*table.rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return table


if __name__ == "__main__":
    if "--encoders" in sys.argv:
        print(encoders(sys.argv[sys.argv.index("--encoders") + 1].split(",")).markdown())
        sys.exit()
    if "--weights" in sys.argv:
        print(weights().markdown())
        sys.exit()
    asked = [argument for argument in sys.argv[1:] if argument != "--test"]
    test = "--test" in sys.argv
    if not asked:
        print(sources(test).markdown(), end="\n\n")
    print(later(test, asked or ADDED).markdown())
