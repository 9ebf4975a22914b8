"""Parameters by name, and methods by name."""

import math

import numpy as np
import pytest
from refusals import refused

from pren.methods.params import schema, validate
from pren.methods.pren import PrEN
from pren.methods.registry import DEFAULT, METHODS, create, list_methods
from pren.methods.rivals.eszsl import ESZSL
from pren.methods.rivals.sae import SAE


class TestValidate:
    def test_what_is_left_out_has_its_default(self):
        assert validate(PrEN, {}) == PrEN().get_params()
        assert validate(ESZSL, {"gamma": 2}) == {
            "feature_reg": 1.0,
            "signature_reg": 0.3,
            "features": "l2",
            "refinement": "none",
            "balance": 0.0,
            "gamma": 2.0,
        }

    def test_values_come_in_their_declared_types(self):
        params = validate(
            PrEN, {"hidden": [3, 4], "lr": 1, "gamma": np.float32(0.5), "heads": np.int32(7), "output_relu": np.False_}
        )
        assert params["hidden"] == (3, 4)
        assert type(params["lr"]) is float
        assert type(params["gamma"]) is float
        assert type(params["heads"]) is int
        assert params["output_relu"] is False

    def test_numbers_that_yaml_reads_as_text_are_numbers(self):
        assert validate(PrEN, {"lr": "1e-3"})["lr"] == 1e-3

    @pytest.mark.parametrize(
        ("method", "params", "refusal"),
        [
            (PrEN, {"haeds": 3}, "param-value haeds"),
            (PrEN, {"hiden": [3]}, "param-value hiden"),
            (PrEN, {"zzzzzz": 3}, "param-value zzzzzz"),
            (
                ESZSL,
                {"heads": 3},
                "param-value heads feature_reg signature_reg",
            ),
            (PrEN, {"heads": "many"}, "param-value heads"),
            (PrEN, {"heads": 2.5}, "param-value heads"),
            (PrEN, {"heads": [2]}, "param-value heads"),
            (PrEN, {"heads": None}, "param-value heads"),
            (PrEN, {"heads": 10**30}, "param-value heads"),
            (PrEN, {"hidden": [10**30]}, "param-value hidden"),
            (PrEN, {"heads": 0}, "param-value heads"),
            (PrEN, {"dim": 0}, "param-value dim"),
            (PrEN, {"rounds": -1}, "param-value rounds"),
            (PrEN, {"initial_batches": -1}, "param-value initial_batches"),
            (PrEN, {"batches": -1}, "param-value batches"),
            (PrEN, {"batch_size": 0}, "param-value batch_size"),
            (PrEN, {"batch_size": 999999999}, "param-value batch_size"),
            (PrEN, {"lr": 0}, "param-value lr"),
            (PrEN, {"lr": -1e-3}, "param-value lr"),
            (PrEN, {"backbone_lr": 0.0}, "param-value backbone_lr"),
            (PrEN, {"hidden": 512}, "param-value hidden"),
            (PrEN, {"hidden": [512, 0]}, "param-value hidden"),
            (PrEN, {"rho": 1.5}, "param-value rho"),
            (PrEN, {"rho": -0.1}, "param-value rho"),
            (PrEN, {"n_max": 0}, "param-value n_max"),
            (PrEN, {"output_relu": "perhaps"}, "param-value output_relu"),
            (PrEN, {"completion": "nul"}, "param-value completion"),
            (PrEN, {"subsets": "most"}, "param-value subsets"),
            (PrEN, {"gzsl_rule": "best"}, "param-value gzsl_rule"),
            (PrEN, {"first_rounds": -1}, "param-value first_rounds"),
            (PrEN, {"seed": -1}, "param-value seed"),
            (PrEN, {"gamma": "warm"}, "param-value gamma"),
            (ESZSL, {"feature_reg": 0}, "param-value feature_reg"),
            (ESZSL, {"signature_reg": -1}, "param-value signature_reg"),
        ],
    )
    def test_what_cannot_be_is_refused(self, method, params, refusal):
        with refused(refusal):
            validate(method, params)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize(
        ("method", "name"),
        [(PrEN, "lr"), (PrEN, "backbone_lr"), (PrEN, "rho"), (PrEN, "gamma"), (ESZSL, "gamma"), (ESZSL, "feature_reg")],
    )
    def test_numbers_must_be_finite(self, method, name, value):
        with refused(f"param-value {name}"):
            validate(method, {name: value})

    def test_every_mistake_is_named_at_once(self):
        with refused("param-value") as error:
            validate(PrEN, {"heads": 0, "lr": "fast", "rownds": 3})
        for part in ("heads=0", "lr='fast'", "'rownds'", "Did you mean rounds"):
            assert part in str(error.value)

    def test_the_message_is_one_line(self):
        with refused("param-value") as error:
            validate(PrEN, {"heads": 0, "lr": "fast", "rownds": 3})
        assert "\n" not in str(error.value)
        assert "pydantic" not in str(error.value)

    def test_the_schema_has_the_constructors_names(self):
        for method in (PrEN, ESZSL):
            assert set(schema(method).model_fields) == set(method().get_params())


