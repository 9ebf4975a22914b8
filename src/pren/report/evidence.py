"""Which attributes support a label, if scores are sums over attributes; and how two descriptions differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pren.methods.base import Method
from pren.problem import ClassTable, Problem
from pren.trust import Labels

SHOWN = 4  # attributes on either side

Difference = tuple[str, float, float]  # an attribute, and its values in two descriptions


@dataclass(frozen=True)
class Evidence:
    """Attributes and their part in the lead of a label over the runner-up, largest first."""

    label: str
    favours: list[tuple[str, float]]
    opposes: list[tuple[str, float]]


def attribute_names(classes: ClassTable) -> list[str]:
    """The names of the columns of the signatures; numbers if they have none."""
    return list(classes.attributes or (f"attribute {column + 1}" for column in range(classes.signatures.shape[1])))


def evidence(method: Method, problem: Problem, labels: Labels) -> list[Evidence] | None:
    """What each attribute adds to the lead over the runner-up, on average over the inputs of a class.

    The lead is Σ_j w_j (a_cj - a_rj) for the label c and the runner-up r; None if the method has no such sum.
    """
    classes, weights = problem.classes, method.attribute_weights(problem.pool)
    if weights is None or problem.candidates().sum() < 2:
        return None
    best, second = labels.classes, labels.runners_up
    parts = weights * (classes.signatures[best] - classes.signatures[second])
    names, found = attribute_names(classes), []
    for row in np.unique(best).tolist():
        mean = parts[best == row].mean(axis=0)
        order = np.argsort(-mean, kind="stable").tolist()
        favours = [(names[j], float(mean[j])) for j in order[:SHOWN] if mean[j] > 0]
        opposes = [(names[j], float(mean[j])) for j in order[: -SHOWN - 1 : -1] if mean[j] < 0]
        found.append(Evidence(classes.names[row], favours, opposes))
    return found


def describe_apart(classes: ClassTable, one: str, other: str) -> list[Difference]:
    """The attributes in which two descriptions differ most, scaled as for methods."""
    a, b = (classes.signatures[classes.names.index(name)] for name in (one, other))
    order = np.argsort(-np.abs(a - b), kind="stable")[:SHOWN].tolist()
    names = attribute_names(classes)
    return [(names[j], float(a[j]), float(b[j])) for j in order if a[j] != b[j]]
