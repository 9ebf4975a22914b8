"""What is told of an image, the same in every format."""

from __future__ import annotations

import math
from typing import Any, Final

from pren.label.predictor import Predictions

SURE: Final = ("confidence", "familiarity")
Record = dict[str, Any]  # JSON-ready


def records(found: Predictions) -> list[Record]:
    """For every input its name, its best classes with their scores, how sure the best is, and what is wrong with it."""
    known = []
    for place, (name, labels) in enumerate(zip(found.names, found.labels, strict=True)):
        scores = found.scores[place] if labels else []
        best = [{"class": label, "score": float(score)} for label, score in zip(labels, scores, strict=True)]
        sure = {key: _known(getattr(found, key)[place]) for key in SURE}
        # A path on disk can be any bytes, but tables are UTF-8; names are text already.
        error = found.errors[place].encode("utf-8", "backslashreplace").decode() or None
        known.append({"input": name, "classes": best, **sure, "error": error})
    return known


def _known(share: float) -> float | None:
    return None if math.isnan(share) else round(float(share), 4)
