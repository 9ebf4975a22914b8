"""Which group is which class, with good and poor descriptions: ``python -m benchmarks.names FIRST LAST [METHOD ...]``.

Draws FIRST to LAST - 1 of problems from CUB's 150 seen classes, each with four descriptions of the classes: 312
attributes, 15 of them as yes or no, sentences, and the last two together, as `pren fit` joins them. METHOD is a name
with parameters, as for `benchmarks.drawn`. A method that names groups is rehearsed, too: does its forecast hold, are
sure labels right, and are wrong names among those to check? What `pren-vote` does was chosen on draws 0 to 19; no test
class has a part in them. PREN_DATA says where CUB is; --help has more.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.bird_sentences import sentences
from benchmarks.tables import Table
from pren.cli.options import parse_assignments
from pren.data import load
from pren.data.describe import Signatures, combine, encode
from pren.methods.base import Method
from pren.methods.registry import create
from pren.problem import ClassTable, Problem
from pren.problem.inputs import ArrayInputs
from pren.trust import assess
from pren.trust.confidence import SURE
from pren.trust.names import CHECK, Names
from pren.trust.sources import best_sources

DEFAULT = ["pren-pool", "pren-vote", "ridge-s2v:features=whitened:refinement=soft-kmeans"]
KINDS = {"10 + 5": (10, 5), "20 + 10": (20, 10), "40 + 10": (40, 10)}
DESCRIPTIONS = ("attributes", "yes/no", "sentences")
TOGETHER = "yes/no and sentences"
REHEARSALS = 10
CHANGED = 5  # points by which a problem is better or worse
LEAST_GROUP = 3  # a group of fewer inputs has no name that is right or wrong
Numbers = NDArray[np.int64]
Values = NDArray[np.float64]


class Name(NamedTuple):
    """A group of the pool: how sure its name is, and whether most of its inputs are of that class."""

    certainty: float
    right: bool


class Foretold(NamedTuple):
    """A forecast: its range, what was right, whether it says that it is none; how many labels are sure, and right."""

    low: float
    high: float
    right: float
    useless: bool
    sure: int
    sure_right: int


@cache
def _cub() -> tuple[Problem, Values]:
    """CUB's labelled inputs, and the sentences of all its classes."""
    whole = load("cub", features="efflite0.mat")[0]
    table = whole.classes
    return whole, encode("minilm", table.names, [sentences(row) for row in table.signatures]).values


def problems(seen: int, unseen: int, draw: int) -> Iterator[tuple[str, Problem, Numbers]]:
    """One draw: for each description its name, the problem, and the classes of the pool."""
    whole, words = _cub()
    rng = np.random.default_rng([seen, unseen, draw, 29])
    chosen = rng.permutation(np.unique(whole.labels))[: seen + unseen]
    of_class = [np.flatnonzero(whole.labels == row) for row in chosen]
    order = rng.permutation(sum(map(len, of_class)))
    inputs = np.concatenate(of_class)[order]
    labels = np.repeat(np.arange(len(chosen)), list(map(len, of_class)))[order]
    pool = labels >= seen
    train, unlabelled = (ArrayInputs(whole.train[inputs[part]].numpy()) for part in (~pool, pool))
    attributes = whole.classes.signatures[chosen]
    signatures = (attributes, yes_or_no(attributes, seen, rng), words[chosen])
    names, is_seen = [whole.classes.names[row] for row in chosen], np.arange(len(chosen)) < seen
    problem = Problem(train, labels[~pool], unlabelled, ClassTable.build(names, attributes, is_seen))
    unit = {name: _unit(values) for name, values in zip(DESCRIPTIONS, signatures, strict=True)}
    for name, values in unit.items():  # all share what is learned of the inputs
        yield name, problem.redescribed(values, {}), labels[pool]
    pair = [unit[name] for name in DESCRIPTIONS[1:]]
    best = best_sources(joined(problem, pair, (1.0, 1.0)), DESCRIPTIONS[1:]).chosen
    alone = problem.redescribed(unit[best.names[0]], {})
    yield TOGETHER, joined(problem, pair, best.weights) if best.weights else alone, labels[pool]


