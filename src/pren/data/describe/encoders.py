"""Text encoders by name: they turn the description of a class into its signature."""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pren.data.describe.table import Signatures
from pren.foundation.errors import PrenError
from pren.foundation.registry import Registry
from pren.images.cache import FeatureCache
from pren.images.clip import PREFIX, list_clip
from pren.problem.inputs import Array, to_numpy

Encoder = Callable[[Sequence[str]], Array]  # N texts -> (N, m) numbers, NumPy or torch
ENCODERS: Registry[Encoder] = Registry("text encoder")
TEMPLATES = ("a photo of a {}.",)  # sentences for classes that only have a name


def register_encoder(name: str) -> Callable[[Encoder], Encoder]:
    """Register the decorated function as a text encoder: it takes N texts and returns (N, m) numbers."""
    return ENCODERS.register(name)


class KnownEncoder(ABC):
    """An encoder that identifies itself by `facts`, so that its vectors can be cached."""

    templates: ClassVar[tuple[str, ...]] = TEMPLATES  # sentences for names; several are averaged

    @abstractmethod
    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """N texts -> (N, width)."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """All that determines its vectors, such as versions; JSON-ready."""

    @abstractmethod
    def width(self) -> int:
        """The length of its vectors."""

    @abstractmethod
    def cuts(self, texts: Sequence[str]) -> list[bool]:
        """Which texts are too long to be read to their end."""


def find_encoder(name: str) -> Encoder:
    """A registered encoder, or a model; `PrenError` if there is none.

    ``clip:MODEL/TAG`` and ``clip:MODEL@FILE`` are models of open_clip; any other name with a slash is a model of
    sentence-transformers, on the hub or a path.
    """
    if name.startswith(PREFIX):
        from pren.data.describe.clip import ClipEncoder

        return ClipEncoder(name)
    if "/" in name and name not in ENCODERS:
        from pren.data.describe.sentences import SentenceEncoder

        return SentenceEncoder(name)
    return ENCODERS[name]


def templates_of(encoder: str) -> tuple[str, ...]:
    """The sentences for names that fit an encoder; their vectors are averaged."""
    if encoder.startswith(PREFIX):
        from pren.data.describe.clip import ClipEncoder

        return ClipEncoder.templates
    if encoder in ENCODERS and isinstance(known := ENCODERS[encoder], KnownEncoder):
        return known.templates
    return TEMPLATES


def list_encoders(pattern: str = "*") -> dict[str, str]:
    """Encoders by name, each with a summary; any model of sentence-transformers can be used too."""
    known = {name: (inspect.getdoc(ENCODERS[name]) or "").partition("\n")[0] for name in ENCODERS}
    known |= dict.fromkeys(list_clip(), "a text tower of open_clip, for the backbone of the same name; from the hub")
    return {name: known[name] for name in sorted(known) if fnmatchcase(name, pattern)}


def encode(encoder: str, names: Sequence[str], texts: Sequence[Sequence[str]], **source: Any) -> Signatures:
    """The signatures of classes that are described in words.

    Args:
        encoder: The name of a text encoder.
        names: (L,) the classes.
        texts: (L,) one or several descriptions of each; the signature is the mean of their vectors.
        **source: What else to record, such as the file of the descriptions.

    Raises:
        PrenError: If there is no such encoder, or it does not return a row of numbers for each text.
    """
    found = find_encoder(encoder)
    flat = [text for several in texts for text in several]
    vectors = _kept(found, flat) if isinstance(found, KnownEncoder) else _vectors(found, encoder, flat)
    starts = np.cumsum([0, *(len(several) for several in texts)])
    values = np.stack([vectors[start:end].mean(axis=0) for start, end in pairwise(starts)])
    facts = found.facts() if isinstance(found, KnownEncoder) else {}
    record = {"kind": "text", "encoder": encoder, **({"facts": facts} if facts else {}), **source}
    return Signatures(tuple(names), values, record, texts=tuple(map(tuple, texts)))


def _vectors(encoder: Encoder, name: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """(N, m) of N texts, checked."""
    values = to_numpy(encoder(texts), f"the text encoder {name!r}")
    if values.ndim != 2 or len(values) != len(texts) or values.dtype.kind not in "fiub":
        made = f"{len(texts)} texts into {values.dtype} of shape {values.shape}"
        message = f"The text encoder {name!r} turns {made}: it must return a row of numbers for each text."
        raise PrenError("encoder-output", message)
    return values.astype(np.float64)


def _kept(encoder: KnownEncoder, texts: Sequence[str]) -> NDArray[np.float64]:
    """(N, m) of N texts through the cache, in half precision."""
    store = FeatureCache(None, {"text encoder": encoder.facts()}, (encoder.width(),))
    keys = {text: hashlib.sha256(text.encode()).digest() for text in texts}
    known = store.rows()
    if fresh := [text for text, key in keys.items() if key not in known]:
        store.append([keys[text] for text in fresh], encoder(fresh))
        known = store.rows()
    rows = np.array([known[keys[text]] for text in texts], dtype=np.int64)
    return store.inputs(rows)[np.arange(len(rows))].double().numpy()
