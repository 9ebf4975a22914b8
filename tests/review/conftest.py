"""A pile of photographs whose groups are found, but two of whose names are swapped; a run on it; a browser."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("fastapi", reason="the extra review is not installed")

from pren.images.extraction import Extractor
from pren.runs.run import run_config
from pren.store.config import RunConfig

EVIL = "<img src=x onerror=window.hacked=1>\"'&amp;<svg onload=window.hacked=1>".replace("/", "")
SEEN = {
    "red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "cyan": (0, 1, 1), "white": (1, 1, 1),
    "black": (0.05, 0.05, 0.05), "olive": (0.5, 0.5, 0), "teal": (0, 0.5, 0.5),
}  # fmt: skip
UNSEEN = {"yellow": (1, 1, 0), "violet": (1, 0, 1), "grey": (0.5, 0.5, 0.5), EVIL: (1, 0.5, 0)}
SWAPPED = {"yellow": "violet", "violet": "yellow"}
EACH = 8


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


def make_photographs(folder: Path) -> dict[str, str]:
    """Eight seen colours and four unseen ones; returns the true class of every file of the pool."""
    rng = np.random.default_rng(0)

    def draw(path, colour):
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = 190 * np.array(colour) + rng.integers(0, 60, (48, 48, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(path)

    for name, colour in SEEN.items():
        for number in range(4):
            draw(folder / "images" / name / f"{number}.png", colour)
    truth = {}
    for number in range(EACH * len(UNSEEN)):
        name = list(UNSEEN)[number % len(UNSEEN)]
        file = "<b>x.png" if number == 1 else f"trip/photo_{number:02d}.png"
        draw(folder / "unlabelled" / file, UNSEEN[name])
        truth[file] = name
    # Planted: the descriptions of two classes are swapped.
    colours = {**SEEN, **{name: UNSEEN[SWAPPED.get(name, name)] for name in UNSEEN}}
    quoted = {name: name.replace('"', '""') for name in colours}
    rows = [f'"{quoted[name]}",{r},{g},{b},{1 - r},{1 - g},{1 - b}' for name, (r, g, b) in colours.items()]
    (folder / "signatures.csv").write_text("\n".join(["class,red,green,blue,cyanish,pinkish,yellowish", *rows, ""]))
    return truth


@pytest.fixture(scope="session")
def piled(tmp_path_factory, tiny_weights):
    """The folder of the photographs and of a run on them, and the true classes."""
    place = tmp_path_factory.mktemp("piled")
    truth = make_photographs(place / "photographs")
    config = RunConfig(
        data=str(place / "photographs"),
        method="pren-vote",
        extractor=Extractor(backbone="test_resnet", weights=str(tiny_weights)),
        cache=str(place / "cache"),
        rehearsals=2,
    )
    run_config(config, place / "run", command="pren fit", report=False)
    return place, truth


@pytest.fixture
def pile(piled, tmp_path, monkeypatch):
    """A copy of them that a test may change; its data are where the run says they are."""
    place, truth = piled
    for name in ("photographs", "run"):
        shutil.copytree(place / name, tmp_path / name)
    shutil.copytree(place / "cache", tmp_path / "cache")
    return tmp_path, truth
