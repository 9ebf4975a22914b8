"""Copies in the pool of a run: they change no label, and are said."""

import csv
import json
import shutil

import numpy as np
import pytest

import pren

from .conftest import SMALL

SHOT = {"method": "pren-vote", "rehearsals": 3, "report": False}


@pytest.fixture(scope="module")
def drawn():
    """Eight seen classes and three unseen ones, hard enough that a copy would count."""
    rng = np.random.default_rng(3)
    signatures = rng.random((11, 6))
    centres = signatures @ rng.normal(size=(6, 48)) + rng.normal(size=(11, 48))
    labels, hidden = np.repeat(np.arange(8), 5), rng.permutation(np.repeat(np.arange(8, 11), 8))
    train, pool = (
        (centres[rows] + 1.5 * rng.normal(size=(len(rows), 48))).astype(np.float32) for rows in (labels, hidden)
    )
    return {"features": train, "labels": labels, "signatures": signatures, "pool": pool}


@pytest.fixture
def fitted(drawn, tmp_path, monkeypatch):
    """Fit with another pool."""
    monkeypatch.chdir(tmp_path)

    def run(pool, **settings):
        np.savez("data.npz", **{**drawn, "pool": pool.astype(np.float32)})
        return pren.fit("data.npz", **{**SHOT, **settings})

    return run


@pytest.fixture
def once(fitted, drawn):
    return fitted(drawn["pool"])


@pytest.mark.parametrize("how", ["the same", "nearly the same", "mixed"])
def test_a_pool_that_is_doubled_keeps_its_labels(fitted, drawn, once, how, caplog):
    pool = drawn["pool"]
    rng = np.random.default_rng(0)
    copies = pool + (0.0 if how == "the same" else 0.05) * rng.normal(size=pool.shape)
    order = rng.permutation(48) if how == "mixed" else np.arange(48)
    found = fitted(np.concatenate([pool, copies])[order])
    labels, expected = np.empty(48, dtype=object), once.labels.labels
    labels[order] = found.labels.labels
    assert labels[:24].tolist() == labels[24:].tolist() == list(expected)
    assert "24 of 48 inputs of the pool are the same as others, or nearly" in caplog.text
    if how == "the same":
        assert found.forecast == once.forecast
        confidence = np.asarray(once.labels.confidence)
        assert np.array_equal(found.labels.confidence, np.tile(confidence, 2))


def test_without_copies_nothing_is_said(once, caplog):
    assert "same as" not in caplog.text


def test_labelled_photographs_in_the_pool_are_said(fitted, drawn, once, caplog):
    mixed = np.concatenate([drawn["pool"], drawn["features"][[7, 12]]])
    found = fitted(mixed)
    assert "2 of 26 inputs of the pool are the same as labelled ones" in caplog.text
    assert "input 24 (of class 'class 01'), input 25 (of class 'class 02'). None of their labels can" in caplog.text
    assert np.asarray(found.labels.confidence)[24:].tolist() == [0, 0]
    assert found.forecast.expected == pytest.approx(once.forecast.expected * (1 - 2 / 26), abs=0.1)
    whole = fitted(drawn["features"])
    assert whole.forecast.expected == 0
    assert whole.summary.levels.sure == 0


def test_in_gzsl_labelled_ones_have_a_class(fitted, drawn, caplog):
    found = fitted(np.concatenate([drawn["pool"], drawn["features"][:1]]), setting="gzsl")
    assert "the same as labelled ones, or nearly: input 24 (of class 'class 00')." in caplog.text
    assert "None of their labels" not in caplog.text
    assert found.labels.confidence[24] > 0


def test_a_run_that_is_opened_again_has_the_same_labels(fitted, drawn):
    rng = np.random.default_rng(0)
    near = drawn["pool"] + 0.05 * rng.normal(size=drawn["pool"].shape)
    first = fitted(np.concatenate([drawn["pool"], near]), out="run")
    again = pren.load_result("run", with_data=True)
    assert again.outcome.labels.classes.tolist() == first.outcome.labels.classes.tolist()
    assert np.array_equal(again.outcome.labels.confidence, first.outcome.labels.confidence)


@pytest.mark.slow
def test_pseudo_labels_name_the_inputs_that_were_learned_from(photographs, tiny_weights, caplog):
    """Their places count copies once, their names are those of the files."""
    shutil.copy(photographs / "unlabelled/0.png", photographs / "unlabelled/again.png")
    backbone = {"backbone": "test_resnet", "weights": tiny_weights, "frozen": True}
    pren.fit(photographs, photographs.parent / "run", method="pren", **backbone, **{**SMALL, "dim": 2}, report=False)
    assert "1 of 7 inputs" in caplog.text
    assert "'again.png' is like '0.png'" in caplog.text
    with (photographs.parent / "run/pseudo_labels.csv").open() as file:
        files = {row["input"] for row in csv.DictReader(file)}
    assert files <= {f"{number}.png" for number in range(6)}
    assert json.loads((photographs.parent / "run/metrics.json").read_text())["top1"] is not None
