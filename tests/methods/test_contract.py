"""What every method promises, whoever writes it: a newly registered one is tested here without a change.

If it takes more than a moment to fit, it gets a line in `QUICK` of conftest.py.
"""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import refused, warnings_by
from sklearn.base import clone

from pren.data.arrays import load_arrays
from pren.evaluation import evaluate_scores
from pren.methods.base import Method
from pren.methods.params import validate
from pren.methods.pren import PrEN
from pren.methods.refinement import REFINEMENTS
from pren.methods.registry import METHODS
from pren.methods.space import Choice
from pren.methods.storage import load_model
from pren.problem import UNKNOWN, Answers, Problem
from pren.problem.inputs import ArrayInputs
from pren.trust import Trust, assess, label_pool

KINDS = sorted({entry.method for entry in METHODS.values()}, key=lambda kind: kind.__name__)
INDUCTIVE = [name for name, entry in METHODS.items() if entry.summary.endswith("(inductive)")]
ONE_GO = [name for name, entry in METHODS.items() if entry.method.fit_rounds is Method.fit_rounds]
SEEDED = [name for name, entry in METHODS.items() if "seed" in entry.method().get_params()]
SHAPES = pytest.mark.parametrize("shape", [(5,), (1, 8, 12)], ids=["features", "images"])
SETTINGS = pytest.mark.parametrize("setting", ["zsl", "gzsl"])

# What a method needs beyond its quick parameters if it is to learn anything.
PATIENT = {
    name: {"initial_batches": 200, "hidden": (32,), "lr": 1e-2} for name in METHODS if METHODS[name].method is PrEN
} | {"qfsl": {"epochs": 60, "lr": 1e-2}}


@pytest.fixture(params=METHODS)
def name(request):
    return request.param


@pytest.fixture(scope="session")
def planted():
    """A problem whose features are a linear map of the signatures, with little noise, and its answers."""

    def build(name, setting="zsl"):
        rng = np.random.default_rng(0)
        signatures = rng.random((20, 6))
        signatures /= np.linalg.norm(signatures, axis=1, keepdims=True)
        width = 6 if METHODS[name].method.one_space else 12
        centres = 3 * signatures @ (np.eye(6) if width == 6 else rng.normal(size=(6, width)))
        labels = np.repeat(np.arange(16), 8)
        answers = rng.permutation(np.repeat(np.arange(16 if setting == "zsl" else 0, 20), 12))
        train, pool = (
            (centres[which] + 0.1 * rng.normal(size=(len(which), width))).astype(np.float32)
            for which in (labels, answers)
        )
        return Problem.from_arrays(train, labels, signatures, pool, setting=setting), Answers(answers)

    return build


class TestRegistered:
    def test_the_summary_says_whether_the_pool_is_used(self, name):
        assert METHODS[name].summary.endswith(("(inductive)", "(transductive)"))

    def test_titles_differ(self):
        assert len({entry.title for entry in METHODS.values()}) == len(METHODS)

    def test_the_class_is_registered_under_its_own_name(self, name):
        """Which a saved model is found again by."""
        assert METHODS[METHODS[name].method.name].method is METHODS[name].method

    def test_a_search_space_is_of_values_that_the_method_takes(self, name):
        entry = METHODS[name]
        defaults = entry.method().get_params()
        for key, values in entry.method.space.items():
            assert key in defaults
            assert key not in entry.preset
            tried = values.values if isinstance(values, Choice) else (values.low, values.high)
            assert len(tried) >= 2
            assert isinstance(values, Choice) or values.low < values.high
            for value in tried:
                taken = validate(entry.method, {**defaults, key: value})[key]
                assert taken == value
                assert type(taken) is type(value)


