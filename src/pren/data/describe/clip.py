"""Text towers of open_clip as text encoders (the extra ``clip``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from pren.data.describe.encoders import KnownEncoder
from pren.images.clip import ClipName, text_tower
from pren.images.weights import weights_digest

BATCH = 64  # texts


class ClipEncoder(KnownEncoder):
    """The text tower of a CLIP model, loaded at its first use. Its vectors have unit length.

    Args:
        name: ``clip:MODEL/TAG``, or ``clip:MODEL@FILE`` for the weights of a file.
    """

    # Those of the sentences of CLIP's authors that fit any photograph.
    templates: ClassVar[tuple[str, ...]] = (
        "a photo of a {}.",
        "a photo of the {}.",
        "a good photo of a {}.",
        "a close-up photo of a {}.",
        "a bright photo of a {}.",
        "a cropped photo of a {}.",
        "a photo of the large {}.",
        "a photo of the small {}.",
    )

    def __init__(self, name: str) -> None:
        known, _, file = name.partition("@")
        self.name = ClipName.parse(known)
        self.file = file or None

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """N texts -> (N, width)."""
        parts = [np.empty((0, self.width()), dtype=np.float32)]
        with torch.inference_mode():
            for start in range(0, len(texts), BATCH):
                tokens = self._tokenizer(list(texts[start : start + BATCH]))
                parts.append(self._tower.encode_text(tokens, normalize=True).float().numpy())
        return np.concatenate(parts)

    def facts(self) -> dict[str, Any]:
        """Its version and a hash of its weights, which does not depend on their path."""
        return {"open_clip_torch": version("open_clip_torch"), "weights": weights_digest(self._tower)[:16]}

    def width(self) -> int:
        """The length of its embeddings and of the image tower's features."""
        return int(self.name.config()["embed_dim"])

    def cuts(self, texts: Sequence[str]) -> list[bool]:
        """Which texts have more tokens than it reads."""
        most = int(self._tokenizer.context_length)
        tokens = self._tokenizer(["", *texts], context_length=2 * most)  # an empty text has only padding there
        return [bool(row[most] != tokens[0, most]) for row in tokens[1:]]

    @cached_property
    def _tower(self) -> Any:
        return text_tower(self.name, self.file)

    @cached_property
    def _tokenizer(self) -> Any:
        return self.name.tokenizer()
