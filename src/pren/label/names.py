"""How sure the name of every group of labels is, and whose label settles it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.label.predictions import Predictions
from pren.methods.base import Method
from pren.trust import STRANGE
from pren.trust.confidence import MOST

LEAST_CERTAINTY = 0.9  # a name that is less certain is doubtful
MOST_OTHERS = 3  # classes that a group may be instead
MOST_TO_LOOK_AT = 5  # inputs of one group


@dataclass(frozen=True)
class GroupName:
    """The group of inputs that have one label, and how sure its name is.

    Attributes:
        name: The class whose name the group has.
        count: How many inputs have that label.
        certainty: How likely the name is right, from 0 to 1; NaN if that is not known.
        others: Classes that the group may be instead, the likeliest first, and how likely each is.
        look_at: Inputs whose label settles the name, the best first: typical ones. Empty if a person has settled it.
        doubtful: Whether the name is to be checked.
    """

    name: str
    count: int
    certainty: float
    others: tuple[tuple[str, float], ...]
    look_at: tuple[str, ...]
    doubtful: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            **asdict(self),
            "certainty": None if math.isnan(self.certainty) else self.certainty,
            "others": [list(other) for other in self.others],
            "look_at": list(self.look_at),
        }


def group_names(labels: Predictions, method: Method) -> tuple[GroupName, ...]:
    """Every class whose group has a name that was chosen, the least certain first; none if the method chooses no names.

    Args:
        labels: Of the pool.
        method: The fitted method.
    """
    shares = method.name_shares()
    if shares is None or not labels.classes.size:
        return ()
    best, names = labels.classes[:, 0], labels.table.names
    found = []
    for row in np.flatnonzero(shares.any(axis=1)).tolist():
        members = np.flatnonzero(best == row)
        if not len(members):
            continue
        certainty = float(shares[row, row])
        ranked = [other for other in np.argsort(-shares[row], kind="stable").tolist() if other != row]
        others = tuple(
            (names[other], float(shares[row, other])) for other in ranked[:MOST_OTHERS] if shares[row, other]
        )
        doubtful = certainty < LEAST_CERTAINTY
        found.append(GroupName(names[row], len(members), certainty, others, _typical(labels, members), doubtful))
    return tuple(sorted(found, key=lambda group: (group.certainty, -group.count, group.name)))


def _typical(labels: Predictions, members: NDArray[np.int64]) -> tuple[str, ...]:
    """The inputs with the best scores; none if the label of one is given, as it settles the name."""
    if (labels.confidence[members] > MOST).any():  # a given label
        return ()
    members = members[~(labels.familiarity[members] < STRANGE)]
    ranked = members[np.argsort(-labels.scores[members, 0], kind="stable")]
    return tuple(labels.inputs[place] for place in ranked[:MOST_TO_LOOK_AT].tolist())