class TestConventions:
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_constructor_only_stores_what_it_is_given(self, kind):
        given = {parameter: object() for parameter in inspect.signature(kind).parameters}
        made = kind(**given)
        assert vars(made) == given

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_defaults_are_valid(self, kind):
        assert validate(kind, {}) == kind().get_params()

    def test_clone_copies_the_parameters_and_nothing_learned(self, name, quick, make_problem_of):
        model = quick(name, gamma=0.125).fit(make_problem_of(name))
        copy = clone(model)
        assert type(copy) is type(model)
        assert copy.get_params() == model.get_params()
        assert copy.gamma == 0.125
        assert not [attribute for attribute in vars(copy) if attribute.endswith("_")]

    def test_set_params_knows_no_other_names(self, name, quick):
        with pytest.raises(ValueError, match="rownds"):
            quick(name).set_params(rownds=3)

    def test_fit_returns_the_method_itself(self, name, quick, make_problem_of):
        model = quick(name)
        assert model.fit(make_problem_of(name)) is model

    @pytest.mark.parametrize("kind", KINDS)
    def test_fit_takes_nothing_but_a_problem_and_where_to_compute(self, kind):
        assert list(inspect.signature(kind.fit).parameters) == ["self", "problem", "fabric"]

    def test_what_was_learned_ends_in_an_underscore(self, fitted):
        model, problem = fitted
        assert model.classes_ is problem.classes
        assert model.setting_ == problem.setting
        assert model.sample_shape_ == problem.train.sample_shape
        assert {key for key in vars(model) if not key.endswith("_") and key[0] != "_"} == set(model.get_params())

    def test_embed_gives_the_features_that_it_sees(self, fitted):
        """Of the pool as a whole, or of a few images that are new to it."""
        model, problem = fitted
        embedded = model.embed(problem.pool)
        assert embedded.shape == (len(problem.pool), model._width())
        assert np.isfinite(embedded).all()
        few = problem.pool[np.arange(2)].numpy()
        assert np.allclose(model.embed(few), embedded[:2], atol=1e-5)
        assert not np.allclose(embedded[0], embedded[1])

    def test_embed_wants_a_fitted_method_and_inputs_of_its_shape(self, name, quick, make_problem_of):
        with refused("not-fitted"):
            quick(name).embed(np.zeros((2, 5)))
        with refused("inputs-shape"):
            quick(name).fit(make_problem_of(name)).embed(np.zeros((2, 6)))

    def test_a_second_fit_starts_over(self, name, quick, make_problem_of):
        first, second = make_problem_of(name, seed=1), make_problem_of(name, seed=2, n_unseen=3)
        again = quick(name).fit(first).fit(second)
        assert np.array_equal(again.scores(second.pool), quick(name).fit(second).scores(second.pool))

    @SHAPES
    def test_fitting_leaves_the_global_generators_alone(self, name, quick, make_problem_of, shape):
        problem = make_problem_of(name, shape=shape)
        before = torch.get_rng_state(), np.random.get_state(), torch.get_num_threads()  # noqa: NPY002
        quick(name).fit(problem).scores(problem.pool)
        after = torch.get_rng_state(), np.random.get_state(), torch.get_num_threads()  # noqa: NPY002
        assert torch.equal(before[0], after[0])
        assert np.array_equal(before[1][1], after[1][1])
        assert before[2] == after[2]

    @pytest.mark.parametrize("name", ONE_GO)
    def test_a_method_without_rounds_has_nothing_to_resume(self, name, quick, make_problem_of):
        problem = make_problem_of(name)
        model = quick(name)
        assert list(model.fit_rounds(problem)) == []
        assert np.array_equal(model.scores(problem.pool), quick(name).fit(problem).scores(problem.pool))
        assert model.training_state() == {}
        with refused("no-rounds"):
            list(model.fit_rounds(problem, {}))
        with refused("one-process"):
            model.check_processes(2)


def values_of(dimension):
    """Every choice, or both ends of a range."""
    return dimension.values if isinstance(dimension, Choice) else (dimension.low, dimension.high)


# Every value of every parameter, those of one method together: as many models as its longest list has values. But for
# how scores are refined: test_refinement.py saves every method with each refinement and with balance.
CHOSEN = [
    (name, {key: values[place % len(values)] for key, values in space.items()})
    for name, entry in METHODS.items()
    for space in [
        {
            key: values_of(dimension)
            for key, dimension in entry.method.space.items()
            if key not in ("refinement", "balance") or name in ("pren-pool", "pren-vote")
        }
    ]
    for place in range(max(map(len, space.values()), default=0))
]


