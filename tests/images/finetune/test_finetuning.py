"""The last stages learn the seen classes: what they are asked, what chance does, and what is turned."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from pren.foundation.seeds import stream
from pren.images.finetune.finetuning import Finetuning, StageClassifier, between, learn_classes, mirror_axis, mirrored
from pren.problem import ClassTable
from pren.problem.inputs import ArrayInputs

NAMES = ("d", "b", "c", "a", "e")
SEEN = np.array([True, True, True, True, False])
WIDTH = 4


class Tail(nn.Module):
    """Mean over places, then a linear map."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(3, WIDTH)
        with torch.no_grad():
            self.map.weight.copy_(torch.arange(12.0).reshape(WIDTH, 3).sin())
            self.map.bias.zero_()

    def forward(self, x):
        return self.map(x.mean(dim=(2, 3)))


@pytest.fixture
def classes():
    return ClassTable.build(NAMES, np.random.default_rng(0).random((5, 6)), SEEN)


@pytest.fixture
def maps():
    """Forty maps of four classes, which differ by the mean of two channels; the third is louder and says nothing."""
    rng = np.random.default_rng(1)
    labels = np.arange(40) % 4
    means = np.column_stack([labels % 2, labels // 2, rng.normal(0, 3, 40)])
    return ArrayInputs(rng.normal(means[:, :, None, None], 0.3, (40, 3, 5, 5)).astype(np.float32)), labels


def taught(maps, classes, fabric, labels=None, **settings):
    """The tail's weights after it has learned."""
    inputs, known = maps
    tail, plan = Tail(), Finetuning(**{"epochs": 2, "batch_size": 8, "lr": 1e-2, **settings})
    learn_classes(tail, WIDTH, inputs, known if labels is None else labels, classes, plan, fabric)
    return tail.state_dict()


def same(a, b):
    return all(torch.equal(value, b[name]) for name, value in a.items())


@pytest.mark.parametrize("targets", ["classes", "signatures", "both"])
@torch.no_grad()
def test_the_loss_is_that_of_a_plain_loop(classes, targets):
    plan = Finetuning(targets=targets, dropout=0.25, smoothing=0.2)
    classifier = StageClassifier(Tail(), WIDTH, classes.signatures[:4], plan)
    x, y = torch.rand(6, 3, 5, 5, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 3, 1, 2, 2, 0])
    classifier.chance.manual_seed(5)
    loss = classifier.loss(x, y)
    kept = torch.rand(6, WIDTH, generator=torch.Generator().manual_seed(5)) >= 0.25
    signatures = classes.signatures[:4] - classes.signatures[:4].mean(axis=0)
    signatures /= np.sqrt(np.mean([row @ row for row in signatures]))
    total = 0.0
    for image in range(6):
        feature = classifier.tail(x)[image] * kept[image] / 0.75
        logits = []
        if targets != "signatures":
            logits.append(classifier.classes(feature))
        if targets != "classes":
            described = classifier.attributes(feature)
            logits.append(torch.stack([described @ torch.tensor(row).float() for row in signatures]))
        for of_classes in logits:
            logp = functional.log_softmax(of_classes, dim=0)
            wanted = torch.full((4,), 0.2 / 4)
            wanted[y[image]] += 0.8
            total -= float((wanted * logp).sum()) / 6
    assert float(loss) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("targets", ["classes", "signatures", "both"])
def test_the_tail_learns_to_tell_the_classes_apart(maps, classes, fabric, targets):
    inputs, labels = maps
    everything = inputs[np.arange(40)]

    def apart(tail):
        """The distance between classes against that within them."""
        with torch.no_grad():
            found = tail(everything).double().numpy()
        means = np.array([found[labels == label].mean(axis=0) for label in range(4)])
        return means.var(axis=0).sum() / (found - means[labels]).var(axis=0).sum()

    tail = Tail()
    before = apart(tail)
    tail.load_state_dict(taught(maps, classes, fabric, epochs=20, lr=3e-2, targets=targets))
    assert apart(tail) > 3 * before


def test_the_same_seed_gives_the_same_bits_wherever_torch_stands(maps, classes, fabric):
    found = []
    for state in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(state)
            found.append(taught(maps, classes, fabric))
    assert same(*found)
    assert not same(found[0], taught(maps, classes, fabric, seed=1))
    assert not same(found[0], taught(maps, classes, fabric, epochs=1))


@given(strength=st.floats(0, 1))
def test_part_of_the_way_lies_on_the_line(strength):
    start, end = (
        {"w": torch.tensor([1.0, -2.0]), "n": torch.tensor(3)},
        {"w": torch.tensor([2.0, 4.0]), "n": torch.tensor(9)},
    )
    there = between(start, end, strength)
    assert there["w"].tolist() == pytest.approx([1 + strength, -2 + 6 * strength], abs=1e-5)
    assert int(there["n"]) == 3
    assert same(between(start, end, 0.0), start)
    assert torch.equal(between(start, end, 1.0)["w"], end["w"])


def test_the_order_of_the_classes_means_nothing(maps, classes, fabric):
    order = np.array([2, 4, 0, 3, 1])
    names, signatures = [NAMES[row] for row in order], classes.signatures[order]
    other = ClassTable.build(names, signatures, SEEN[order])
    labels = np.argsort(order)[maps[1]]
    for targets in ("classes", "signatures"):
        first = taught(maps, classes, fabric, targets=targets)
        second = taught(maps, other, fabric, labels, targets=targets)
        assert all(torch.allclose(value, second[name], atol=1e-5) for name, value in first.items())


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((192, 7, 7), 3), ((7, 7, 768), 2), ((197, 768), None), ((7, 7, 7), None), ((8, 7, 6), None), ((7, 8, 7), None)],
)
def test_which_axis_runs_from_left_to_right(shape, axis):
    assert mirror_axis(shape) == axis


@given(seed=st.integers(0, 1000), axis=st.sampled_from([2, 3, None]))
def test_maps_are_turned_whole_or_not_at_all(seed, axis):
    maps = torch.arange(2 * 3 * 4 * 6 * 4.0).reshape(6, 4, 2 * 3, 4)
    turned = mirrored(maps, stream(seed, "mirrors"), axis)
    chosen = stream(seed, "mirrors").random(6) < 0.5
    for place in range(6):
        wanted = maps[place].flip(axis - 1) if axis is not None and chosen[place] else maps[place]
        assert torch.equal(turned[place], wanted)
