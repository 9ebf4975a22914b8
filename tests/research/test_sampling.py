"""Proposals: reproducible from what is known about the trials so far, and nothing else."""

import pytest

from pren.methods.registry import METHODS
from pren.methods.space import Choice, Real, Whole, holds
from pren.research.sampling import Sampler

SPACE = {"a": Real(1e-3, 1e3, log=True), "b": Whole(1, 9), "c": Choice(("x", 2, True))}
START = {"a": 1.0, "b": 5, "c": "x", "other": 7}


def worth(params):
    return None if params["b"] == 3 else params["a"] - params["b"]


def run(sampler, count):
    proposals = []
    for _ in range(count):
        proposals.append(sampler.propose())
        sampler.learn(proposals[-1], worth(proposals[-1]))
    return proposals


def test_it_begins_with_the_start():
    assert Sampler(SPACE, 0, START).propose() == {"a": 1.0, "b": 5, "c": "x"}


def test_a_start_outside_the_space_is_drawn():
    first = Sampler(SPACE, 0, {**START, "a": 1e9, "c": None}).propose()
    assert first["b"] == 5
    assert holds(SPACE["a"], first["a"])
    assert holds(SPACE["c"], first["c"])


def test_proposals_lie_in_the_space_and_differ():
    proposals = run(Sampler(SPACE, 0, START), 20)
    assert all(holds(SPACE[name], value) for proposal in proposals for name, value in proposal.items())
    assert len({proposal["a"] for proposal in proposals}) == 20


@pytest.mark.parametrize("after", [0, 1, 5, 14])
def test_one_that_was_interrupted_goes_on_as_it_would_have(after):
    whole = run(Sampler(SPACE, 3, START), 18)  # TPE draws at random for ten trials, and learns from then on
    again = Sampler(SPACE, 3, START)
    for params in whole[:after]:
        again.learn(params, worth(params))
    assert run(again, 18 - after) == whole[after:]


def test_another_seed_gives_other_proposals():
    assert run(Sampler(SPACE, 0, START), 3)[1:] != run(Sampler(SPACE, 1, START), 3)[1:]


@pytest.mark.parametrize(
    ("dimension", "inside", "outside"),
    [
        (Real(0.5, 2), [0.5, 1, 2.0], [0.4, 2.1, "1", None]),
        (Whole(1, 3), [1, 3], [0, 4, None]),
        (Choice(("x", 2)), ["x", 2], ["y", None]),
    ],
)
def test_what_a_space_holds(dimension, inside, outside):
    assert all(holds(dimension, value) for value in inside)
    assert not any(holds(dimension, value) for value in outside)


@pytest.mark.parametrize("entry", METHODS.values(), ids=lambda entry: entry.name)
def test_every_space_can_be_drawn_from(entry):
    """Bounds in order, parameters that the constructor has, and values that it takes."""
    free = {name: dimension for name, dimension in entry.method.space.items() if name not in entry.preset}
    sampler = Sampler(free, 0, {})
    for _ in range(3):
        proposal = sampler.propose()
        sampler.learn(proposal, 0.5)
        entry.method(**{**proposal, **entry.preset})
    assert "gamma" not in entry.method.space
