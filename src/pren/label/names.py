"""How sure the name of every group of labels is, and the label of which input settles it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.label.predictions import Predictions
from pren.methods.base import Method
from pren.problem import UNKNOWN
from pren.trust import STRANGE, Trust
from pren.trust.confidence import MOST
from pren.trust.names import CHECK, Names, count

MOST_OTHERS = 3  # classes that a group may be instead
MOST_TO_LOOK_AT = 5  # inputs of one group
MOST_QUESTIONS = 10  # in a text


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

    @property
    def runner_up(self) -> str:
        """The likeliest other class; "" if there is none."""
        return self.others[0][0] if self.others else ""

    def question(self, noun: str = "photograph") -> str:
        """What to ask a person: which class, how much hangs on it, and where to look."""
        which = f"{self.name} or {self.runner_up}?" if self.runner_up else f"Is it {self.name}?"
        hang = f"1 {noun} hangs" if self.count == 1 else f"{self.count} {noun}s hang"
        where = f": look at {self.look_at[0]}" if self.look_at else ""
        return f"{which} {hang} on it{where} ({100 * self.certainty:.0f} % sure)."

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            **asdict(self),
            "certainty": None if math.isnan(self.certainty) else self.certainty,
            "others": [list(other) for other in self.others],
            "look_at": list(self.look_at),
        }


def group_names(labels: Predictions, method: Method, trust: Trust | None = None) -> tuple[GroupName, ...]:
    """Every class whose group has a name that was chosen, the least certain first; none if the method chooses no names.

    Args:
        labels: Of the pool.
        method: The fitted method.
        trust: How far its labels can be trusted; None if it was not rehearsed.
    """
    shares = method.name_shares()
    if shares is None or not labels.classes.size:
        return ()
    best, table = labels.classes[:, 0], labels.table
    given = np.where(labels.confidence > MOST, best, UNKNOWN)  # only labels of a person are so sure
    names = Names(shares, count(best, len(table)), count(given, len(table)))
    certainty = names.certainty() if trust is None or trust.names is None else trust.names
    found = []
    for row in np.flatnonzero(names.there).tolist():
        members = np.flatnonzero(best == row)
        ranked = [other for other in np.argsort(-shares[row], kind="stable").tolist() if other != row]
        others = tuple(
            (table.names[other], float(shares[row, other])) for other in ranked[:MOST_OTHERS] if shares[row, other]
        )
        sure, settled = float(certainty[row]), bool(names.given[row])
        found.append(
            GroupName(
                name=table.names[row],
                count=len(members),
                certainty=sure,
                others=others,
                look_at=() if settled else _typical(labels, members),
                doubtful=sure < CHECK and not settled,
            )
        )
    return tuple(sorted(found, key=lambda group: (group.certainty, -group.count, group.name)))


def _typical(labels: Predictions, members: NDArray[np.int64]) -> tuple[str, ...]:
    """The inputs with the best scores."""
    members = members[~(labels.familiarity[members] < STRANGE)]
    ranked = members[np.argsort(-labels.scores[members, 0], kind="stable")]
    return tuple(labels.inputs[place] for place in ranked[:MOST_TO_LOOK_AT].tolist())


def names_to_check(names: Sequence[GroupName], noun: str = "photograph") -> list[str]:
    """What to say of the names to check, as lines of text; none if all are sure."""
    doubtful = [name for name in names if name.doubtful]
    if not doubtful:
        return []
    inputs = sum(name.count for name in doubtful)
    many = "1 name" if len(doubtful) == 1 else f"{len(doubtful)} names"
    hang = f"1 {noun} hangs" if inputs == 1 else f"{inputs} {noun}s hang"
    lines = [f"Check {many}, worst first ({hang} on this). One label settles a whole group:"]
    lines += [f"  {name.question(noun)}" for name in doubtful[:MOST_QUESTIONS]]
    more = len(doubtful) - MOST_QUESTIONS
    return lines if more <= 0 else [*lines, f"  and {more} more (in the report, and 'pren suggest' asks about them)."]
