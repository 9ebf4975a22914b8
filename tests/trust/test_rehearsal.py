"""Rehearsals: seen classes play the unseen ones, the method stays as it is, nothing of the pool has a part."""

import logging
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from refusals import refused

from pren.data import held_out_classes
from pren.data.folds import different_draws
from pren.methods.pren import PrEN
from pren.methods.pren_pool import PrENPool
from pren.methods.rivals.eszsl import ESZSL
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs, chunks
from pren.problem.order import in_content_order
from pren.trust.rehearsal import choose_gamma, most_draws, notable_shift, rehearse, usual_draws
from pren.trust.shift import MovedInputs, Shift


@pytest.fixture
def problem(make_problem):
    return make_problem(n_seen=9, n_unseen=3)


class TestHeldOutClasses:
    def test_as_many_as_there_are_unseen_ones(self, problem):
        for rehearsed, answers in held_out_classes(problem, 5):
            assert int(rehearsed.classes.unseen.sum()) == 3
            assert set(rehearsed.classes.names) == {problem.classes.names[row] for row in set(problem.labels)}
            assert set(answers.labels) == set(np.flatnonzero(rehearsed.classes.unseen))
            assert len(rehearsed.pool) + len(rehearsed.train) == len(problem.train)

    def test_a_third_at_most(self, make_problem):
        rehearsed, _ = next(held_out_classes(make_problem(n_seen=9, n_unseen=8), 1))
        assert int(rehearsed.classes.unseen.sum()) == 3

    def test_two_at_least(self, make_problem):
        rehearsed, _ = next(held_out_classes(make_problem(n_seen=4, n_unseen=1), 1))
        assert int(rehearsed.classes.unseen.sum()) == 2

    def test_every_class_has_its_turn_before_any_has_a_second(self, problem):
        draws = [
            {name for name, seen in zip(part.classes.names, part.classes.seen, strict=True) if not seen}
            for part, _ in held_out_classes(problem, 6)
        ]
        assert len(set.union(*draws[:3])) == 9
        assert len(set.union(*draws[3:])) == 9
        assert draws[:3] != draws[3:]

    def test_where_there_are_few_each_comes_before_one_comes_again(self, make_problem):
        few = make_problem(n_seen=5, n_unseen=2)
        draws = [tuple(np.flatnonzero(part.classes.unseen)) for part, _ in held_out_classes(few, 23)]
        assert different_draws(few) == 10
        assert set(draws[:10]) == set(draws[10:20]) == set(combinations(range(5), 2))
        assert len({*draws[0], *draws[1]}) == 4, "those that were drawn least come first"

    def test_the_order_of_the_classes_does_not_matter(self, make_problem):
        order = np.random.default_rng(0).permutation(12)
        one, other = (
            [sorted(np.array(part.classes.names)[part.classes.unseen]) for part, _ in held_out_classes(made, 4)]
            for made in (make_problem(n_seen=9, n_unseen=3), make_problem(n_seen=9, n_unseen=3, order=order))
        )
        assert one == other

    def test_the_pool_has_no_part(self, problem):
        other = replace(problem, pool=ArrayInputs(np.zeros((2, 5), dtype=np.float32)), given=None)
        one, two = (next(held_out_classes(made, 1))[0].fingerprint() for made in (problem, other))
        assert one == two

    def test_too_few_classes(self, make_problem):
        with refused("seen-too-few"):
            next(held_out_classes(make_problem(n_seen=3), 1))