@pytest.mark.slow
class TestSpace:
    @pytest.mark.parametrize(("name", "chosen"), CHOSEN)
    def test_a_model_is_the_same_after_saving_whatever_was_chosen(self, name, chosen, quick, make_problem_of, tmp_path):
        problem = make_problem_of(name, setting="gzsl", n_seen=3, n_unseen=2)
        short = {"epochs": 1} if "epochs" in METHODS[name].method().get_params() else {}
        model = quick(name, **chosen, **{key: value for key, value in short.items() if key not in chosen}).fit(problem)
        model.save(tmp_path)
        assert np.array_equal(load_model(tmp_path).scores(problem.pool), model.scores(problem.pool))


@pytest.mark.slow
class TestLearning:
    def test_a_planted_problem_is_learned(self, name, quick, planted):
        """4 unseen classes: chance is 0.25, and every method must be twice as good at least."""
        problem, answers = planted(name)
        scores = quick(name, **PATIENT.get(name, {})).fit(problem).scores(problem.pool)
        assert evaluate_scores(scores, answers, problem.classes, "zsl").top1 >= 0.5

    def test_a_planted_problem_with_seen_classes_in_the_pool_is_learned(self, name, quick, planted):
        """20 classes: chance is 0.05, and every method must be five times as good at least."""
        problem, answers = planted(name, "gzsl")
        scores = quick(name, **PATIENT.get(name, {})).fit(problem).scores(problem.pool)
        assert evaluate_scores(scores, answers, problem.classes, "gzsl").s >= 0.25

    def test_one_seen_class_and_one_unseen_one_are_enough(self, name, quick, make_problem_of):
        problem = make_problem_of(name, n_seen=1, n_unseen=1, setting="gzsl")
        assert np.isfinite(quick(name).fit(problem).scores(problem.pool)).all()

    def test_features_that_are_all_zero_are_survived(self, name, quick, make_problem_of):
        problem = make_problem_of(name)
        blank = Problem(ArrayInputs(np.zeros((24, 5))), problem.labels, problem.pool, problem.classes)
        assert np.isfinite(quick(name).fit(blank).scores(problem.pool)).all()
        assert np.isfinite(quick(name).fit(problem).scores(np.zeros((3, 5)))).all()

    def test_signatures_need_not_be_of_unit_length(self, name, quick, whole, make_problem_of):
        given = make_problem_of(name)
        problem = Problem.from_arrays(
            whole(given.train), given.labels, 20 * given.classes.signatures, whole(given.pool), normalise=False
        )
        assert np.isfinite(quick(name).fit(problem).scores(problem.pool)).all()

    @SETTINGS
    def test_answers_cannot_matter(self, name, quick, arrays, setting, tmp_path):
        content = arrays(setting=setting)
        shuffled = np.random.default_rng(0).permutation(content["answers"])
        assert not np.array_equal(shuffled, content["answers"])
        scores = []
        for answers in (content["answers"], shuffled, None):
            kept = {key: value for key, value in content.items() if key != "answers"}
            np.savez(tmp_path / "data.npz", **kept, **({} if answers is None else {"answers": answers}))
            problem, _ = load_arrays(tmp_path / "data.npz", setting)
            scores.append(quick(name).fit(problem).scores(problem.pool))
        assert np.array_equal(scores[0], scores[1])
        assert np.array_equal(scores[0], scores[2])

    @SETTINGS
    def test_labels_that_a_person_gives_are_taken(self, name, quick, make_problem_of, setting, caplog):
        """By the method itself, or by a refinement; else a warning says that they are not."""
        plain = make_problem_of(name, setting=setting)
        unseen = np.flatnonzero(plain.classes.unseen)
        given = np.full(len(plain.pool), UNKNOWN)
        given[:3] = unseen[:3]
        problem = replace(plain, given=given)
        for params in ({}, {"refinement": "soft-kmeans" if setting == "zsl" else "label-propagation"}):
            caplog.clear()
            before, after = (quick(name, **params).fit(one).scores(plain.pool) for one in (plain, problem))
            assert np.isfinite(after).all()
            warned = warnings_by("pren.methods.base", caplog)
            assert len(warned) == int(np.array_equal(before, after))
            assert len(warned) == int(not params and not METHODS[name].method.learns_given)
            assert all(quick(name).name in one and " 3 " in one for one in warned)

    def test_a_pool_whose_every_image_has_been_given_a_label_is_taken(self, name, quick, make_problem_of):
        plain = make_problem_of(name)
        given = np.resize(np.flatnonzero(plain.classes.unseen), len(plain.pool))
        for refinement in REFINEMENTS:
            model = quick(name, refinement=refinement).fit(replace(plain, given=given))
            assert np.isfinite(model.scores(plain.pool)).all()

    @pytest.mark.parametrize("name", INDUCTIVE)
    def test_an_inductive_method_does_not_look_at_the_pool(self, name, quick, make_problem_of):
        problem = make_problem_of(name)
        other = Problem(problem.train, problem.labels, ArrayInputs(np.full((3, 5), 7.0)), problem.classes)
        one, two = (quick(name).fit(given).scores(problem.pool) for given in (problem, other))
        assert np.array_equal(one, two)


