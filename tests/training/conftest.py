"""What the tests of the engine share: a problem small enough to follow image by image, and a network with a diary."""

import numpy as np
import pytest
import torch
from torch import nn

from pren.core.voting import Network
from pren.problem.inputs import ArrayInputs
from pren.training.processes import single_process

N_TRAIN, N_POOL = 12, 20
SUBSETS = [[0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]]  # two seen classes, three unseen ones


class Diary(Network):
    """A network that writes down what it is trained on, and in which mode it is when."""

    def __init__(self, backbone, ensemble, rule="votes"):
        super().__init__(backbone, ensemble, rule)
        self.batches: list[list[tuple[int, int]]] = []
        self.losses: list[float] = []
        self.training_mode: list[bool] = []
        backbone.register_forward_hook(lambda module, *_: self.training_mode.append(module.training))

    def loss(self, inputs, targets):
        loss = super().loss(inputs, targets)
        numbers = (inputs.flatten(1)[:, 0] * 64).round().int()
        self.batches.append(list(zip(numbers.tolist(), targets.tolist(), strict=True)))
        self.losses.append(loss.item())
        return loss


@pytest.fixture(scope="session")
def fabric():
    return single_process("cpu")


@pytest.fixture(scope="session")
def labels():
    """Of the training images."""
    return np.arange(N_TRAIN) % 2


@pytest.fixture(scope="session")
def make_inputs():
    """Build training images and a pool; the first number of each says which one it is."""

    def build(kind="features"):
        rng = np.random.default_rng(0)
        shape = (4,) if kind == "features" else (1, 2, 2)
        train, pool = (rng.normal(size=(n, *shape)).astype(np.float32) for n in (N_TRAIN, N_POOL))
        train.reshape(N_TRAIN, -1)[:, 0] = np.arange(N_TRAIN) / 64
        pool.reshape(N_POOL, -1)[:, 0] = (N_TRAIN + np.arange(N_POOL)) / 64
        return ArrayInputs(train), ArrayInputs(pool)

    return build


@pytest.fixture(scope="session")
def make_network(make_ensemble):
    """Build a network with a diary, on features or on tiny images."""

    def build(kind="features", rule="votes"):
        if kind == "features":
            return Diary(nn.Identity(), make_ensemble(SUBSETS), rule)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            backbone = nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten())
        return Diary(backbone, make_ensemble(SUBSETS, in_features=2), rule)

    return build


@pytest.fixture(scope="session")
def same_bits():
    """Whether two state dicts are equal to the bit."""

    def check(state, other):
        return state.keys() == other.keys() and all(torch.equal(state[key], other[key]) for key in state)

    return check
