"""Rules for pseudo-labels by name: somebody's own rule is one function, and a parameter of PrEN names it."""

import numpy as np
import pytest

from pren.core.pseudo import PseudoLabels, top_per_class
from pren.errors import PrenError
from pren.methods.pren import PrEN
from pren.methods.storage import load_model
from pren.selection import SELECTIONS, register_selection

TINY = {"heads": 3, "hidden": (8,), "rounds": 3, "initial_batches": 2, "batches": 2, "batch_size": 8}


@pytest.fixture
def given(monkeypatch):
    """Register a rule that keeps what it once chose and adds the best of the others; returns what it is given."""
    monkeypatch.setattr(SELECTIONS, "_entries", dict(SELECTIONS._entries))  # it goes away with the test
    given = []

    @register_selection("growing")
    def growing(scores, candidates, per_class, last):
        given.append((scores, candidates, per_class, last))
        others = np.setdiff1d(np.arange(len(scores)), last.images)
        best = top_per_class(scores[others], candidates, per_class, last)
        return PseudoLabels(
            np.concatenate([last.images, others[best.images]]), np.concatenate([last.labels, best.labels])
        )

    return given


def test_the_papers_rule_is_the_default():
    assert SELECTIONS[PrEN().selection] is top_per_class


def test_a_rule_of_ones_own_chooses_the_pseudo_labels(given, make_problem):
    problem = make_problem()
    rounds = list(PrEN(**TINY, selection="growing", rho=0.2).fit_rounds(problem))
    assert len(given) == 3
    by_name = np.argsort(problem.classes.names)
    for before, after, (scores, candidates, per_class, last) in zip(rounds[:-1], rounds[1:], given, strict=True):
        assert scores.shape == (len(problem.pool), len(problem.classes))
        assert np.array_equal(candidates, problem.classes.unseen[by_name])
        assert per_class == 1
        assert np.array_equal(last.images, before.pseudo.images)  # it gets the last set
        assert np.array_equal(by_name[last.labels], before.pseudo.labels)
        assert after.pseudo.images[: len(last)].tolist() == last.images.tolist()
        assert after.figures["pseudo_labels"] > len(last)
    paper = list(PrEN(**TINY, rho=0.2).fit_rounds(problem))
    assert rounds[1].figures == paper[1].figures  # with nothing to keep it is the paper's
    assert len(rounds[-1].pseudo) > 4 >= len(paper[-1].pseudo)  # one for each of four unseen classes


def test_a_rule_gets_the_last_set_after_an_interruption_too(given, make_problem, tmp_path):
    problem, settings = make_problem(), {**TINY, "selection": "growing"}
    whole = [done.pseudo.images.tolist() for done in PrEN(**settings).fit_rounds(problem)]
    model = PrEN(**settings)
    rounds = model.fit_rounds(problem)
    next(rounds), next(rounds)
    state = {name: value.clone() for name, value in model.training_state().items()}
    model.save(tmp_path)
    rest = load_model(tmp_path).fit_rounds(problem, state)
    assert [done.pseudo.images.tolist() for done in rest] == whole[2:]


def test_a_rule_that_nobody_has_registered_is_refused(given, make_problem):
    with pytest.raises(PrenError, match=r"no selection rule 'groving'.*growing"):
        PrEN(**TINY, selection="groving").fit(make_problem())
