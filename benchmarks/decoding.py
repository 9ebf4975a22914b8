"""Decoding of photographs as cameras make them (12 megapixels): at a fraction of their size against in full.

On photographs of CUB, enlarged, where ``PREN_DATA`` has them, otherwise on made ones. Besides the time it compares the
features: of trained weights if the package with them is installed.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from benchmarks.extraction import photographs
from benchmarks.tables import Table
from benchmarks.timing import Settings, interleave
from pren.vision.decoding import decode
from pren.vision.extraction import Extractor, FrozenBackbone
from pren.vision.folders import list_images
from pren.vision.preprocessing import Levels, Preprocessing
from pren.vision.weights import installed_backbone

SIZE = (4000, 3000)


def run(settings: Settings) -> list[Table]:
    """One table."""
    backbone, count, rounds, size = "tf_efficientnet_lite0", 24, 3, SIZE
    if settings.quick:
        backbone, count, rounds, size = "test_efficientnet", 2, 1, (800, 600)
    frozen = FrozenBackbone.load(Extractor(backbone=backbone, weights=None if _trained(backbone) else "random"))
    with tempfile.TemporaryDirectory() as name:
        folder = photographs(Path(name), count)
        names = list_images(folder)
        chosen = [names[place] for place in np.linspace(0, len(names) - 1, count).astype(int)]
        large = [enlarged(folder / name, size) for name in chosen]

    def small() -> list[Levels]:
        return _decoded(large, frozen.preprocessing)

    def full() -> list[Levels]:
        with _in_full():
            return _decoded(large, frozen.preprocessing)

    likeness = _cosines(frozen, small(), full())
    times = interleave({"small": small, "full": full}, settings, rounds, settle=0)
    fast, slow = times["small"].median / count, times["full"].median / count
    table = Table(
        f"Decoding JPEGs of {size[0]} x {size[1]} pixels and bringing them to {frozen.preprocessing.sample_shape}",
        ["way", "ms an image", "times faster", "cosine of features: mean", "lowest"],
        [
            (
                "at a fraction",
                f"{1e3 * fast:.0f}",
                f"{slow / fast:.1f}",
                f"{likeness.mean():.4f}",
                f"{likeness.min():.4f}",
            ),
            ("in full", f"{1e3 * slow:.0f}", "1.0", "", ""),
        ],
        [f"Medians of {rounds} turns over {count} photographs, one thread; features of {backbone}."],
    )
    return [table]


def _trained(backbone: str) -> bool:
    return installed_backbone() == backbone


def enlarged(path: Path, size: tuple[int, int]) -> bytes:
    """A photograph as a JPEG of so many pixels."""
    content = io.BytesIO()
    with Image.open(path) as image:
        image.convert("RGB").resize(size, Image.Resampling.BICUBIC).save(content, "JPEG", quality=90)
    return content.getvalue()


def _decoded(large: list[bytes], wanted: Preprocessing) -> list[Levels]:
    return [decode(content, Path("large.jpg"), wanted) for content in large]


def _cosines(frozen: FrozenBackbone, first: list[Levels], second: list[Levels]) -> NDArray[np.float64]:
    device = torch.device("cpu")
    a, b = (frozen(torch.from_numpy(np.array(levels)), device).astype(np.float64) for levels in (first, second))
    cosines: NDArray[np.float64] = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return cosines


@contextmanager
def _in_full() -> Iterator[None]:
    """Let Pillow's JPEG decoder ignore that less would do."""
    draft = JpegImageFile.draft
    JpegImageFile.draft = lambda self, mode, size: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        JpegImageFile.draft = draft  # type: ignore[method-assign]
