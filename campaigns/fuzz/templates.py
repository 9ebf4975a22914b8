"""What the cases start from: valid data and runs, small enough to fit in a moment, made once."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import save_file

from pren.core.progressive import Round
from pren.images.extraction import Extractor
from pren.images.torchvision_operators import import_timm
from pren.methods.base import Method
from pren.review.journal import Journal, Verdict
from pren.review.session import FOLDER
from pren.runs.run import Progress, run_config
from pren.store.config import RunConfig

PARAMS: dict[str, Any] = {
    "heads": 2,
    "dim": 2,
    "rounds": 2,
    "initial_batches": 2,
    "batches": 1,
    "batch_size": 4,
    "hidden": [3],
    "lr": 0.01,
}
RUNS = ("finished", "interrupted", "eszsl", "trusted")
EXTRACTOR = ("--backbone", "test_resnet")  # timm's smallest
TWO = ("--backbone", "test_resnet+test_efficientnet", "--weights", "random")


class _Interrupted(KeyboardInterrupt):
    """A Ctrl-C of the campaign, not of the user."""


@dataclass(frozen=True)
class Workshop:
    """A folder with templates, and a place where every case starts afresh.

    Attributes:
        path: The folder; it must not move, because runs know where their data are.
    """

    path: Path

    @property
    def data(self) -> Path:
        """The data that the template runs were fitted on."""
        return self.path / "data.npz"

    @property
    def inputs(self) -> Path:
        """Valid inputs to predict."""
        return self.path / "inputs.npy"

    @property
    def photographs(self) -> Path:
        """A folder of photographs."""
        return self.path / "photographs"

    @property
    def weights(self) -> Path:
        """Weights of the backbone for them."""
        return self.path / "weights.safetensors"

    def template(self, name: str) -> Path:
        """One of `RUNS`, or "own", which was fitted on photographs."""
        return self.path / "runs" / name

    def fresh(self) -> Path:
        """An empty working folder, the same for every case, so that messages and results are comparable."""
        place = self.path / "case"
        os.chdir(self.path)
        if place.exists():
            shutil.rmtree(place)
        place.mkdir()
        os.chdir(place)
        return place


def problem(seen: int = 3) -> dict[str, NDArray[Any]]:
    """The arrays of a data file: some seen classes, 2 unseen ones, whose answers are known."""
    rng = np.random.default_rng(0)
    labels, answers = np.repeat(np.arange(seen), 2), seen + np.array([0, 1, 1, 0])
    centres = rng.normal(size=(seen + 2, 5))
    return {
        "features": (centres[labels] + 0.1 * rng.normal(size=(len(labels), 5))).astype(np.float32),
        "labels": labels,
        "signatures": rng.random((seen + 2, 4)),
        "pool": (centres[answers] + 0.1 * rng.normal(size=(4, 5))).astype(np.float32),
        "class_names": np.array(list("hgfedcba"[-seen - 2 :])),
        "answers": answers,
    }


def draw_photographs(folder: Path) -> None:
    """Four seen colours with two photographs each, and a pool of two unseen ones, with an answer and a label."""
    rng = np.random.default_rng(0)
    colours = {"g": (1, 0, 0), "f": (0, 1, 0), "e": (0, 0, 1), "d": (0, 1, 1), "b": (1, 1, 0), "a": (1, 0, 1)}
    files = [(f"images/{name}/{number}.png", name) for name in "gfed" for number in range(2)]
    files += [(f"unlabelled/{number}.png", "ba"[number % 2]) for number in range(5)]
    for file, name in files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = 200 * np.array(colours[name]) + rng.integers(0, 50, (6, 5, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(path)
    rows = [f"{name},{r},{g},{b}\n" for name, (r, g, b) in colours.items()]
    (folder / "signatures.csv").write_text("class,red,green,blue\n" + "".join(rows))
    (folder / "answers.csv").write_text("file,class\n0.png,b\n1.png,a\n")
    (folder / "labels.csv").write_text("file,class\n2.png,b\n3.png,\n")


def prepare(path: Path) -> Workshop:
    """Make the templates in an empty folder."""
    workshop = Workshop(path.resolve())
    arrays = problem()
    np.savez(workshop.data, **arrays)  # type: ignore[arg-type]  # NumPy's stub takes no mapping
    np.save(workshop.inputs, arrays["pool"])
    data = str(workshop.data)

    def interrupt(done: Round, method: Method) -> None:
        if done.number == 1:
            raise _Interrupted

    with mock.patch.object(os, "fsync", return_value=None):
        run_config(RunConfig(data=data, method="eszsl"), workshop.template("eszsl"))
        np.savez(workshop.path / "more.npz", **problem(6))  # type: ignore[arg-type]
        trusted = RunConfig(data=str(workshop.path / "more.npz"), method="eszsl", setting="gzsl", rehearsals=2)
        run_config(trusted, workshop.template("trusted"))
        _prepare_photographs(workshop)
        config = RunConfig(data=data, method="pren", params=PARAMS)
        run_config(config, workshop.template("finished"))
        try:
            run_config(config, workshop.template("interrupted"), progress=Progress(interrupt))
        except _Interrupted:
            return workshop
    raise AssertionError("the run was not interrupted")


def _prepare_photographs(workshop: Workshop) -> None:
    draw_photographs(workshop.photographs)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        save_file(import_timm().create_model(EXTRACTOR[1]).state_dict(), workshop.weights)
    extractor = Extractor(backbone=EXTRACTOR[1], weights=str(workshop.weights))
    own = {"data": str(workshop.photographs), "cache": str(workshop.path / "cache"), "method": "eszsl", "rehearsals": 2}
    run_config(RunConfig.model_validate({**own, "extractor": extractor}), workshop.template("own"))
    journal = Journal(workshop.template("own") / FOLDER)
    journal.add("w", {"0.png": Verdict("b"), "1.png": Verdict(mark="stranger")}, {"b": Verdict("b")})
    journal.undo("w")
    journal.close()
