"""The figures of the paper ("Progressive Ensemble Networks for Zero-Shot Recognition", Ye & Guo), in per cent."""

from __future__ import annotations

from typing import NamedTuple

Column = tuple[str, str]  # a data set and its split

COLUMNS: tuple[Column, ...] = (
    ("cub", "SS"),
    ("cub", "PS"),
    ("awa2", "SS"),
    ("awa2", "PS"),
    ("sun", "SS"),
    ("sun", "PS"),
    ("sun10", "SUN10"),
)


class Counts(NamedTuple):
    """A row of Table 1."""

    images: int
    attributes: int
    classes: int
    seen: int
    unseen: int


DATASETS = {
    "cub": Counts(11_788, 312, 200, 150, 50),
    "sun": Counts(14_340, 102, 717, 645, 72),
    "sun10": Counts(14_340, 102, 717, 707, 10),
    "awa2": Counts(37_322, 85, 50, 40, 10),
}


def _row(*figures: float | None) -> dict[Column, float]:
    return {column: figure for column, figure in zip(COLUMNS, figures, strict=True) if figure is not None}


# Figures in brackets (AWA, an older data set) are left out.
TOP1 = {
    "devise": _row(53.2, 52.0, 68.6, 59.7, 57.5, 56.5, None),
    "sync": _row(54.1, 55.6, 71.2, 46.6, 59.1, 56.3, None),
    "ale": _row(53.2, 54.9, 80.3, 62.5, 59.1, 58.1, None),
    "sje": _row(55.3, 53.9, 69.5, 61.9, 57.1, 53.7, None),
    "sae-f2s": _row(33.4, 33.3, 80.7, 54.1, 42.4, 40.3, None),
    "revise": _row(65.4, None, None, None, None, None, None),
    "gfzsl": _row(63.8, None, None, None, None, None, 87.0),
    "qfsl": _row(69.7, 72.1, 84.8, 79.7, 61.7, 58.3, None),
    "progressive": _row(54.0, 49.8, 73.2, 57.8, 49.6, 47.9, 76.6),
    "pren-no-projection": _row(64.7, 61.4, 88.5, 66.6, 61.1, 60.1, 84.4),
    "pren": _row(66.9, 66.4, 95.7, 74.1, 63.3, 62.9, 86.3),
}
MACC = {
    "uda": _row(40.6, None, None, None, None, None, None),
    "dcl": _row(None, None, None, None, None, None, 84.4),
    "progressive": _row(53.7, 49.9, 73.0, 53.8, 49.5, 48.0, 76.7),
    "pren-no-projection": _row(64.4, 61.4, 89.4, 65.7, 61.0, 60.2, 84.5),
    "pren": _row(66.6, 66.4, 96.1, 78.6, 63.2, 62.8, 86.4),
}


class Generalised(NamedTuple):
    """u, s and H."""

    u: float
    s: float
    h: float


GZSL_DATA = ("cub", "awa2", "sun")  # on the proposed split
GZSL = {
    "devise": (Generalised(23.8, 53.0, 32.8), Generalised(17.1, 74.7, 27.8), Generalised(16.9, 27.4, 20.9)),
    "sync": (Generalised(11.5, 70.9, 19.8), Generalised(10.0, 90.5, 18.0), Generalised(7.9, 43.3, 13.4)),
    "ale": (Generalised(23.7, 62.8, 34.4), Generalised(16.8, 76.1, 27.5), Generalised(21.8, 33.1, 26.3)),
    "sje": (Generalised(23.5, 59.2, 33.6), Generalised(8.0, 73.9, 14.4), Generalised(14.7, 30.5, 19.8)),
    "sae-f2s": (Generalised(7.8, 54.0, 13.6), Generalised(1.1, 82.2, 2.2), Generalised(8.8, 18.0, 11.8)),
    "pren": (Generalised(35.2, 55.8, 43.1), Generalised(32.4, 88.6, 47.4), Generalised(35.4, 27.2, 30.8)),
}

DIMENSIONS = (10, 20, 30, 40, 50, 60, 70)  # h, at K = 50
HEADS = (10, 20, 30, 40, 50, 60)  # K, at h = 70
