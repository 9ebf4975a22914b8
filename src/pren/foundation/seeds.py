"""One seed, many named streams of random numbers.

Each random choice (subsets, initial weights, batch order, ...) has its own stream, derived from the seed and a name.
Drawing more or fewer numbers from one does not change the others. Streams have no state to save: the batches of round 7
come from ``stream(seed, "batches", 7)``, whether or not the run was interrupted.
"""

import zlib

import numpy as np


def stream(seed: int, name: str, *index: int) -> np.random.Generator:
    """Return the generator of one stream.

    Args:
        seed: The run's seed.
        name: What the numbers are for, such as ``"subsets"``.
        *index: Which of several streams of that name, such as a head or a round.
    """
    return np.random.default_rng([seed, zlib.crc32(name.encode()), len(index), *index])
