"""Decoding of photographs as cameras make them (12 megapixels): at a fraction of their size against in full.

On photographs of CUB where ``PREN_DATA`` has them, otherwise on made ones: enlarged, which leaves them smooth, and as
mosaics, which are all detail. Besides the time it compares the features: of trained weights if the package with them is
installed.
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

from benchmarks.extraction import MB, photographs
from benchmarks.tables import Table
from benchmarks.timing import Settings, interleave
from pren.images.decoding import decode
from pren.images.extraction import Extractor, FrozenBackbone
from pren.images.folders import list_images
from pren.images.preprocessing import Levels, Preprocessing
from pren.images.weights import installed_backbone

SIZE = (4000, 3000)
TIGHT = (3584, 2688)  # an eighth of it is just large enough for 224 x 224 pixels
TILE = 224


def run(settings: Settings) -> list[Table]:
    """One table."""
    backbone, count, rounds, size, tight = "tf_efficientnet_lite0", 24, 3, SIZE, TIGHT
    if settings.quick:
        backbone, count, rounds, size, tight = "test_efficientnet", 2, 1, (800, 600), (640, 480)
    frozen = FrozenBackbone.load(Extractor(backbone=backbone, weights=None if _trained(backbone) else "random"))
    table = Table(
        f"Decoding JPEGs and bringing them to {frozen.preprocessing.sample_shape}: at a fraction or in full",
        [
            "pictures",
            "pixels",
            "MB",
            "ms",
            "of it unpacking",
            "ms in full",
            "times faster",
            "cosine of features: mean",
            "lowest",
        ],
        [],
        [f"Medians of {rounds} turns over {count} pictures, one thread, per picture; features of {backbone}."],
    )
    with tempfile.TemporaryDirectory() as name:
        folder = photographs(Path(name), count)
        names = list_images(folder)
        chosen = [names[place] for place in np.linspace(0, len(names) - 1, count).astype(int)]
        rng = np.random.default_rng(0)
        kinds = [("enlarged", size, [enlarged(folder / name, size) for name in chosen])]
        kinds += [
            ("mosaics", pixels, [mosaic(folder, names, pixels, rng) for _ in range(count)]) for pixels in (size, tight)
        ]
    for what, pixels, large in kinds:
        cells = _compared(frozen, large, settings, rounds)
        size_of_files = sum(map(len, large)) / len(large) / MB
        table.rows.append((what, f"{pixels[0]} x {pixels[1]}", f"{size_of_files:.2f}", *cells))
    return [table]


def _compared(frozen: FrozenBackbone, large: list[bytes], settings: Settings, rounds: int) -> tuple[str, ...]:
    def small() -> list[Levels]:
        return _decoded(large, frozen.preprocessing)

    def full() -> list[Levels]:
        with _in_full():
            return _decoded(large, frozen.preprocessing)

    likeness = _cosines(frozen, small(), full())
    side = max(frozen.preprocessing.sample_shape)
    tasks = {"small": small, "unpacking": lambda: [_unpacked(content, side) for content in large], "full": full}
    times = interleave(tasks, settings, rounds, settle=0)
    fast, bits, slow = (times[name].median / len(large) for name in tasks)
    speed = f"{1e3 * fast:.1f}", f"{1e3 * bits:.1f}", f"{1e3 * slow:.0f}", f"{slow / fast:.1f}"
    return *speed, f"{likeness.mean():.4f}", f"{likeness.min():.4f}"


def _trained(backbone: str) -> bool:
    return installed_backbone() == backbone


def enlarged(path: Path, size: tuple[int, int], noise: float = 0.0) -> bytes:
    """A photograph as a JPEG of this size; with so many levels of noise, smooth without."""
    content = io.BytesIO()
    with Image.open(path) as image:
        large = image.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    if noise:
        grain = np.random.default_rng(0).normal(0, noise, (size[1], size[0], 3)).astype(np.float32)
        large = Image.fromarray((np.asarray(large) + grain).clip(0, 255).astype(np.uint8))
    large.save(content, "JPEG", quality=90)
    return content.getvalue()


def mosaic(folder: Path, names: list[str], size: tuple[int, int], rng: np.random.Generator) -> bytes:
    """Photographs side by side: as much detail as a photograph of this size can have."""
    content, whole = io.BytesIO(), Image.new("RGB", size)
    for left in range(0, size[0], TILE):
        for top in range(0, size[1], TILE):
            with Image.open(folder / names[rng.integers(len(names))]) as image:
                whole.paste(image.convert("RGB"), (left, top))
    whole.save(content, "JPEG", quality=90)
    return content.getvalue()


def _decoded(large: list[bytes], wanted: Preprocessing) -> list[Levels]:
    return [decode(content, Path("large.jpg"), wanted) for content in large]


def _unpacked(content: bytes, side: int) -> Image.Image:
    """Decode at the smallest size of JPEG, which still reads all bits."""
    image = Image.open(io.BytesIO(content))
    image.draft(image.mode, (side, side))
    image.load()
    return image


def _cosines(frozen: FrozenBackbone, first: list[Levels], second: list[Levels]) -> NDArray[np.float64]:
    device = torch.device("cpu")
    a, b = (frozen(torch.from_numpy(np.array(levels)), device).astype(np.float64) for levels in (first, second))
    cosines: NDArray[np.float64] = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return cosines


@contextmanager
def _in_full() -> Iterator[None]:
    """Make Pillow's JPEG decoder decode at full size."""
    draft = JpegImageFile.draft
    JpegImageFile.draft = lambda self, mode, size: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        JpegImageFile.draft = draft  # type: ignore[method-assign]