class TestRegistry:
    def test_there_are_pren_its_variants_and_the_rivals(self):
        assert list(METHODS)[:5] == [DEFAULT, "pren-pool", "pren", "pren-no-projection", "progressive"]
        assert DEFAULT == "pren-vote"
        rivals = ["eszsl", "devise", "ale", "sje", "latem", "sync", "sae", "sae-f2s", "conse", "ridge-s2v"]
        rivals += ["uda", "dcl", "revise", "gfzsl", "qfsl"]
        assert set(rivals) <= set(METHODS)
        for name, entry in METHODS.items():
            assert entry.name == name
            assert entry.title
            assert entry.summary
            assert "\n" not in entry.summary

    def test_the_variants_are_parameters(self):
        ours = PrEN().get_params()
        assert create("pren").get_params() == ours
        assert create("pren-no-projection").get_params() == {**ours, "projection": False}
        assert create("progressive").get_params() == {**ours, "heads": 1, "projection": False, "subsets": "all"}
        assert type(create("eszsl")) is ESZSL
        assert create("sae").direction == "s2f"
        assert create("sae-f2s").get_params() == {**SAE().get_params(), "direction": "f2s"}

    @pytest.mark.parametrize(
        ("name", "params"),
        [
            ("progressive", {"heads": 2}),
            ("progressive", {"projection": True}),
            ("progressive", {"subsets": "half"}),
            ("pren-no-projection", {"projection": True}),
            ("sae-f2s", {"direction": "s2f"}),
        ],
    )
    def test_a_variant_cannot_be_made_another_method(self, name, params):
        (_key,) = params
        with refused("param-preset"):
            create(name, **params)

    def test_a_variant_takes_the_parameters_that_are_its_own_anyway(self):
        assert create("progressive", heads=1, seed=5).seed == 5
        assert create("pren-no-projection", projection=False, heads=3).heads == 3

    def test_parameters_are_checked(self):
        with refused("param-value"):
            create("pren", haeds=3)
        with refused("param-value"):
            create("pren", heads=0)
        with refused("param-value"):
            create("eszsl", seed=3)

    @pytest.mark.parametrize(("name", "near"), [("Pren", "pren"), ("progresive", "progressive"), ("ezsl", "eszsl")])
    def test_an_unknown_name_gets_the_nearest_ones(self, name, near):
        for call in (METHODS.__getitem__, create):
            with refused("unknown-name"):
                call(name)

    def test_a_name_like_no_other_gets_all_of_them(self):
        with refused("unknown-name") as error:
            create("qqq")
        assert f"Known are {', '.join(sorted(METHODS))}." in str(error.value)

    @pytest.mark.parametrize(
        ("pattern", "names"),
        [
            ("*", list(METHODS)),
            ("sae*", ["sae", "sae-f2s"]),
            ("pren*", ["pren-vote", "pren-pool", "pren", "pren-no-projection"]),
            ("pren", ["pren"]),
            ("?szsl", ["eszsl"]),
            ("x*", []),
        ],
    )
    def test_names_are_listed_by_pattern(self, pattern, names):
        assert [entry.name for entry in list_methods(pattern)] == names

    @pytest.mark.parametrize("name", [name for name in METHODS if name not in (DEFAULT, "pren-pool")])
    def test_every_rival_may_choose_what_features_and_scores_go_through(self, name):
        """A comparison that keeps the best preparation to ourselves would be worth nothing."""
        space = METHODS[name].method.space
        assert {"raw", "whitened"} <= set(space["features"].values)
        assert {"none", "soft-kmeans", "label-propagation"} <= set(space["refinement"].values)
        assert {0.0, 0.5} <= set(space["balance"].values)

    def test_the_default_chooses_among_its_own_parameters(self):
        assert set(METHODS[DEFAULT].method.space) == {"balance", "evidence", "caution"}

    def test_variants_fit_what_they_say(self, make_problem):
        problem = make_problem()
        size = {"rounds": 1, "initial_batches": 3, "batches": 2, "batch_size": 8, "hidden": (6,)}
        one = create("progressive", **size).fit(problem)
        assert one.network_.ensemble.embeddings.shape == (1, 6, 8)
        assert one.network_.ensemble.subsets.sum() == 4  # every unseen class
        several = create("pren-no-projection", heads=3, **size).fit(problem)
        assert several.network_.ensemble.embeddings.shape == (3, 6, 8)
        assert several.network_.ensemble.subsets.sum(dim=1).tolist() == [2, 2, 2]
        projected = create("pren", heads=3, dim=2, **size).fit(problem)
        assert projected.network_.ensemble.embeddings.shape == (3, 2, 8)

    def test_the_default_dim_is_one_less_than_the_attributes_up_to_70(self, make_problem):
        size = {"heads": 2, "rounds": 0, "initial_batches": 1, "batch_size": 2, "hidden": (3,)}
        for m, h in ((6, 5), (71, 70), (90, 70)):
            model = create("pren", **size).fit(make_problem(m=m))
            assert model.network_.ensemble.embeddings.shape == (2, h, 8)
