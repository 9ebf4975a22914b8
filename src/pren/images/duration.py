"""How long an extraction will take on this machine, from a trial with a few photographs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from pren.images.extraction import FrozenBackbone
from pren.images.files import ImageFiles, stacked
from pren.images.side_by_side import FeatureStore

log = logging.getLogger(__name__)

WORTH_A_TRIAL = 200  # photographs; fewer take no time worth a word
TRIED = 4  # photographs of a trial

Clock = Callable[[], float]


def announce(store: FeatureStore, parts: Sequence[ImageFiles], device: torch.device, processes: int = 1) -> None:
    """Log how long the extraction of the photographs that are not in the cache takes, if it is worth a trial.

    The cache knows photographs by their content, which is not read yet: those that it has count as these.
    """
    count = sum(map(len, parts))
    missing = {part: max(0, count - known) for part, known in store.known().items()}
    if max(missing.values()) < WORTH_A_TRIAL:
        return
    longest = max(parts, key=len)
    seconds = sum(number * seconds_for_one(part, longest, device) for part, number in missing.items() if number)
    log.info("The features of %d photographs take about %s.", max(missing.values()), in_words(seconds / processes))


def seconds_for_one(
    frozen: FrozenBackbone, files: ImageFiles, device: torch.device, clock: Clock = time.perf_counter
) -> float:
    """Seconds for a photograph when all cores are busy, with reading and with its features."""
    cores = torch.get_num_threads()
    places = np.linspace(0, len(files) - 1, min(TRIED, len(files))).astype(int)
    prepared = files.prepared(frozen.preprocessing)
    start = clock()
    readings = [prepared.read(int(place)) for place in places]
    reading = (clock() - start) / len(places)
    images = _filled(stacked(readings, prepared.sample_shape), frozen.at_once(device))
    frozen(images, device)  # the first images take longer
    start = clock()
    frozen(images, device)
    computing = (clock() - start) / len(images)  # with all cores
    return reading / cores + computing


def _filled(images: Tensor, count: int) -> Tensor:
    """So many images, the given ones (n, C, H, W) again and again; black ones if there are none."""
    if not len(images):
        return torch.zeros((count, *images.shape[1:]), dtype=torch.uint8)
    return images[torch.arange(count) % len(images)]


def in_words(seconds: float) -> str:
    """A duration for people: "40 seconds", "3 minutes"."""
    if seconds < 90:
        return f"{max(10, round(seconds, -1)):.0f} seconds"
    return f"{seconds / 60:.0f} minutes"
