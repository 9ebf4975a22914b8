"""What the cases start from: valid data and runs, small enough to fit in a moment, made once."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from pren.core.progressive import Round
from pren.methods.base import Method
from pren.runs.config import RunConfig
from pren.runs.train import train

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
RUNS = ("finished", "interrupted", "eszsl")


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C, told apart from the user's own."""


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

    def template(self, name: str) -> Path:
        """One of `RUNS`."""
        return self.path / "runs" / name

    def fresh(self) -> Path:
        """An empty folder to stand in, the same for every case, so that messages and results do not differ in it."""
        place = self.path / "case"
        os.chdir(self.path)
        if place.exists():
            shutil.rmtree(place)
        place.mkdir()
        os.chdir(place)
        return place


def problem() -> dict[str, NDArray[Any]]:
    """The arrays of a data file: 3 seen classes, 2 unseen ones, whose answers are known."""
    rng = np.random.default_rng(0)
    labels, answers = np.array([0, 0, 1, 1, 2, 2]), np.array([3, 4, 4, 3])
    centres = rng.normal(size=(5, 5))
    return {
        "features": (centres[labels] + 0.1 * rng.normal(size=(6, 5))).astype(np.float32),
        "labels": labels,
        "signatures": rng.random((5, 4)),
        "pool": (centres[answers] + 0.1 * rng.normal(size=(4, 5))).astype(np.float32),
        "class_names": np.array(["e", "d", "c", "b", "a"]),
        "answers": answers,
    }


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
        train(RunConfig(data=data, method="eszsl"), workshop.template("eszsl"))
        config = RunConfig(data=data, method="pren", params=PARAMS)
        train(config, workshop.template("finished"))
        try:
            train(config, workshop.template("interrupted"), on_round=interrupt)
        except _Interrupted:
            return workshop
    raise AssertionError("the run was not interrupted")
