"""Photographs of a pool that are the same as others, or look nearly the same: saved again, resized, a burst."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import adaptive_avg_pool2d

from pren.data.folder.findings import Findings
from pren.data.folder.labels import POOL
from pren.foundation.errors import quoted
from pren.problem.copies import near_pairs
from pren.problem.inputs import ArrayInputs

Look = NDArray[np.float32]
SIDE = 8  # of the small image that stands for how a photograph looks
NEARLY = 4.0  # levels of 255, root mean square over it; different photographs are ten times as far apart
NAMED = 100  # copies that are named one by one


def look_of(levels: NDArray[np.uint8]) -> Look:
    """Levels (C, H, W) from 0 to 255 of a photograph -> (C * SIDE * SIDE,) of a small image of it."""
    look: Look = adaptive_avg_pool2d(torch.from_numpy(levels).float(), SIDE).flatten().numpy()
    return look


class Copies:
    """The photographs of a pool, to find copies among them."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._digests: list[bytes] = []
        self._looks: list[Look] = []

    def add(self, name: str, digest: bytes, look: Look) -> None:
        """Note a photograph: its path, the hash of its content, and how it looks."""
        self._names.append(name)
        self._digests.append(digest)
        self._looks.append(look)

    def report(self, findings: Findings) -> None:
        """Warn of each that is the same as one before it, or nearly."""
        first: dict[bytes, int] = {}
        same = [first.setdefault(digest, place) for place, digest in enumerate(self._digests)]
        found = {place: (twin, "the same as") for place, twin in enumerate(same) if twin != place}
        others = np.array(sorted(first.values()), dtype=np.int64)
        if len(others) > 1:
            looks = ArrayInputs(np.stack([self._looks[place] for place in others]))
            radius = NEARLY * float(np.sqrt(looks.sample_shape[0]))
            for place, twin in others[near_pairs(looks, looks, radius, np.asarray)].tolist():
                if twin < place and twin not in found:
                    found.setdefault(place, (twin, "nearly the same as"))
        for place, (twin, how) in sorted(found.items())[:NAMED]:
            message = f"it is {how} {quoted(self._names[twin])}: both count once, and get one label."
            findings.add(self._names[place], message, severity="warning")
        if len(found) > NAMED:
            message = f"{len(found) - NAMED} more photographs are the same as others, or nearly."
            findings.add(POOL, message, severity="warning")
