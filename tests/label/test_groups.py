"""Which groups are asked about: one example of each doubtful one, and what its label does."""

from dataclasses import replace

import numpy as np
import pytest

from pren.label.groups import group_questions
from pren.label.outcome import Outcome
from pren.label.suggest import suggest_places
from pren.methods.pren_pool import PrENPool
from pren.methods.pren_vote import PrENVote
from pren.problem import UNKNOWN
from pren.trust import Labels
from pren.trust.names import Names


@pytest.fixture(scope="module")
def problem(make_problem):
    """Signatures that tell little of where classes lie."""
    return make_problem(n_seen=9, n_unseen=5, pool_per_class=12, m=3, seed=3)


@pytest.fixture(scope="module")
def outcome(problem):
    return Outcome.of(PrENVote(heads=40).fit(problem), problem, None, None)


def test_the_best_example_of_each_doubtful_group_the_least_certain_first(problem, outcome):
    names = Names.of(outcome.method, outcome.labels.classes, problem)
    doubtful = [row for row in range(14) if names.to_check()[row]]
    assert doubtful
    ranked = sorted(doubtful, key=lambda row: (names.certainty()[row], -names.sizes[row]))
    best = [
        max(np.flatnonzero(outcome.labels.classes == row), key=lambda place: outcome.labels.scores[place])
        for row in ranked
    ]
    assert group_questions(outcome).tolist() == best


def test_strange_inputs_are_no_examples(outcome):
    first = group_questions(outcome)[0]
    strange = np.full(len(outcome.labels.classes), 1.0)
    strange[first] = 0.0
    other = replace(outcome, labels=outcome.labels._replace(familiarity=strange))
    assert first not in group_questions(other)
    assert outcome.labels.classes[first] in outcome.labels.classes[group_questions(other)]
    nothing = replace(outcome, labels=outcome.labels._replace(familiarity=np.zeros_like(strange)))
    assert not len(group_questions(nothing))


def test_groups_come_first_and_nothing_twice(problem, outcome):
    groups, features = group_questions(outcome), outcome.method.embed(problem.pool)
    for count in (1, len(groups), len(groups) + 4, 1000):
        chosen = suggest_places(outcome, features, count)
        assert len(chosen) == len(set(chosen)) == min(count, len(problem.pool))
        assert chosen[: len(groups)].tolist() == groups[:count].tolist()


def test_an_answer_settles_the_name_of_its_whole_group(problem, outcome):
    asked = group_questions(outcome)[0]
    group = np.flatnonzero(outcome.labels.classes == outcome.labels.classes[asked])
    other = next(row for row in np.flatnonzero(problem.classes.unseen) if row != outcome.labels.classes[asked])
    given = np.full(len(problem.pool), UNKNOWN)
    given[asked] = other
    told = replace(problem, given=given)
    after = Outcome.of(PrENVote(heads=40).fit(told), told, None, None)
    assert isinstance(after.labels, Labels)
    assert np.mean(after.labels.classes[group] == other) > 0.5
    assert asked not in group_questions(after)
    assert other not in after.labels.classes[group_questions(after)]


def test_a_method_that_chooses_no_names_has_no_groups_to_ask_about(problem):
    found = Outcome.of(PrENPool().fit(problem), problem, None, None)
    assert not len(group_questions(found))
