"""A pool from another camera, before and after the labelled photographs are made like it.

``python -m benchmarks.cameras FIRST LAST [CAMERA ...]``: draws FIRST to LAST - 1 of 30 seen and 12 unseen species from
CUB's 150 seen classes, 20 photographs of each. The unlabelled ones are changed, each in its own way, and `pren.fit`
labels the folder as it does by default. What is a clear difference was chosen on draws 0 and 1; no test class has a
part in it. PREN_DATA says where CUB is.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

import pren
from benchmarks.tables import Table
from pren.data import load
from pren.images.files import ImageFiles, image_files
from pren.images.look import Look

SEEN, UNSEEN, EACH = 30, 12, 20
Levels = NDArray[np.float64]
Step = Callable[[Image.Image, float, np.random.Generator], Image.Image]


class Fitted(NamedTuple):
    """Per cent right, the seconds of a fit, and what was done to the labelled photographs."""

    right: float
    seconds: float
    look: Look | None


class Camera(NamedTuple):
    """What a camera does to a photograph, how strongly, and the quality of its files."""

    steps: tuple[Step, ...]
    quality: int
    strength: float = 1.0


def _grey(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    return image.convert("L").convert("RGB")


def _blur(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(strength * rng.uniform(1.5, 2.5)))


def _moved(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Blurred along a line, as by a moving camera, which no `Look` does."""
    length = int(strength * rng.integers(5, 12))
    return _image(np.mean([np.roll(np.asarray(image), (step // 2, step), (0, 1)) for step in range(length)], axis=0))


def _dark(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Dark and flat: not a multiple of the levels, so that no `Look` does the same."""
    share = 1 - strength * rng.uniform(0.6, 0.76)
    return _image(20 + share * 255 * (np.asarray(image) / 255) ** 1.5)


def _noise(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Noise of light and of colour."""
    levels, deviation = np.asarray(image), strength * rng.uniform(10, 25)
    grain = rng.normal(0, deviation, (*levels.shape[:2], 1)) + rng.normal(0, deviation / 2, levels.shape)
    return _image(levels + grain)


def _image(levels: Levels) -> Image.Image:
    return Image.fromarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8))


CAMERAS: dict[str, Camera | None] = {
    "unchanged": None,
    "grey": Camera((_grey,), 75),
    "blurred": Camera((_blur,), 75),
    "dark, little contrast": Camera((_dark,), 75),
    "noise, JPEG 20": Camera((_noise,), 20),
    "all of these": Camera((_grey, _blur, _dark, _noise), 20),
    "all of these, half as strong": Camera((_grey, _blur, _dark, _noise), 40, 0.5),
    "moved, JPEG 30": Camera((_moved,), 30),
}


def make_folder(folder: Path, draw: int, kind: str) -> None:
    """A folder as a person has it, with answers."""
    problem = load("cub", images=True)[0]
    table, files = problem.classes, image_files(problem.train)
    rng = np.random.default_rng([SEEN, UNSEEN, draw, 28])
    chosen = rng.permutation(np.unique(problem.labels))[: SEEN + UNSEEN]
    answers = []
    for number, row in enumerate(chosen):
        name = table.names[row]
        for place in rng.permutation(np.flatnonzero(problem.labels == row))[:EACH]:
            if number < SEEN:
                _write(folder / "images" / name / f"{place}.jpg", files, place, "unchanged", draw)
            else:
                answers.append((f"{place}.jpg", name))
                _write(folder / "unlabelled" / f"{place}.jpg", files, place, kind, draw)
    signatures = [[table.names[row], *table.signatures[row]] for row in chosen]
    _write_table(folder / "answers.csv", [["file", "class"], *answers])
    width = table.signatures.shape[1]
    _write_table(folder / "signatures.csv", [["class", *(f"attribute {n}" for n in range(width))], *signatures])


def _write(path: Path, files: ImageFiles, place: int, kind: str, draw: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    camera, source = CAMERAS[kind], files.path(place)
    assert source is not None
    if camera is None:
        path.write_bytes(source.read_bytes())
        return
    rng, image = np.random.default_rng([draw, place]), Image.open(source).convert("RGB")
    for step in camera.steps:
        image = step(image, camera.strength, rng)
    image.save(path, "JPEG", quality=camera.quality)


def _write_table(path: Path, rows: Iterable[Iterable[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def fitted(folder: Path, alike: bool | None) -> Fitted:
    """Fit as the command does, without rehearsals, which do not change labels."""
    start = time.process_time()
    result = pren.fit(folder, alike=alike, rehearsals=0)
    assert result.figures is not None
    look = Look.known(result.config.record["source"])
    return Fitted(100 * result.figures.top1, time.process_time() - start, look)


def run(first: int, last: int, kinds: list[str]) -> Table:
    """Per cent right in every draw, before and after, and what was done."""
    title = f"Right labels (per cent), draws {first} to {last - 1}, before and after; what was done to labelled ones"
    table = Table(title, ["pool", "before", "after", "draws changed", "each draw", "done in the first"])
    for kind in kinds:
        before, after, looks = [], [], []
        for draw in range(first, last):
            with tempfile.TemporaryDirectory() as place:
                make_folder(Path(place), draw, kind)
                made = fitted(Path(place), None)
                plain = made if made.look is None else fitted(Path(place), False)
            before.append(plain.right)
            after.append(made.right)
            looks.append(made.look)
            seconds = f"{plain.seconds:.0f} s and {made.seconds:.0f} s"
            print(kind, draw, f"{plain.right:.1f} {made.right:.1f}", seconds, made.look, file=sys.stderr, flush=True)
        each = ", ".join(f"{a:.0f} → {b:.0f}" for a, b in zip(before, after, strict=True))
        done = next((look.done() for look in looks if look is not None), "nothing")
        changed = sum(look is not None for look in looks)
        means = (f"{np.mean(each_one):.1f}" for each_one in (before, after))
        table.rows.append((kind, *means, f"{changed} of {len(looks)}", each, done))
    return table


if __name__ == "__main__":
    print(run(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(CAMERAS)).markdown())
