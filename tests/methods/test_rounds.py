"""A method with epochs of its own, from outside: history, checkpoint, progress and resuming take what it carries."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import torch
from run_folders import run_folder
from torch import nn
from typer.testing import CliRunner

from pren.cli.__main__ import app
from pren.core.pseudo import PseudoLabels
from pren.foundation.seeds import stream
from pren.methods.network import EpochMethod, initial_linear
from pren.methods.params import param
from pren.methods.registry import METHODS, register_method
from pren.store.config import RunConfig
from pren.store.folder import RunFolder
from pren.training.batches import TrainingSet, batches


class Bilinear(nn.Module):
    def __init__(self, d, signatures, rng):
        super().__init__()
        self.map = initial_linear(d, signatures.shape[1], rng)
        self.register_buffer("signatures", torch.from_numpy(signatures).float(), persistent=False)

    def forward(self, x):
        return (self.map(x) @ self.signatures.T).double()

    def loss(self, x, y):
        return nn.functional.cross_entropy(self(x), y)


@pytest.fixture
def toy():
    @register_method("toy-epochs", title="Toy", summary="a linear map in epochs (inductive)")
    class Toy(EpochMethod):
        """A network in thirty lines."""

        epochs: int = param(3, "Passes over the labelled images.", ge=0)

        def _build(self, tensors):
            rng = stream(self.seed, "weights") if tensors is None else None
            return Bilinear(self._sizes()["d"], self.classes_.signatures[self._order()], rng)

        def _adam(self, network):
            return torch.optim.Adam(network.parameters(), lr=self.lr)

        def _epoch(self, trainer, problem, epoch):
            images = TrainingSet(problem.train, problem.labels, problem.pool, PseudoLabels.none())
            return trainer.train(images, batches(len(images), 8, 4, self.seed, epoch))

        def _train(self, fabric, problem, last, adam):
            for done in super()._train(fabric, problem, last, adam):
                figures = {**done.figures, "largest_weight": float(self.network_.map.weight.detach().abs().max())}
                yield type(done)(done.number, done.of, figures, kind=done.kind)

    yield Toy
    del METHODS._entries["toy-epochs"]


@pytest.fixture
def data(arrays, tmp_path):
    np.savez(tmp_path / "data.npz", **arrays())
    return str(tmp_path / "data.npz")


def test_the_figures_of_an_epoch_reach_the_history_and_the_terminal(toy, data, tmp_path):
    shown = CliRunner().invoke(app, ["fit", data, "--method=toy-epochs", "--out", str(tmp_path / "run")])
    assert shown.exit_code == 0, shown.output
    assert "epoch  3/3" in shown.stderr
    assert "largest-weight" in shown.stderr
    rows = list(csv.DictReader((tmp_path / "run" / "history.csv").read_text().splitlines()))
    assert [row["round"] for row in rows] == ["1", "2", "3"]
    assert all(float(row["largest_weight"]) > 0 for row in rows)
    assert "largest_weight" in CliRunner().invoke(app, ["show", str(tmp_path / "run")]).output


def test_it_resumes_after_every_epoch_with_the_same_bits(toy, data, tmp_path):
    whole = run_folder(RunConfig(data=data, method="toy-epochs"), tmp_path / "whole")

    def stop(done, *_):
        if done.number == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run_folder(RunConfig(data=data, method="toy-epochs"), tmp_path / "part", on_round=stop)
    run_folder(RunConfig(data=data, method="toy-epochs"), tmp_path / "part", resume=True)
    for name in ("predictions.csv", "history.csv"):
        assert (tmp_path / "part" / name).read_bytes() == (whole.path / name).read_bytes()
    assert RunFolder.open(tmp_path / "part").finished()
