"""Which attributes support a label, if scores are sums over attributes; and how two descriptions differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pren.methods.base import Method
from pren.problem import Problem
from pren.trust import Labels

SHOWN = 4  # attributes on either side

Difference = tuple[str, float, float]  # an attribute, and its values in two descriptions


@dataclass(frozen=True)
class Evidence:
    """Attributes and their part in the lead of a label over the runner-up, largest first."""

    label: str
    favours: list[tuple[str, float]]
    opposes: list[tuple[str, float]]


class Apart(NamedTuple):
    """How two descriptions differ: the attributes in which they differ most, and the words of each class if any."""

    attributes: list[Difference]
    words: tuple[list[str], list[str]] = ([], [])


def attribute_names(problem: Problem) -> list[str | None]:
    """(m,) the names of the columns of the signatures: numbers if they have none.

    None for those of a text encoder, which tell a person nothing.
    """
    if problem.classes.attributes is not None:
        return list(problem.classes.attributes)
    width = problem.classes.signatures.shape[1]
    numbered: list[str | None] = [f"attribute {column + 1}" for column in range(width)]
    names, first = list(numbered), 0
    for source in problem.recipe.get("sources", ()):
        own = slice(first, first := first + len(source["mean"]))
        names[own] = [None] * len(source["mean"]) if source["encoder"] else source["attributes"] or numbered[own]
    return names


def descriptions(problem: Problem, name: str) -> list[str]:
    """What was written about a class in words; none where it only has a name."""
    written = (source for source in problem.recipe.get("sources", ()) if not source["templates"])
    return [text for source in written for text in source["texts"].get(name, ())]


def evidence(method: Method, problem: Problem, labels: Labels) -> list[Evidence] | None:
    """What each attribute adds to the lead over the runner-up, on average over the inputs of a class.

    The lead is Σ_j w_j (a_cj - a_rj) for the label c and the runner-up r. None if the method has no such sum, or no
    attribute has a name.
    """
    classes, weights = problem.classes, method.attribute_weights(problem.pool)
    named = [(j, name) for j, name in enumerate(attribute_names(problem)) if name is not None]
    if weights is None or not named or problem.candidates().sum() < 2:
        return None
    best, second = labels.classes, labels.runners_up
    columns, names = [j for j, _ in named], [name for _, name in named]
    parts = (weights * (classes.signatures[best] - classes.signatures[second]))[:, columns]
    found = []
    for row in np.unique(best).tolist():
        mean = parts[best == row].mean(axis=0)
        order = np.argsort(-mean, kind="stable").tolist()
        favours = [(names[j], float(mean[j])) for j in order[:SHOWN] if mean[j] > 0]
        opposes = [(names[j], float(mean[j])) for j in order[: -SHOWN - 1 : -1] if mean[j] < 0]
        found.append(Evidence(classes.names[row], favours, opposes))
    return found


def describe_apart(problem: Problem, one: str, other: str) -> Apart:
    """How two descriptions differ; attributes are scaled as for methods."""
    classes, names = problem.classes, attribute_names(problem)
    a, b = (classes.signatures[classes.names.index(name)] for name in (one, other))
    order = np.argsort(-np.abs(a - b), kind="stable").tolist()
    apart = [(known, float(a[j]), float(b[j])) for j in order if a[j] != b[j] and (known := names[j]) is not None]
    return Apart(apart[:SHOWN], (descriptions(problem, one), descriptions(problem, other)))