def _unit(values: Values) -> Values:
    """Rows of length 1."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(lengths > 0, lengths, 1.0)  # a class may have no "yes"


def joined(problem: Problem, tables: Sequence[Values], weights: Sequence[float]) -> Problem:
    """The problem with several signatures side by side."""
    table = problem.classes
    # A class may have no "yes"; what is added to all goes away with the mean.
    sources = [Signatures(table.names, values + 1.0, {"kind": "table"}) for values in tables]
    both = combine(sources, table.seen, weights)
    return problem.redescribed(both.values, both.record())


def yes_or_no(attributes: Values, seen: int, rng: np.random.Generator) -> Values:
    """15 of the 60 attributes that vary most among the seen classes (the first rows): above their median or not."""
    varied = np.argsort(-attributes[:seen].var(axis=0), kind="stable")[:60]
    chosen = attributes[:, rng.choice(varied, 15, replace=False)]
    return (chosen > np.median(chosen[:seen], axis=0)).astype(np.float64)


def named(model: Method, problem: Problem, found: Numbers, truth: Numbers) -> list[Name]:
    """The groups that a model has named; none if it chooses no names."""
    names = Names.of(model, found, problem)
    if names is None:
        return []
    certainty, groups = names.certainty(), {row: truth[found == row] for row in np.unique(found)}
    return [
        Name(float(certainty[row]), bool(np.bincount(group).argmax() == row))
        for row, group in groups.items()
        if len(group) >= LEAST_GROUP
    ]


def foretold(model: Method, problem: Problem, scores: Values, found: Numbers, truth: Numbers) -> Foretold:
    """What rehearsals say of a model, and what is true."""
    trust, right = assess(model, problem, REHEARSALS), found == truth
    confidence = trust.sure(scores, problem.classes, problem.setting, trust.familiar(problem.pool))
    sure, forecast = confidence >= SURE, trust.forecast
    counts = int(sure.sum()), int(right[sure].sum())
    return Foretold(forecast.low, forecast.high, float(right.mean()), forecast.useless, *counts)


def run(
    first: int, last: int, methods: list[str], only: str | None = None, rehearse: bool = True
) -> tuple[Table, Table, Table]:
    """Top-1 of methods in every cell, how many of the names to check are wrong, and whether forecasts hold."""
    right: dict[tuple[str, str], list[float]] = {}
    names: dict[tuple[str, str], list[Name]] = {}
    forecasts: dict[str, list[Foretold]] = {}
    for kind, (seen, unseen) in KINDS.items():
        for draw in range(first, last):
            for description, problem, truth in problems(seen, unseen, draw):
                for method in methods if only in (None, description) else ():
                    name, *settings = method.split(":")
                    model = create(name, **parse_assignments(settings)).fit(problem)
                    scores = model.scores(problem.pool)
                    found = seen + scores[:, seen:].argmax(axis=1)
                    cell = f"{kind}, {description}"
                    right.setdefault((method, cell), []).append(100 * float((found == truth).mean()))
                    names.setdefault((method, cell), []).extend(named(model, problem, found, truth))
                    if rehearse and model.name_shares() is not None:
                        told = foretold(model, problem, scores, found, truth)
                        forecasts.setdefault(f"{method}, {cell}", []).append(told)
            print(kind, draw, file=sys.stderr, flush=True)
    cells = list(dict.fromkeys(cell for _, cell in right))
    title = f"Top-1 (per cent), draws {first} to {last - 1}: mean (worst tenth)"
    scores_of = Table(title, ["cell", *(method.replace(":", " ") for method in methods)])
    for cell in cells:
        scores_of.rows.append((cell, *(_mean_and_worst([right[method, cell]]) for method in methods)))
    scores_of.rows.append(("mean of the cells", *(_mean_and_worst([right[m, c] for c in cells]) for m in methods)))
    scores_of.notes += [_gain(method, methods[0], right, cells) for method in methods[1:]]
    return scores_of, _to_check(names), _forecasts(forecasts)


def _gain(method: str, other: str, right: dict[tuple[str, str], list[float]], cells: list[str]) -> str:
    gains = np.array([right[method, cell] for cell in cells]) - np.array([right[other, cell] for cell in cells])
    error = gains.mean(axis=0).std(ddof=1) / np.sqrt(gains.shape[1]) if gains.shape[1] > 1 else np.nan
    better, worse = int((gains > CHANGED).sum()), int((gains < -CHANGED).sum())
    return (
        f"`{method}` less `{other}`: {gains.mean():+.1f}, standard error {error:.1f}. "
        f"Of {gains.size} problems {better} are better by more than {CHANGED} points, and {worse} are worse by that."
    )


def _mean_and_worst(cells: list[list[float]]) -> str:
    worst = [np.mean(np.sort(draws)[: max(1, len(draws) // 10)]) for draws in cells]
    return f"{np.mean([np.mean(draws) for draws in cells]):.1f} ({np.mean(worst):.1f})"


def _to_check(names: dict[tuple[str, str], list[Name]]) -> Table:
    title = f"Names to check: a certainty of less than {CHECK}"
    table = Table(title, ["method, cell", "names", "wrong", "wrong to check (%)", "right to check (%)"])
    voted = {f"{method}, {cell}": found for (method, cell), found in names.items() if found}
    voted["all"] = [name for found in voted.values() for name in found]
    for cell, found in voted.items():
        doubtful = {right: [n.certainty < CHECK for n in found if n.right == right] for right in (False, True)}
        shares = (f"{100 * np.mean(some):.0f}" if some else "" for some in doubtful.values())
        table.rows.append((cell, str(len(found)), str(len(doubtful[False])), *shares))
    return table


def _forecasts(forecasts: dict[str, list[Foretold]]) -> Table:
    columns = [
        "method, cell",
        "inside (%)",
        "median width",
        "says that it is none (%)",
        "sure labels",
        "of them right (%)",
    ]
    table = Table(f"Forecasts, {REHEARSALS} rehearsals each", columns)
    everything = {"all": [each for some in forecasts.values() for each in some]} if forecasts else {}
    for cell, found in {**forecasts, **everything}.items():
        inside = np.mean([each.low <= each.right <= each.high for each in found])
        width = np.median([each.high - each.low for each in found])
        useless, sure = np.mean([each.useless for each in found]), sum(each.sure for each in found)
        share = f"{100 * sum(each.sure_right for each in found) / sure:.1f}" if sure else ""
        table.rows.append((cell, f"{100 * inside:.0f}", f"{100 * width:.0f}", f"{100 * useless:.0f}", str(sure), share))
    return table


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("methods", nargs="*", default=DEFAULT)
    parser.add_argument("--only", choices=[*DESCRIPTIONS, TOGETHER], help="one description")
    parser.add_argument("--labels", action="store_true", help="without rehearsals")
    said = parser.parse_args()
    for table in run(said.first, said.last, said.methods, said.only, not said.labels):
        if table.rows:
            print(table.markdown(), end="\n\n")