class TestRehearse:
    def test_each_is_what_a_fit_would_give(self, problem):
        method, told = PrENPool(caution=0.1), []
        done = rehearse(method, problem, 3, on_rehearsal=lambda *said: told.append(said))
        assert vars(method) == vars(PrENPool(caution=0.1))
        for rehearsal, (rehearsed, answers) in zip(done, held_out_classes(in_content_order(problem), 3), strict=True):
            fitted = PrENPool(caution=0.1).fit(rehearsed)
            assert np.array_equal(rehearsal.scores, fitted.scores(rehearsed.pool))
            right = fitted.predict(rehearsed.pool) == rehearsed.classes.named(answers.labels)
            assert rehearsal.right().tolist() == right.tolist()
        assert told == [(n, 3, done[n - 1].right().mean()) for n in (1, 2, 3)]

    @pytest.mark.parametrize("enough", [10, 20, 24])
    def test_as_many_as_it_takes(self, problem, monkeypatch, enough):
        monkeypatch.setattr("pren.trust.rehearsal.MOST", 24)
        monkeypatch.setattr("pren.trust.rehearsal.unsteady", lambda shares: len(shares) < enough)
        told = []
        done = rehearse(ESZSL(), problem, on_rehearsal=lambda *said: told.append(said[:2]))
        assert len(done) == enough
        assert told == [
            (n, min(-(-n // 10) * 10 + 10 * (n in (10, 20) and n < enough), 24)) for n in range(1, enough + 1)
        ]

    def test_gamma_is_the_best_on_them(self, make_problem):
        done = rehearse(ESZSL(), make_problem(n_seen=9, n_unseen=3, setting="gzsl"), 3)
        chosen = choose_gamma(done)

        def mean_h(gamma):
            figures = []
            for rehearsal in done:
                moved = rehearsal.with_gamma(gamma)
                right, seen = moved.right(), moved.classes.seen[moved.answers.labels]
                of_class = [right[moved.answers.labels == row].mean() for row in np.unique(moved.answers.labels)]
                is_seen = moved.classes.seen[np.unique(moved.answers.labels)]
                u, s = np.mean(np.array(of_class)[~is_seen]), np.mean(np.array(of_class)[is_seen])
                assert seen.any()
                figures.append(2 * u * s / (u + s) if u + s else 0.0)
            return np.mean(figures)

        assert mean_h(chosen) >= max(mean_h(gamma) for gamma in np.linspace(-2, 2, 81)) - 1e-9

    def test_in_zsl_there_is_no_trade_off(self, problem):
        assert choose_gamma(rehearse(ESZSL(), problem, 2)) == 0

    def test_a_method_does_not_say_again_what_it_has_said(self, problem, caplog):
        class Talkative(ESZSL):
            def _fit(self, problem):
                logging.getLogger("pren.methods.talkative").warning("again")
                super()._fit(problem)

        level = logging.getLogger("pren.methods").level
        rehearse(Talkative(), problem, 2)
        assert caplog.text == ""
        assert logging.getLogger("pren.methods").level == level


class TestShift:
    @pytest.fixture
    def moved(self, problem):
        return replace(problem, pool=MovedInputs(problem.pool, np.full(5, 20.0)))

    def test_offset_is_from_centre_to_centre(self, moved):
        everything = [np.concatenate([c.numpy() for c in chunks(part)]) for part in (moved.train, moved.pool)]
        assert Shift.of(moved).offset == pytest.approx(
            everything[1].mean(axis=0) - everything[0].mean(axis=0), rel=1e-5
        )

    def test_notable_or_not(self, problem, moved):
        assert notable_shift(ESZSL(), problem) is None
        assert notable_shift(ESZSL(), moved).apart > 50

    def test_a_rehearsal_lies_as_far_away(self, problem, moved):
        shift = Shift.of(moved)
        rehearsed, _ = next(held_out_classes(problem, 1))
        again = Shift.of(shift.applied(rehearsed))
        assert again.offset == pytest.approx(shift.offset, rel=1e-4)

    def test_images_for_a_backbone_stay_as_they_are(self, make_problem):
        from pren.methods.pren import PrEN

        assert notable_shift(PrEN(), make_problem(shape=(1, 8, 8))) is None

    def test_moved_inputs(self):
        values = np.arange(12, dtype=np.float32).reshape(3, 4)
        moved = MovedInputs(ArrayInputs(values), np.ones(4))
        assert (len(moved), moved.sample_shape) == (3, (4,))
        assert moved[np.array([2, 0])].tolist() == (values[[2, 0]] + 1).tolist()
        assert moved.select(np.array([1]))[np.array([0])].tolist() == (values[[1]] + 1).tolist()
        others = [ArrayInputs(values + 1), MovedInputs(ArrayInputs(values), np.zeros(4))]
        assert moved.digest() not in [other.digest() for other in others]

    def test_a_shift_is_foretold(self):
        """Labels of a moved pool are worse, and rehearsals of it too."""
        rng = np.random.default_rng(0)
        L, d = 24, 12
        signatures = rng.normal(size=(L, 6))
        centres = signatures @ rng.normal(size=(6, d)) + rng.normal(size=(L, d))
        labels, hidden = np.repeat(np.arange(16), 20), np.repeat(np.arange(16, L), 20)
        train, pool = (centres[rows] + rng.normal(size=(len(rows), d)) + 8 for rows in (labels, hidden))
        plain = Problem.from_arrays(train, labels, signatures, pool)
        moved = Problem.from_arrays(train, labels, signatures, pool * 0.2 + 40)
        shares = []
        for made in (plain, moved):
            done = rehearse(ESZSL(), made, 4, notable_shift(ESZSL(), made))
            shares.append(np.mean([rehearsal.right().mean() for rehearsal in done]))
        assert shares[1] < shares[0] - 0.1


def test_seldom_where_features_are_learned_anew(problem):
    class Learned(ArrayInputs):
        learned = True

    taught = replace(problem, train=Learned(problem.train[np.arange(len(problem.train))].numpy()))
    assert usual_draws(PrENPool(), problem) == 10
    assert usual_draws(PrENPool(), taught) == 3
    assert usual_draws(PrEN(), taught) == 0
    assert most_draws(PrENPool(), problem) == 60
    assert most_draws(PrENPool(), taught) == 3
    assert most_draws(PrEN(), problem) == 0


@pytest.mark.parametrize(("seen", "count"), [(4, 10), (6, 15), (7, 21), (9, 60)])
def test_no_more_than_different_ones(make_problem, seen, count):
    assert most_draws(PrENPool(), make_problem(n_seen=seen, n_unseen=3)) == count
