"""Rules for pseudo-labels by name: somebody's own rule is one function, and a parameter of PrEN names it."""

import logging

import numpy as np
import pytest
from refusals import refused, warnings_by

from pren.core.pseudo import PseudoLabels, top_per_class
from pren.methods.pren import PrEN
from pren.methods.selection import LARGEST_SHARE, SELECTIONS, growing, register_selection
from pren.methods.storage import load_model

TINY = {"heads": 3, "hidden": (8,), "rounds": 3, "initial_batches": 2, "batches": 2, "batch_size": 8}


@pytest.fixture
def given(monkeypatch):
    """Register a rule that keeps what it once chose and adds the best of the others; returns what it is given."""
    monkeypatch.setattr(SELECTIONS, "_entries", dict(SELECTIONS._entries))  # it goes away with the test
    given = []

    @register_selection("keeping")
    def keeping(scores, candidates, per_class, last, progress):
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
    rounds = list(PrEN(**TINY, selection="keeping", rho=0.2).fit_rounds(problem))
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
    problem, settings = make_problem(), {**TINY, "selection": "keeping"}
    whole = [done.pseudo.images.tolist() for done in PrEN(**settings).fit_rounds(problem)]
    model = PrEN(**settings)
    rounds = model.fit_rounds(problem)
    next(rounds), next(rounds)
    state = {name: value.clone() for name, value in model.training_state().items()}
    model.save(tmp_path)
    rest = load_model(tmp_path).fit_rounds(problem, state)
    assert [done.pseudo.images.tolist() for done in rest] == whole[2:]


def test_a_rule_that_nobody_has_registered_is_refused(given, make_problem):
    with refused("unknown-name"):
        PrEN(**TINY, selection="groving").fit(make_problem())


NONE = PseudoLabels.none()


def growing_by_a_loop(scores, candidates, progress):
    """The pairs of images and classes that a growing set should hold."""
    classes = [c for c in range(scores.shape[1]) if candidates[c]]
    best, sure = [], []
    for row in scores:
        falling = sorted(classes, key=lambda c, row=row: -row[c])
        best.append(falling[0])
        sure.append(row[falling[0]] - row[falling[1]] if len(classes) > 1 else row[falling[0]])
    images = sorted(range(len(scores)), key=lambda i: -sure[i])
    pairs = {(i, best[i]) for i in images[: int(LARGEST_SHARE * progress * len(scores) + 0.5)]}
    for c in classes:
        mine = [i for i in images if best[i] == c]
        pairs.add((mine[0] if mine else max(images, key=lambda i, c=c: scores[i, c]), c))
    return pairs


@pytest.mark.parametrize("progress", [0.01, 0.5, 1.0])
@pytest.mark.parametrize(("images", "classes"), [(30, 5), (6, 9), (1, 2), (4, 1)])
@pytest.mark.parametrize("seed", range(4))
def test_a_growing_set_is_that_of_a_loop(images, classes, progress, seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(images, classes + 2)) + np.linspace(0, 2, classes + 2)
    candidates = rng.permutation(np.arange(classes + 2) < classes)
    found = growing(scores, candidates, 3, NONE, progress)
    pairs = list(zip(found.images.tolist(), found.labels.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == growing_by_a_loop(scores, candidates, progress)
    assert set(found.labels.tolist()) == set(np.flatnonzero(candidates).tolist())
    assert pairs == sorted(pairs, key=lambda pair: (pair[1], -scores[pair]))  # by class, best first
    order = rng.permutation(images)
    moved = growing(scores[order], candidates, 3, NONE, progress)
    assert np.array_equal(order[moved.images], found.images)
    assert np.array_equal(moved.labels, found.labels)


def test_no_images_make_no_growing_set():
    assert len(growing(np.empty((0, 3)), np.ones(3, dtype=bool), 2, NONE, 1.0)) == 0


def test_a_growing_set_grows_over_the_rounds_and_survives_an_interruption(make_problem, tmp_path):
    problem, settings = make_problem(), {**TINY, "rounds": 4, "selection": "growing", "refinement": "soft-kmeans"}
    whole = list(PrEN(**settings).fit_rounds(problem))
    sizes = [len(done.pseudo) for done in whole]
    assert sizes == sorted(sizes)
    assert len(np.unique(whole[-1].pseudo.images)) >= LARGEST_SHARE * len(problem.pool)
    assert sizes[1] < len(problem.pool) / 2
    model = PrEN(**settings)
    rounds = model.fit_rounds(problem)
    next(rounds), next(rounds)
    state = {name: value.clone() for name, value in model.training_state().items()}
    model.save(tmp_path)
    for done, expected in zip(load_model(tmp_path).fit_rounds(problem, state), whole[2:], strict=True):
        assert np.array_equal(done.pseudo.images, expected.pseudo.images)
        assert done.figures == expected.figures


def test_classes_without_an_image_are_named(make_problem, monkeypatch, caplog):
    monkeypatch.setattr(SELECTIONS, "_entries", dict(SELECTIONS._entries))
    problem = make_problem()

    @register_selection("the first class alone")
    def first(scores, candidates, per_class, last, progress):
        return PseudoLabels(np.array([0]), np.flatnonzero(candidates)[:1])

    with caplog.at_level(logging.INFO, "pren.methods.pren"):
        PrEN(**{**TINY, "rounds": 2}, selection="the first class alone").fit(problem)
    unseen = sorted(np.array(problem.classes.names)[problem.classes.unseen])
    named = ", ".join(repr(str(name)) for name in unseen[1:])
    (message,) = caplog.messages
    assert message == warnings_by("pren.methods.pren", caplog)[0]
    assert named in message
    assert repr(str(unseen[0])) not in message
    caplog.clear()
    with caplog.at_level(logging.INFO, "pren.methods.pren"):
        PrEN(**{**TINY, "rounds": 1}, selection="growing").fit(problem)
    assert caplog.messages == []
