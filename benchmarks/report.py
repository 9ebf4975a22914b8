"""How large reports are and how long they take: 200 unseen classes and 10,000 images, with photographs and without."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.tables import Table
from benchmarks.timing import Settings
from pren.images.files import ImageFiles
from pren.label.outcome import Outcome
from pren.problem import Answers
from pren.report import write_report
from pren.runs.run import run_config
from pren.store.config import RunConfig

SEEN, WIDTH, ATTRIBUTES = 40, 512, 80
PHOTOGRAPH = (500, 375)  # as CUB's are


def run(settings: Settings) -> list[Table]:
    """Time the report of a finished run in this process; the fit itself is not counted."""
    unseen, images, different = (6, 60, 6) if settings.quick else (200, 10_000, 200)
    columns = ["report", "seconds", "MB", "photographs"]
    table = Table(f"Reports of {images:,} images of {unseen} classes", columns)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _write_data(folder / "data.npz", unseen, images)
        config = RunConfig(data=str(folder / "data.npz"), method="pren-pool", rehearsals=2)
        result = run_config(config, folder / "run", report=False)
        assert result is not None
        assert result.outcome is not None
        outcome = result.outcome
        for title, shown in (
            ("with photographs", _with_photographs(outcome, folder / "photographs", different)),
            ("of features", outcome),
        ):
            since = time.perf_counter()
            written = write_report(replace(result, outcome=shown), folder / "report.html")
            seconds = time.perf_counter() - since
            table.rows.append((title, f"{seconds:.1f}", f"{written.size / 1e6:.2f}", str(written.photographs)))
    table.notes.append("Photographs are JPEG files of 500 x 375 pixels that are read and made small.")
    return [table]


def _write_data(path: Path, unseen: int, images: int) -> None:
    """Features in which some classes are near each other."""
    rng = np.random.default_rng(0)
    signatures = rng.random((SEEN + unseen, ATTRIBUTES))
    centres = signatures @ rng.normal(size=(ATTRIBUTES, WIDTH)) / np.sqrt(ATTRIBUTES)
    labels, answers = np.repeat(np.arange(SEEN), 20), SEEN + np.arange(images) % unseen
    train_features, pool = (
        (centres[which] + rng.normal(size=(len(which), WIDTH))).astype(np.float32) for which in (labels, answers)
    )
    names = np.array([f"{number:03d}.Some_kind_of_bird" for number in range(SEEN + unseen)])
    data = {"features": train_features, "labels": labels, "signatures": signatures, "pool": pool}
    np.savez(path, **data, class_names=names, answers=answers)


def _with_photographs(outcome: Outcome, folder: Path, different: int) -> Outcome:
    """The same as if the features were those of photographs; a few files under many names."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(different):
        coarse = Image.fromarray(rng.integers(0, 255, (15, 20, 3), dtype=np.uint8))
        coarse.resize(PHOTOGRAPH, Image.Resampling.BICUBIC).save(folder / f"{number}.jpg", quality=90)
    names = tuple(f"image_{number:05d}.jpg" for number in range(len(outcome.problem.pool)))
    for number, name in enumerate(names):
        os.link(folder / f"{number % different}.jpg", folder / name)
    assert outcome.answers is not None
    answers = Answers(outcome.answers.labels, names, pictures=ImageFiles(folder, names))
    return replace(outcome, answers=answers)
