"""Text encoders by name: what turns the description of a class into its signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pren.errors import PrenError
from pren.inputs import Array, to_numpy
from pren.registry import Registry
from pren.signatures.table import Signatures

Encoder = Callable[[Sequence[str]], Array]  # N texts -> (N, m) numbers, NumPy or torch
ENCODERS: Registry[Encoder] = Registry("text encoder")


def register_encoder(name: str) -> Callable[[Encoder], Encoder]:
    """Register the function that follows as a text encoder: it is given N texts and returns (N, m) numbers."""
    return ENCODERS.register(name)


def encode(encoder: str, names: Sequence[str], texts: Sequence[str], **source: str) -> Signatures:
    """The signatures of classes that are described in words.

    Args:
        encoder: The name of a text encoder.
        names: (L,) the classes.
        texts: (L,) their descriptions.
        **source: What else to record, such as the file they come from.

    Raises:
        PrenError: If there is no such encoder, or it gives something else than a row of numbers for each text.
    """
    values = to_numpy(ENCODERS[encoder](texts), f"the text encoder {encoder!r}")
    if values.ndim != 2 or len(values) != len(texts) or values.dtype.kind not in "fiub":
        made = f"{len(texts)} texts into {values.dtype} of shape {values.shape}"
        raise PrenError(f"The text encoder {encoder!r} turns {made}: it must give a row of numbers for each.")
    return Signatures(tuple(names), values.astype(np.float64), {"kind": "text", "encoder": encoder, **source})
