"""A rival that is named without parameters does its work: a comparison with it says something."""

import pytest

from benchmarks.defaults import RIVALS
from pren.data import load
from pren.evaluation import evaluate_scores
from pren.methods.registry import create

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def numbers():
    """Validation classes whose pool is slanted, blurred and noisy, where the labelled images are not."""
    return load("numbers-features", split="val")


@pytest.mark.parametrize("name", RIVALS)
def test_with_its_defaults_it_is_far_above_chance(numbers, name):
    problem, answers = numbers
    scores = create(name).fit(problem).scores(problem.pool)
    assert evaluate_scores(scores, answers, problem.classes, problem.setting).top1 > 0.2  # chance is 0.05
