"""Three levels of confidence, for every page and message."""

from __future__ import annotations

from typing import Final, NamedTuple

SURE: Final = 0.95  # the least confidence of a sure label, and the share of right labels among the safe ones
LIKELY: Final = 0.5  # the least confidence of a likely label; the others are doubtful


class LevelCounts(NamedTuple):
    """How many labels are of each level."""

    sure: int
    likely: int
    doubtful: int
