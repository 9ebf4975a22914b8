"""What PrEN and ESZSL promise beyond the contract of all methods: defaults, order to the bit, rounds and backbones."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import refused

from pren.core.progressive import Round
from pren.foundation.errors import PrenError
from pren.methods.pren import PrEN
from pren.methods.rivals.eszsl import ESZSL
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs

DEFAULTS = {
    PrEN: {
        "heads": 50,
        "dim": None,
        "rounds": 20,
        "initial_batches": 100,
        "batches": 100,
        "batch_size": 64,
        "lr": 1e-3,
        "backbone_lr": None,
        "hidden": (512, 512),
        "rho": 0.25,
        "n_max": 20,
        "output_relu": True,
        "completion": "null",
        "projection": True,
        "subsets": "half",
        "gzsl_rule": "probability",
        "gamma": 0.0,
        "first_rounds": 5,
        "backbone": None,
        "weights": None,
        "geometry": "whole",
        "augmentation": "none",
        "precision": "float32",
        "train_statistics": True,
        "pieces": 1,
        "seed": 0,
        "selection": "top-per-class",
        "features": "raw",
        "refinement": "none",
        "balance": 0.0,
    },
    ESZSL: {
        "feature_reg": 1.0,
        "signature_reg": 0.3,
        "features": "l2",
        "refinement": "none",
        "balance": 0.0,
        "gamma": 0.0,
    },
}


class TestConventions:
    @pytest.mark.parametrize("kind", DEFAULTS)
    def test_the_defaults_are_those_that_are_documented(self, kind):
        assert kind().get_params() == DEFAULTS[kind]
        assert {name: p.default for name, p in inspect.signature(kind).parameters.items()} == DEFAULTS[kind]

    def test_set_params_takes_effect_in_the_next_fit(self, small, make_problem):
        problem = make_problem()
        one = small(heads=2).set_params(heads=3).fit(problem)
        assert one.heads == 3
        assert np.array_equal(one.scores(problem.pool), small(heads=3).fit(problem).scores(problem.pool))

    def test_fit_checks_the_parameters_that_the_constructor_only_stored(self, make_problem):
        with refused("param-value"):
            PrEN(heads=-3).fit(make_problem())
        with refused("param-value"):
            ESZSL(feature_reg=0).fit(make_problem())

    def test_numpy_numbers_are_parameters_too(self, small, make_problem):
        problem = make_problem()
        model = small(heads=np.int64(6), lr=np.float64(3e-2)).fit(problem)
        assert np.array_equal(model.scores(problem.pool), small().fit(problem).scores(problem.pool))


class TestFailedFit:
    def test_a_failed_fit_does_not_count_as_fitted(self, small, make_problem):
        problem = make_problem(m=6)
        model = small(dim=6)
        with refused("projection-size"):
            model.fit(problem)
        with refused("not-fitted"):
            model.scores(problem.pool)

    @pytest.mark.parametrize("method", ["pren", "eszsl"])
    def test_a_failed_fit_does_not_mix_two_problems(self, method, small, make_problem):
        """Afterwards there is the old model as it was, or none."""
        first, second = make_problem(n_unseen=3), make_problem(n_unseen=4, shape=(40,))
        model = (small() if method == "pren" else ESZSL()).fit(first)
        expected = model.scores(first.pool)
        model.set_params(**({"dim": 6} if method == "pren" else {"feature_reg": 1e-300}))
        with refused("projection-size" if method == "pren" else "singular"):
            model.fit(second)
        for problem in (first, second):
            try:
                scores = model.scores(problem.pool)
            except PrenError:
                continue
            assert np.array_equal(scores, expected)


class TestSeeds:
    def test_another_seed_gives_another_model(self, small, make_problem):
        problem = make_problem()
        one, two = (small(seed=seed).fit(problem).scores(problem.pool) for seed in (0, 1))
        assert not np.array_equal(one, two)

    def test_global_seeds_do_not_matter(self, small, make_problem):
        problem = make_problem(shape=(1, 8, 12))
        expected = small().fit(problem).scores(problem.pool)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(99)
            assert np.array_equal(small().fit(problem).scores(problem.pool), expected)


class TestOrder:
    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    @pytest.mark.parametrize("shape", [(5,), (1, 8, 12)], ids=["features", "images"])
    def test_prens_scores_move_with_the_classes(self, small, make_problem, setting, shape):
        order = np.random.default_rng(7).permutation(8)
        one, two = (make_problem(setting=setting, shape=shape, order=o) for o in (np.arange(8), order))
        assert two.classes.names == tuple(one.classes.names[row] for row in order)
        first, second = small(first_rounds=1).fit(one), small(first_rounds=1).fit(two)
        assert np.array_equal(second.scores(two.pool), first.scores(one.pool)[:, order])
        assert np.array_equal(second.predict(two.pool), first.predict(one.pool))

    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    def test_pseudo_labels_are_rows_of_the_callers_class_table(self, small, make_problem, setting):
        order = np.random.default_rng(7).permutation(8)
        one, two = make_problem(setting=setting), make_problem(setting=setting, order=order)
        for before, after in zip(
            small(first_rounds=1).fit_rounds(one), small(first_rounds=1).fit_rounds(two), strict=True
        ):
            assert np.array_equal(before.pseudo.images, after.pseudo.images)
            assert np.array_equal(before.pseudo.labels, order[after.pseudo.labels])
            assert before.figures == after.figures

    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    def test_no_round_depends_on_the_order_of_the_pool(self, small, make_problem, whole, setting):
        """The same images are selected in the same order, so training sees the same batches: equal to the bit.

        Scores are not: on some CPUs a matrix product rounds a row by where it stands among the others.
        """
        problem = make_problem(setting=setting, pool_per_class=8)
        order = np.random.default_rng(3).permutation(len(problem.pool))
        shuffled = replace(problem, pool=ArrayInputs(whole(problem.pool)[order]))
        plain, moved = (small(rounds=4, first_rounds=2) for _ in range(2))
        for before, after in zip(plain.fit_rounds(problem), moved.fit_rounds(shuffled), strict=True):
            assert np.array_equal(order[after.pseudo.images], before.pseudo.images)
            assert np.array_equal(after.pseudo.labels, before.pseudo.labels)
            assert after.figures == before.figures
        for ours, theirs in zip(plain.network_.parameters(), moved.network_.parameters(), strict=True):
            assert torch.equal(ours, theirs)
        assert np.allclose(moved.scores(shuffled.pool), plain.scores(problem.pool)[order], rtol=0, atol=1e-6)


class TestRounds:
    def test_a_round_for_the_labelled_images_and_one_for_each_after(self, small, make_problem):
        problem = make_problem()
        rounds = list(small(rounds=3).fit_rounds(problem))
        assert all(isinstance(done, Round) for done in rounds)
        assert [done.number for done in rounds] == [0, 1, 2, 3]
        assert len(rounds[0].pseudo) == 0
        for done in rounds[1:]:
            assert len(done.pseudo) >= 1
            assert len(set(done.pseudo.images.tolist())) == len(done.pseudo)
            assert not problem.classes.seen[done.pseudo.labels].any()

    def test_no_rounds_leave_the_training_on_labelled_images(self, small, make_problem):
        problem = make_problem()
        model = small(rounds=0)
        assert [done.number for done in model.fit_rounds(problem)] == [0]
        partial = small(rounds=2)
        next(iter(partial.fit_rounds(problem)))
        assert np.array_equal(model.scores(problem.pool), partial.scores(problem.pool))

    def test_rho_and_n_max_bound_the_pseudo_labels_of_a_class(self, small, make_problem):
        problem = make_problem(per_class=8, pool_per_class=20)

        def most(**params):
            return max(
                int(np.bincount(done.pseudo.labels).max())
                for done in list(small(rounds=2, **params).fit_rounds(problem))[1:]
            )

        assert most(rho=0.5, n_max=20) == 4
        assert most(rho=0.5, n_max=3) == 3
        assert most(rho=0.0) == 1

    def test_seen_classes_get_pseudo_labels_after_the_first_rounds_of_gzsl(self, small, make_problem):
        problem = make_problem(setting="gzsl", pool_per_class=8)
        rounds = list(small(rounds=4, first_rounds=2, gamma=-100.0).fit_rounds(problem))
        seen = [problem.classes.seen[done.pseudo.labels].any() for done in rounds[1:]]
        assert seen == [False, False, True, True]


class TestBackbones:
    def test_images_train_the_backbone(self, small, make_problem):
        problem = make_problem(shape=(1, 8, 12))

        def backbone(**params):
            state, facts = small(**params).fit(problem)._state()
            assert facts == {"backbone": "small-cnn", "preprocessing": None}
            return {key: value for key, value in state.items() if key.startswith("network.backbone.")}

        untrained = backbone(rounds=0, initial_batches=0)
        assert untrained
        assert not all(torch.equal(value, untrained[key]) for key, value in backbone().items())

    def test_the_backbones_learning_rate_is_its_own(self, small, make_problem):
        problem = make_problem(shape=(1, 8, 12))
        default, same, other = (small(backbone_lr=lr).fit(problem).scores(problem.pool) for lr in (None, 3e-2, 1e-3))
        assert np.array_equal(default, same)
        assert not np.array_equal(default, other)

    def test_images_need_a_backbone_and_features_take_none(self, small, make_problem):
        images = make_problem(shape=(1, 8, 12))
        bare = Problem(images.train, images.labels, images.pool, images.classes)
        with refused("backbone-input"):
            small().fit(bare)
        assert small(backbone="small-cnn").fit(bare).backbone_ == "small-cnn"
        with refused("backbone-input"):
            small(backbone="small-cnn").fit(make_problem())
        with refused("backbone-unknown"):
            small(backbone="smal-cnn").fit(images)
