"""Which attributes speak for a label, where scores are sums over attributes; and what sets two descriptions apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pren.problem import ClassTable
from pren.runs.reopening import Outcome

SHOWN = 4  # attributes on either side


@dataclass(frozen=True)
class Evidence:
    """What the labels of a class rest on: attributes and their part in its lead over the runner-up, largest first."""

    label: str
    favours: list[tuple[str, float]]
    opposes: list[tuple[str, float]]


def attribute_names(classes: ClassTable) -> list[str]:
    """What the columns of the signatures mean, numbers if nobody has said it."""
    return list(classes.attributes or (f"attribute {column + 1}" for column in range(classes.signatures.shape[1])))


def evidence(outcome: Outcome) -> list[Evidence] | None:
    """For every class with images, what each attribute adds to their lead over the runner-up, in the mean.

    The lead is Σ_j w_j (a_cj - a_rj) for the label c and the runner-up r; None if the method has no such sum.
    """
    problem = outcome.problem
    classes, weights = problem.classes, outcome.method.attribute_weights(problem.pool)
    if weights is None or problem.candidates().sum() < 2:
        return None
    best, second = outcome.labels.classes, outcome.labels.runners_up
    parts = weights * (classes.signatures[best] - classes.signatures[second])
    names, found = attribute_names(classes), []
    for row in np.unique(best).tolist():
        mean = parts[best == row].mean(axis=0)
        order = np.argsort(-mean, kind="stable").tolist()
        favours = [(names[j], float(mean[j])) for j in order[:SHOWN] if mean[j] > 0]
        opposes = [(names[j], float(mean[j])) for j in order[: -SHOWN - 1 : -1] if mean[j] < 0]
        found.append(Evidence(classes.names[row], favours, opposes))
    return found


def describe_apart(classes: ClassTable, one: str, other: str) -> list[tuple[str, float, float]]:
    """The attributes in which two descriptions differ most: name, and the value of each, scaled as methods see it."""
    a, b = (classes.signatures[classes.names.index(name)] for name in (one, other))
    order = np.argsort(-np.abs(a - b), kind="stable")[:SHOWN].tolist()
    names = attribute_names(classes)
    return [(names[j], float(a[j]), float(b[j])) for j in order if a[j] != b[j]]
