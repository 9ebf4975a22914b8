"""A problem of photographs: bad files, features, and models of features that are given photographs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file

from pren.images.cache import CachedFeatures
from pren.images.extraction import Extractor
from pren.images.photographs import (
    freeze,
    has_photographs,
    leave_out_unreadable,
    recorded_backbone,
    unreadable_files,
)
from pren.problem import Answers, ClassTable, Problem

NAMES = ("d", "c", "b", "a")
LABELS = np.array([0, 1, 0, 1, 0, 1])
IN_POOL = np.array([2, 3, 3, 2, 3])


@pytest.fixture
def problem(tmp_path, draw_files):
    """Six labelled pictures of two classes, and a pool of five of two others."""
    signatures = np.random.default_rng(0).random((4, 3))
    classes = ClassTable.build(NAMES, signatures, np.array([True, True, False, False]))
    train = draw_files(tmp_path / "train", 6)
    return Problem(train, LABELS, draw_files(tmp_path / "pool", 5, start=50), classes, source={"name": "noise"})


@pytest.fixture
def extractor(weights):
    return Extractor(backbone="test_resnet", weights=str(weights))


def spoil(problem, tmp_path, in_train=(), in_pool=()):
    for part, places in (("train", in_train), ("pool", in_pool)):
        files = getattr(problem, part)
        for place in places:
            files._path(place).write_bytes(b"no picture")


def whole(inputs):
    return inputs[np.arange(len(inputs))]


@pytest.fixture
def frozen(extractor, fabric, tmp_path):
    """Freeze in this very process."""

    def run(problem, answers=None):
        return freeze(problem, answers, extractor, tmp_path / "cache", fabric=fabric, workers=0)

    return run


@pytest.mark.parametrize("way", ["leave out", "freeze"])
def test_bad_files_go_with_their_labels_and_answers(problem, tmp_path, frozen, caplog, way):
    before = frozen(problem)[0] if way == "freeze" else problem
    spoil(problem, tmp_path, (1, 4), (0, 2))
    run = frozen if way == "freeze" else leave_out_unreadable
    after, answers = run(problem, Answers(IN_POOL, tuple("vwxyz")))
    assert after.labels.tolist() == [0, 0, 1, 1]
    assert answers.labels.tolist() == [3, 2, 3]
    assert answers.names == ("w", "y", "z")
    assert answers.unreadable.keys() == {"v", "x"}
    assert "cannot be read as an image" in answers.unreadable["x"]
    assert whole(after.train).equal(whole(before.train)[[0, 2, 3, 5]]) if way == "freeze" else len(after.train) == 4
    assert whole(after.pool).equal(whole(before.pool)[[1, 3, 4]]) if way == "freeze" else len(after.pool) == 3
    assert "4 of 11 photographs cannot be read and are left out: " in caplog.text
    assert caplog.text.count("cannot identify it") == 4
    assert after.classes is problem.classes
    assert after.source == problem.source
    assert has_photographs(after) == (way != "freeze")


def test_the_files_that_are_left_are_the_right_ones(problem, tmp_path):
    kept = whole(problem.train)[[0, 2, 3, 5]]
    spoil(problem, tmp_path, (1, 4))
    after, answers = leave_out_unreadable(problem, None)
    assert answers is None
    assert whole(after.train).equal(kept)
    assert whole(after.pool).equal(whole(problem.pool))
    assert leave_out_unreadable(after, None)[0] is after


def test_no_more_than_some_bad_files_are_named(problem, tmp_path, caplog):
    spoil(problem, tmp_path, (0, 1, 2, 3), (0, 1))
    leave_out_unreadable(problem, None)
    assert caplog.text.count("cannot identify it") == 5
    assert " ..." in caplog.text


@pytest.mark.parametrize("way", ["leave out", "freeze"])
@pytest.mark.parametrize(
    ("in_train", "in_pool", "refusal"),
    [
        (range(6), (), "input-unreadable"),
        ((1, 3, 5), (), "input-unreadable c 001.png"),
        ((), range(5), "pool-empty"),
    ],
)
def test_too_few_are_left(problem, tmp_path, frozen, way, in_train, in_pool, refusal):
    spoil(problem, tmp_path, in_train, in_pool)
    with refused(refusal):
        (frozen if way == "freeze" else leave_out_unreadable)(problem, None)


def test_unreadable_files_are_listed(problem, tmp_path):
    spoil(problem, tmp_path, (4, 1))
    assert [place for place, _ in unreadable_files(problem.train)] == [1, 4]
    assert unreadable_files(problem.pool) == []


def test_only_photographs_can_be_frozen(problem, frozen):
    features = Problem.from_arrays(np.eye(2), [0, 1], np.eye(3), np.eye(2))
    assert not has_photographs(features)
    assert has_photographs(problem)
    for run in (frozen, leave_out_unreadable):
        with refused("no-photographs"):
            run(features, None)


def test_a_frozen_problem_is_one_of_features(problem, frozen, tiny):
    after, _ = frozen(replace(problem, backbone="resnet18"))
    assert isinstance(after.train, CachedFeatures)
    assert after.train.sample_shape == after.pool.sample_shape == tiny.shape
    assert after.backbone is None  # or a method would look for images to give it
    assert after.extractor["facts"] == tiny.facts
    assert after.fingerprint() == frozen(problem)[0].fingerprint()


def test_other_weights_are_refused(problem, frozen, tmp_path, weights):
    record = frozen(problem)[0].extractor
    tensors = load_file(weights)
    other, moved = tmp_path / "other.safetensors", tmp_path / "moved.safetensors"
    save_file(tensors, moved)
    save_file({key: value + 1 if value.dtype == torch.float32 else value for key, value in tensors.items()}, other)
    with refused("weights-other"):
        recorded_backbone(record, str(other))
    assert recorded_backbone(record, str(moved)).facts == record["facts"]
    changed = {**record, "facts": {**record["facts"], "version": 0}}
    with refused("weights-other"):
        recorded_backbone(changed)


@pytest.mark.parametrize("record", [{}, {"asked": {"backbone": 5}, "facts": {}}, {"asked": {}, "facts": {}, "more": 1}])
def test_a_record_that_says_nothing(record):
    with refused("damaged"):
        recorded_backbone(record)