class TestScores:
    def test_one_column_per_class_and_one_row_per_input(self, fitted):
        model, problem = fitted
        scores = model.scores(problem.pool)
        assert scores.shape == (len(problem.pool), len(problem.classes))
        assert scores.dtype == np.float64
        assert np.isfinite(scores).all()

    def test_arrays_tensors_lists_and_inputs_are_all_the_same(self, fitted, whole):
        model, problem = fitted
        array = whole(problem.pool)
        expected = model.scores(problem.pool)
        for form in (array, torch.from_numpy(array), array.tolist(), ArrayInputs(array)):
            assert np.array_equal(model.scores(form), expected)

    def test_scoring_twice_gives_the_same(self, fitted):
        model, problem = fitted
        assert np.array_equal(model.scores(problem.train), model.scores(problem.train))

    def test_no_inputs_at_all_have_no_scores(self, fitted):
        model, problem = fitted
        empty = np.empty((0, *problem.pool.sample_shape), dtype=np.float32)
        assert model.scores(empty).shape == (0, len(problem.classes))
        assert model.predict(empty).shape == (0,)

    def test_predict_takes_the_best_candidate(self, fitted):
        model, problem = fitted
        scores = model.scores(problem.pool)
        rows = {
            "all": range(len(problem.classes)),
            "seen": [row for row, seen in enumerate(problem.classes.seen) if seen],
            "unseen": [row for row, seen in enumerate(problem.classes.seen) if not seen],
        }
        for among, candidates in rows.items():
            expected = [max(candidates, key=lambda c, i=i: scores[i, c]) for i in range(len(scores))]
            named = [problem.classes.names[row] for row in expected]
            assert model.predict(problem.pool, among=among).tolist() == named

    def test_the_candidates_are_by_default_those_of_the_setting(self, fitted):
        model, problem = fitted
        among = "unseen" if problem.setting == "zsl" else "all"
        assert np.array_equal(model.predict(problem.pool), model.predict(problem.pool, among=among))

    @SETTINGS
    def test_gamma_is_taken_off_the_seen_classes_in_gzsl_only(self, name, quick, make_problem_of, setting):
        problem = make_problem_of(name, setting=setting)
        model = quick(name).fit(problem)
        plain = model.scores(problem.pool)
        less = model.set_params(gamma=0.5).scores(problem.pool)
        expected = 0.5 * problem.classes.seen if setting == "gzsl" else 0.0 * problem.classes.seen
        assert np.allclose(plain - less, expected, atol=1e-12)

    def test_gamma_decides_between_seen_and_unseen_classes(self, name, quick, make_problem_of):
        problem = make_problem_of(name, setting="gzsl")
        model = quick(name).fit(problem)
        for gamma, seen in ((1e6, False), (-1e6, True)):
            predicted = model.set_params(gamma=gamma).predict(problem.pool)
            rows = np.flatnonzero(problem.classes.seen == seen)
            assert np.isin(predicted, problem.classes.named(rows)).all()


