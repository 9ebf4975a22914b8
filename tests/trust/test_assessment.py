"""What is told about a fitted method, and the file that keeps it."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from refusals import refused

from pren.methods.pren_pool import PrENPool
from pren.methods.rivals.eszsl import ESZSL
from pren.methods.storage import MODEL_FILE, load_model, read_model, write_model
from pren.problem import UNKNOWN, candidates_of
from pren.problem.inputs import ArrayInputs, pieces
from pren.trust import STRANGE, TRUST_FILE, Trust, assess, label_pool, only_sure
from pren.trust.confidence import Confidence, Reading, threshold
from pren.trust.forecast import Known, foretell, unsteady
from pren.trust.rehearsal import choose_gamma, notable_shift, rehearse
from pren.trust.shift import MovedInputs

FAMILIAR = np.ones(15)


@pytest.fixture(scope="module")
def problem(make_problem):
    return make_problem(n_seen=9, n_unseen=3)


@pytest.fixture(scope="module")
def fitted(problem):
    return PrENPool().fit(problem)


@pytest.fixture(scope="module")
def trust(fitted, problem):
    return assess(fitted, problem, 4)


class TestAssess:
    def test_is_what_its_parts_say(self, fitted, problem, trust):
        known = [Known(done.reading(), done.right(), done.right()) for done in rehearse(PrENPool(), problem, 4)]
        reading = Reading.of(fitted.scores(problem.pool), problem.classes, problem.candidates())
        confidence = Confidence.learn([one.reading for one in known], [one.right for one in known])
        wider = unsteady([one.right.mean() for one in known])
        assert trust.forecast == foretell(reading, known, 3, wider=wider)
        assert np.array_equal(trust.confidence.of(reading), confidence.of(reading))
        sure = trust.sure(fitted.scores(problem.pool), problem.classes, "zsl", FAMILIAR)
        assert np.array_equal(sure, confidence.of(reading))
        np.testing.assert_allclose(trust.levels, np.quantile(sure, np.linspace(0, 1, 101)), atol=1e-6)

    def test_twice_is_the_same(self, fitted, problem, trust):
        assert assess(fitted, problem, 4).forecast == trust.forecast

    def test_gamma_is_chosen_if_asked_for(self, make_problem):
        problem = make_problem(n_seen=9, n_unseen=3, setting="gzsl")
        plain, chosen = ESZSL().fit(problem), ESZSL().fit(problem)
        assess(plain, problem, 3)
        assert plain.chosen_gamma_ is None
        assess(chosen, problem, 3, gamma=True)
        assert chosen.chosen_gamma_ == choose_gamma(rehearse(ESZSL(), problem, 3))
        seen = problem.classes.seen
        expected = plain.scores(problem.pool) - chosen.chosen_gamma_ * seen
        assert chosen.scores(problem.pool) == pytest.approx(expected)

    def test_what_it_tells_is_about_labels_with_the_chosen_gamma(self, make_problem):
        problem = make_problem(n_seen=9, n_unseen=3, setting="gzsl")
        fitted = ESZSL().fit(problem)
        trust = assess(fitted, problem, 3, gamma=True)
        plain = rehearse(ESZSL(), problem, 3)
        moved = [done.with_gamma(fitted.chosen_gamma_) for done in plain]
        shares = [[float(done.right().mean()) for done in part] for part in (plain, moved)]
        assert shares[0] != shares[1]
        assert list(trust.forecast.rehearsed) == shares[1]

    def test_rehearsals_lie_as_far_away_as_the_pool(self, problem, trust):
        far = replace(problem, pool=MovedInputs(problem.pool, np.linspace(-20.0, 20.0, 5)))
        fitted = ESZSL().fit(far)
        shift = notable_shift(fitted, far)
        near, moved = (
            [float(done.right().mean()) for done in rehearse(ESZSL(), far, 3, apart)] for apart in (None, shift)
        )
        assert near != moved
        assert list(assess(fitted, far, 3).forecast.rehearsed) == moved

    def test_labels_that_are_given_need_no_forecast(self, fitted, problem, trust):
        labels = label_pool(fitted.scores, problem, None).classes
        sure = trust.sure(fitted.scores(problem.pool), problem.classes, "zsl", FAMILIAR)
        most = np.where(np.arange(len(labels)) % 2, labels, UNKNOWN)
        rest = assess(fitted, replace(problem, given=most), 4)
        assert rest.forecast.expected == pytest.approx(sure[most == UNKNOWN].mean(), abs=1e-6)

    @pytest.mark.parametrize("count", [0, 1])
    def test_one_rehearsal_is_none(self, fitted, problem, count):
        with refused("rehearsals-one"):
            assess(fitted, problem, count)


class TestLabels:
    def test_what_looks_like_none_of_the_classes_has_no_right_label(self, fitted, problem, trust):
        scores, looks = fitted.scores(problem.pool), np.where(np.arange(15) % 2, STRANGE, STRANGE - 1e-6)
        sure = trust.sure(scores, problem.classes, "zsl", FAMILIAR)
        assert (sure > 0).all()
        assert np.array_equal(trust.sure(scores, problem.classes, "zsl", looks), np.where(looks < STRANGE, 0.0, sure))

    def test_best_candidates_with_confidence(self, fitted, problem, trust):
        scores = fitted.scores(problem.pool)
        labels = label_pool(fitted.scores, problem, trust)
        assert problem.classes.named(labels.classes).tolist() == fitted.predict(problem.pool).tolist()
        assert labels.scores.tolist() == [scores[i, c] for i, c in enumerate(labels.classes)]
        assert np.array_equal(labels.confidence, trust.sure(scores, problem.classes, "zsl", FAMILIAR))

    def test_the_runner_up_is_the_best_other_candidate(self, fitted, problem):
        scores = fitted.scores(problem.pool)
        ranked = [sorted(np.flatnonzero(problem.candidates()), key=lambda row: -one[row]) for one in scores]
        given = np.full(len(scores), UNKNOWN)
        given[:2] = [ranked[0][1], ranked[1][0]]  # another class, and the same
        labels = label_pool(fitted.scores, replace(problem, given=given), None)
        assert labels.runners_up.tolist() == [ranked[0][0], *(row[1] for row in ranked[1:])]
        assert labels.lead.tolist() == [one[row[0]] - one[row[1]] for one, row in zip(scores, ranked, strict=True)]

    def test_without_a_second_candidate_there_is_no_runner_up(self, fitted, problem):
        seen = problem.classes.seen | (np.arange(len(problem.classes)) != np.flatnonzero(problem.classes.unseen)[0])
        alone = replace(problem, classes=replace(problem.classes, seen=seen))
        labels = label_pool(fitted.scores, alone, None)
        assert set(labels.runners_up) == {UNKNOWN}
        assert not labels.lead.any()

    def test_pieces_make_no_difference(self, fitted, problem, trust, monkeypatch):
        given = np.full(len(problem.pool), UNKNOWN)
        given[5] = np.flatnonzero(problem.classes.unseen)[0]
        problem = replace(problem, given=given)
        whole, sizes = label_pool(fitted.scores, problem, trust), []

        def score(inputs):
            sizes.append(len(inputs))
            return fitted.scores(inputs)

        monkeypatch.setattr("pren.trust.labels.pieces", partial(pieces, size=4))
        for part, of_all in zip(label_pool(score, problem, trust), whole, strict=True):
            np.testing.assert_allclose(part, of_all, rtol=1e-12)
        assert sizes == [4, 4, 4, 3]

    def test_assessing_in_pieces_makes_no_difference(self, fitted, problem, trust, monkeypatch):
        monkeypatch.setattr("pren.trust.assessment.pieces", partial(pieces, size=4))
        again = assess(fitted, problem, 4)
        assert again.forecast.expected == pytest.approx(trust.forecast.expected, rel=1e-12)
        np.testing.assert_allclose(again.levels, trust.levels, rtol=1e-12)

    def test_without_rehearsals_nobody_knows(self, fitted, problem):
        labels = label_pool(fitted.scores, problem, None)
        assert np.isnan(labels.confidence).all()
        assert np.isnan(labels.familiarity).all()

    def test_given_labels_are_sure(self, fitted, problem, trust):
        scores = fitted.scores(problem.pool)
        best = label_pool(fitted.scores, problem, None).classes
        other = next(row for row in np.flatnonzero(problem.classes.unseen) if row != best[2])
        given = np.full(len(best), UNKNOWN)
        given[2] = other
        given_too = replace(problem, given=given)
        labels = only_sure(label_pool(fitted.scores, given_too, trust), given_too, trust, 1.0)
        assert (labels.classes[2], labels.confidence[2], labels.scores[2]) == (other, 1.0, scores[2, other])

    def test_precision_leaves_the_rest_empty(self, fitted, problem, trust):
        every = label_pool(fitted.scores, problem, trust)
        some = only_sure(every, problem, trust, 0.9)
        kept = every.confidence >= threshold(trust.levels, 0.9)
        assert some.classes.tolist() == np.where(kept, every.classes, UNKNOWN).tolist()
        assert np.array_equal(some.confidence, every.confidence)


class TestKept:
    @pytest.fixture
    def folder(self, fitted, trust, tmp_path):
        fitted.save(tmp_path / "model")
        trust.save(tmp_path / "model")
        return tmp_path / "model"

    def test_comes_back(self, folder, trust, fitted, problem):
        again, scores = Trust.load(folder), fitted.scores(problem.pool)
        assert again.forecast == trust.forecast
        assert again.levels.tolist() == trust.levels.tolist()
        assert np.array_equal(
            again.sure(scores, problem.classes, "zsl", FAMILIAR), trust.sure(scores, problem.classes, "zsl", FAMILIAR)
        )

    def test_nothing_is_none(self, tmp_path):
        assert Trust.load(tmp_path) is None

    def test_not_about_another_model(self, folder, problem):
        ESZSL().fit(problem).save(folder)
        with refused("trust-other"):
            Trust.load(folder)

    def test_damage_is_refused(self, folder):
        content = bytearray((folder / TRUST_FILE).read_bytes())
        place = content.index(b'expected\\": 0.') + 15
        content[place : place + 1] = b"1" if content[place : place + 1] != b"1" else b"2"
        (folder / TRUST_FILE).write_bytes(content)
        with refused("damaged"):
            Trust.load(folder)

    @pytest.mark.parametrize(
        "changes",
        [
            {"levels": [2.0]},
            {"confidence": {"unseen": {"leads": [1], "shares": [2]}}},
            {"confidence": {"unseen": 3}},
            {"forecast": {}},
            {"more": 1},
        ],
    )
    def test_facts_that_cannot_be_are_refused(self, folder, changes):
        tensors, facts = read_model(folder / TRUST_FILE)
        write_model(folder / TRUST_FILE, tensors, {**facts, **changes})
        with refused("damaged"):
            Trust.load(folder)


def test_a_chosen_gamma_is_saved_with_the_model(make_problem, tmp_path):
    problem = make_problem(setting="gzsl")
    method = ESZSL().fit(problem)
    method.chosen_gamma_ = 0.25
    method.save(tmp_path)
    again = load_model(tmp_path)
    assert again.chosen_gamma_ == 0.25
    assert np.array_equal(again.scores(problem.pool), method.scores(problem.pool))
    assert ESZSL().fit(problem).chosen_gamma_ is None
    assert candidates_of(again.setting_) == "all"
    assert json.dumps(read_model(tmp_path / MODEL_FILE)[1]["chosen_gamma"]) == "0.25"


class TestStrangers:
    @pytest.fixture
    def crowd(self, make_problem):
        """A fifth of the pool is like nothing else."""
        made = make_problem(n_seen=12, n_unseen=4, shape=(40,), per_class=20, pool_per_class=20)
        pool = made.pool[np.arange(80)].numpy()
        pool[::5] = 50 * np.sign(np.random.default_rng(0).normal(size=(16, 40)))
        return replace(made, pool=ArrayInputs(pool))

    def test_have_no_right_label(self, crowd):
        fitted = PrENPool().fit(crowd)
        trust = assess(fitted, crowd, 3)
        labels = label_pool(fitted.scores, crowd, trust)
        strange = labels.familiarity < STRANGE
        assert strange[::5].all()
        assert strange.mean() < 0.3
        assert (labels.confidence[strange] == 0).all()
        assert (only_sure(labels, crowd, trust, 0.5).classes[strange] == UNKNOWN).all()

    def test_lower_the_forecast(self, crowd):
        fitted = PrENPool().fit(crowd)
        trust = assess(fitted, crowd, 3)
        reading = Reading.of(fitted.scores(crowd.pool), crowd.classes, crowd.candidates())
        strange = (trust.familiar(crowd.pool) < STRANGE).mean()
        expected = trust.confidence.of(reading).mean() * (1 - (strange - STRANGE))
        assert trust.forecast.expected == pytest.approx(expected, abs=1e-6)
