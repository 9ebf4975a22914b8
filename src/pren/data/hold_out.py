"""Move labelled inputs into the pool, to evaluate seen classes without moving files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pren.data.benchmarks.partition import Indices, random_share
from pren.foundation.errors import PrenError
from pren.problem import Setting


def held_out(labels: Indices, names: Sequence[str], share: float | None, setting: Setting) -> Indices:
    """The places of the labelled inputs to hold out, ascending; always the same, for any order of the classes.

    Args:
        labels: (N,) the classes of the labelled inputs.
        names: (L,) the names of the classes.
        share: Of each class's inputs, at least one of which stays; None for no input.
        setting: Must be "gzsl"; in "zsl" no seen class is evaluated.

    Raises:
        PrenError: If the share or the setting is not valid.
    """
    if share is None:
        return np.empty(0, dtype=np.int64)
    if not 0 < share < 1:
        raise PrenError("hold-out", f"hold_out={share} is not between 0 and 1: 0.2 holds out a fifth of each class.")
    if setting != "gzsl":
        raise PrenError("hold-out", "hold_out is for seen classes, which 'zsl' does not evaluate: add --setting gzsl.")
    rank = np.argsort(np.argsort(np.array(names), kind="stable"))
    return np.sort(random_share(rank[labels], np.arange(len(labels)), share))