class TestRefusals:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_method_that_is_not_fitted_says_what_to_do(self, kind, tmp_path):
        for call in (kind().scores, kind().predict):
            with refused("not-fitted"):
                call(np.zeros((2, 5), dtype=np.float32))
        with refused("not-fitted"):
            kind().save(tmp_path / "model")
        assert not (tmp_path / "model").exists()

    def test_parameters_are_checked_by_fit(self, name, quick, make_problem_of):
        model = quick(name).set_params(gamma=np.inf)
        with refused("param-value"):
            model.fit(make_problem_of(name))
        with refused("not-fitted"):
            model.scores(np.zeros((2, 5), dtype=np.float32))

    def test_parameters_are_checked_by_create(self, name, quick):
        with refused("param-value"):
            quick(name, gama=0.5)

    def test_among_is_one_of_three_words(self, fitted):
        model, problem = fitted
        with refused("unknown-name"):
            model.predict(problem.pool, among="novel")

    def test_another_shape_is_refused(self, fitted):
        model, problem = fitted
        shape = problem.pool.sample_shape
        wrong = np.zeros((2, *shape[:-1], shape[-1] + 1), dtype=np.float32)
        with refused("inputs-shape") as error:
            model.scores(wrong)
        assert str(shape) in str(error.value)
        assert str(wrong.shape[1:]) in str(error.value)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_inputs_that_are_no_numbers_are_refused(self, fitted, whole, bad):
        model, problem = fitted
        array = whole(problem.pool).copy()
        array[3].flat[-1] = bad
        with refused("not-finite"):
            model.scores(array)


@pytest.mark.slow
class TestChance:
    @SHAPES
    def test_the_same_seed_gives_the_same_bits(self, name, quick, make_problem_of, shape):
        problem = make_problem_of(name, shape=shape, setting="gzsl")
        one, two = (quick(name).fit(problem) for _ in range(2))
        assert np.array_equal(one.scores(problem.pool), two.scores(problem.pool))
        (first, _), (second, _) = one._state(), two._state()
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key], second[key]) for key in first)

    @pytest.mark.parametrize("name", SEEDED)
    def test_another_seed_gives_another_model(self, name, quick, make_problem_of):
        problem = make_problem_of(name)
        (one, _), (two, _) = (quick(name, seed=seed).fit(problem)._state() for seed in (0, 1))
        assert any(not torch.equal(one[key], two[key]) for key in one)

    @SETTINGS
    def test_scores_move_with_the_classes(self, name, quick, make_problem_of, setting):
        """Up to rounding: nothing is drawn, nor any tie broken, by the order of the class table."""
        order = np.random.default_rng(7).permutation(8)
        one, two = (make_problem_of(name, setting=setting, order=o) for o in (np.arange(8), order))
        first, second = (quick(name).fit(problem).scores(problem.pool) for problem in (one, two))
        assert np.allclose(second, first[:, order], rtol=1e-6, atol=1e-9)


class TestTrust:
    """What rehearsals tell is told of every method."""

    @pytest.mark.parametrize(("name", "setting"), [*((name, "gzsl") for name in METHODS), ("pren-vote", "zsl")])
    def test_rehearsed_saved_and_the_same_again(self, name, setting, quick, make_problem_of, tmp_path):
        problem = make_problem_of(name, n_seen=6, n_unseen=3, setting=setting)
        method = quick(name).fit(problem)
        trust = assess(method, problem, 2, gamma=True)
        assert 0 <= trust.forecast.low <= trust.forecast.high <= 1
        assert (method.chosen_gamma_ is None) == (setting == "zsl")
        method.save(tmp_path)
        trust.save(tmp_path)
        one, other = (
            label_pool(fitted.scores, problem, told)
            for fitted, told in ((method, trust), (load_model(tmp_path), Trust.load(tmp_path)))
        )
        for part, same in zip(one, other, strict=True):
            assert np.array_equal(part, same, equal_nan=True)
        assert ((one.familiarity >= 0) & (one.familiarity <= 1)).all()
