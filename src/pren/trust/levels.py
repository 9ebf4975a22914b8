"""How sure a label is, in three words; every page and message uses these levels."""

from __future__ import annotations

from typing import Final, NamedTuple

SURE: Final = 0.95  # the least confidence of a label that is called sure, and the share of safe labels that is right
LIKELY: Final = 0.5  # of one that is called likely; what is less is doubtful


class LevelCounts(NamedTuple):
    """How many labels are of each level."""

    sure: int
    likely: int
    doubtful: int
