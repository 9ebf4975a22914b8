"""Features that were learned from the labelled images: who was asked, what is kept, and what is learned anew."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from refusals import refused

from pren.data import class_folds, held_out_classes
from pren.images.extraction import Extractor, FrozenBackbone
from pren.images.files import ImageFiles
from pren.images.finetune import finetuned
from pren.images.finetune.finetuned import TailTrainer
from pren.images.photographs import freeze, recorded_backbone
from pren.problem import ClassTable, Problem

pytestmark = pytest.mark.slow

LABELS = np.arange(12) % 6


@pytest.fixture
def extractor(weights):
    plan = {"epochs": 1, "strength": 0.5, "batch_size": 4, "lr": 1e-2}
    return Extractor(backbone="test_resnet", weights=str(weights), finetune=plan)


@pytest.fixture
def problem(tmp_path, draw_files, extractor, fabric):
    """Maps of twelve labelled pictures of six classes, and of a pool of three."""
    names = tuple("hgfedcba")
    classes = ClassTable.build(names, np.random.default_rng(0).random((8, 4)), np.arange(8) < 6)
    photographs = Problem(draw_files(tmp_path / "train", 12), LABELS, draw_files(tmp_path / "pool", 3, 50), classes)
    return freeze(photographs, None, extractor, tmp_path / "cache", fabric=fabric, workers=0)[0]


@pytest.fixture
def trainer(problem, extractor, tmp_path, fabric):
    return TailTrainer.of(problem, extractor, tmp_path / "cache", fabric)


@pytest.fixture
def learned_places(monkeypatch):
    """The labels that tails have learned from, one after another."""
    found, learn = [], finetuned.learn_classes

    def watched(tail, width, maps, labels, *rest):
        found.append(sorted(set(labels.tolist())))
        return learn(tail, width, maps, labels, *rest)

    monkeypatch.setattr(finetuned, "learn_classes", watched)
    return found


def whole(inputs):
    return inputs[np.arange(len(inputs))]


def finished(trainer, tmp_path, strength=0.5):
    everyone = np.arange(len(trainer.problem.train))
    return trainer.finished(trainer.tail(everyone, strength), strength, tmp_path / "cache")


def test_the_last_stage_is_meant_unless_another_is_named(extractor):
    assert extractor.until == "1"
    other = Extractor(backbone="test_resnet", until="layer3", finetune={})
    assert (other.until, other.finetune.strength) == ("layer3", None)


def test_what_a_model_needs_to_see_photographs(trainer, tmp_path):
    """The whole network with what its tail has learned makes the features that were made of kept maps."""
    learned = finished(trainer, tmp_path)
    assert learned.backbone is None
    assert learned.train.sample_shape == learned.pool.sample_shape
    frozen = recorded_backbone(learned.extractor, tail=learned.tail).parts[0]
    files = ImageFiles(tmp_path / "train", [f"{number:03d}.png" for number in range(12)])
    levels, _ = files.prepared(frozen.preprocessing).decoded(range(12))
    direct = torch.from_numpy(frozen(levels, torch.device("cpu")))
    assert torch.allclose(direct, whole(learned.train), rtol=1e-2, atol=1e-2)
    plain = FrozenBackbone.load(Extractor(backbone="test_resnet", weights=trainer.extractor.weights))
    assert not torch.allclose(direct, torch.from_numpy(plain(levels, torch.device("cpu"))), rtol=1e-2, atol=1e-2)


def test_nothing_is_learned_twice(trainer, tmp_path, learned_places):
    first, second = (finished(trainer, tmp_path) for _ in range(2))
    assert learned_places == [[0, 1, 2, 3, 4, 5]]
    assert torch.equal(whole(first.train), whole(second.train))
    finished(trainer, tmp_path, strength=0.25)
    assert len(learned_places) == 1, "another strength is another place on the same way"


def test_strength_0_learns_nothing(trainer, tmp_path, learned_places):
    finished(trainer, tmp_path, strength=0.0)
    assert learned_places == []


def test_held_out_classes_have_no_part_in_their_features(trainer, tmp_path, monkeypatch):
    learned_places, features_of = [], TailTrainer.learned_from

    def watched(trainer, learned, strength, places):
        learned_places.append(set(LABELS[learned].tolist()))
        return features_of(trainer, learned, strength, places)

    monkeypatch.setattr(TailTrainer, "learned_from", watched)
    learned = finished(trainer, tmp_path)
    for folds in (partial(held_out_classes, draws=2), class_folds):
        found = list(folds(learned))
        for (fold, answers), learned_of in zip(found, learned_places[-len(found) :], strict=True):
            held = {learned.classes.names.index(fold.classes.names[row]) for row in np.unique(answers.labels)}
            assert learned_of == set(range(6)) - held
            assert len(held) == 2
    features = whole(learned.train)
    relearned = learned.train.relearned(np.arange(8))
    assert not torch.allclose(whole(relearned), features, rtol=1e-3)
    assert len(relearned) == 12


def test_folds_of_folds_forget_as_well(trainer, tmp_path, learned_places):
    learned = finished(trainer, tmp_path)
    fold, _ = next(held_out_classes(learned, 1))
    before = set(learned_places[-1])
    inner, answers = next(held_out_classes(fold, 1))
    held = {learned.classes.names.index(inner.classes.names[row]) for row in np.unique(answers.labels)}
    assert set(learned_places[-1]) == before - held
    assert len(held) == 2


def test_a_hash_tells_what_was_asked_for(trainer, tmp_path, problem, extractor, fabric):
    first = finished(trainer, tmp_path).fingerprint()
    assert finished(trainer, tmp_path).fingerprint() == first
    for plan in ({"epochs": 2, "strength": 0.5}, {"epochs": 1, "strength": 0.25}):
        other = Extractor(**{**extractor.model_dump(), "finetune": {**plan, "batch_size": 4}})
        changed = TailTrainer.of(problem, other, tmp_path / "cache", fabric)
        assert finished(changed, tmp_path, plan["strength"]).fingerprint() != first
    labels = np.roll(LABELS, 1)
    moved = TailTrainer.of(replace(problem, labels=labels), extractor, tmp_path / "cache", fabric)
    assert finished(moved, tmp_path).fingerprint()["data"] != first["data"]


def test_a_tail_of_another_network_is_refused(trainer, tmp_path):
    learned = finished(trainer, tmp_path)
    shorter = {name: value[:1] for name, value in learned.tail.items() if value.ndim}
    for tail in ({}, {"model.layer4.nonsense": torch.zeros(1)}, shorter):
        with refused("weights-other"):
            recorded_backbone(learned.extractor, tail=tail)
