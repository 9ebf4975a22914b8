"""Labelled images that are put into the pool, so that seen classes can be evaluated without moving files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pren.data.benchmarks.partition import Indices, random_share
from pren.foundation.errors import PrenError
from pren.problem import Setting


def held_out(labels: Indices, names: Sequence[str], share: float | None, setting: Setting) -> Indices:
    """Which labelled images to hold out, rising: the same every time, whatever the order of the classes.

    Args:
        labels: (N,) the classes of the labelled images.
        names: (L,) what the classes are called.
        share: Of each class's images, at least one of which stays; None for no image at all.
        setting: In "zsl" no seen class is evaluated.

    Raises:
        PrenError: If that cannot be.
    """
    if share is None:
        return np.empty(0, dtype=np.int64)
    if not 0 < share < 1:
        raise PrenError(
            "hold-out", f"hold_out={share} is not a share between 0 and 1: 0.2 holds out a fifth of each class."
        )
    if setting != "gzsl":
        raise PrenError(
            "hold-out", "hold_out is for seen classes, which the setting 'zsl' does not look for: add --setting gzsl."
        )
    rank = np.argsort(np.argsort(np.array(names), kind="stable"))
    return np.sort(random_share(rank[labels], np.arange(len(labels)), share))
