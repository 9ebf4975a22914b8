"""Which groups to ask about, and with which input: one label settles the name of its whole group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pren.label.outcome import Outcome
from pren.trust import STRANGE
from pren.trust.names import Names

Places = NDArray[np.int64]


def group_questions(outcome: Outcome) -> Places:
    """One input of every group whose name is to be checked, the least certain first: the best example of the group.

    Strange inputs are no examples; a group of only such inputs is not asked about.
    """
    labels, problem, trust = outcome.labels, outcome.problem, outcome.trust
    names = Names.of(outcome.method, labels.classes, problem)
    if names is None:
        return np.empty(0, dtype=np.int64)
    certainty = names.certainty() if trust is None or trust.names is None else trust.names
    doubtful = np.flatnonzero(names.to_check(certainty))
    asked = []
    for row in doubtful[np.lexsort((-names.sizes[doubtful], certainty[doubtful]))]:
        members = np.flatnonzero((labels.classes == row) & ~(labels.familiarity < STRANGE))
        if len(members):
            asked.append(int(members[labels.scores[members].argmax()]))
    return np.array(asked, dtype=np.int64)
