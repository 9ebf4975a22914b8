"""Choosing parameters: on validation classes only, and to the same end however often it is interrupted."""

import json
from statistics import fmean

import numpy as np
import pytest
from refusals import refused
from sklearn.base import clone

from pren.evaluation import evaluate_scores
from pren.foundation.errors import PrenError
from pren.methods.rivals.eszsl import ESZSL
from pren.research import tuning
from pren.research.comparison import ComparisonPlan, compare
from pren.research.folds import open_folds
from pren.research.tuning import attempt, search_space, tune
from pren.store.config import parse_config, read_yaml

pytestmark = pytest.mark.slow

# Everything that is tuned of ESZSL, at its default.
FIXED = {"feature_reg": 1.0, "signature_reg": 0.3, "features": "l2", "refinement": "none", "balance": 0.0}


def study(folder):
    """All but the times."""
    content = json.loads((folder / "study.json").read_text())
    for trial in content["trials"]:
        del trial["seconds"]
    return content


class TestWhatIsSeen:
    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    def test_no_fold_holds_a_test_class(self, config, setting):
        wanted = config(setting=setting)
        problem, _ = wanted.load_data()
        test_classes = {problem.classes.names[row] for row in np.flatnonzero(problem.classes.unseen)}
        folds = open_folds(wanted)
        assert len(folds) == 2
        for fold, _ in folds:
            assert not test_classes & set(fold.classes.names)
            assert fold.setting == setting

    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    def test_a_method_is_fitted_to_nothing_else(self, config, setting, monkeypatch, tmp_path):
        fitted = []
        fit = ESZSL.fit
        monkeypatch.setattr(ESZSL, "fit", lambda self, problem: fitted.append(problem) or fit(self, problem))
        wanted = config(setting=setting)
        problem, _ = wanted.load_data()
        seen = {problem.classes.names[row] for row in np.flatnonzero(problem.classes.seen)}
        tune(wanted, tmp_path / "out", trials=2)
        assert fitted
        assert all(set(given.classes.names) == seen for given in fitted)

    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    def test_other_test_images_labels_and_signatures_give_the_same(self, config, arrays, setting, tmp_path):
        tune(config(setting=setting), tmp_path / "one", trials=4)
        content, rng = arrays(setting=setting), np.random.default_rng(1)
        signatures = content["signatures"].copy()
        signatures[5:] = rng.random((3, 6))
        changed = {
            "pool": rng.normal(size=(7, 6)).astype(np.float32),
            "answers": np.full(7, 6),
            "signatures": signatures,
        }
        tune(config(setting=setting, **changed), tmp_path / "two", trials=4)
        assert study(tmp_path / "one") == study(tmp_path / "two")
        assert read_yaml(tmp_path / "one" / "config.yaml") == read_yaml(tmp_path / "two" / "config.yaml")

    def test_no_answers_are_needed(self, config, tmp_path):
        assert tune(config(answers=None), tmp_path / "out", trials=1).trials == 1

    def test_a_fold_of_the_users_choice_is_refused(self, config, tmp_path):
        with refused("option-conflict"):
            tune(config().model_copy(update={"options": {"fold": 1}}), tmp_path / "out")


class TestSearchSpace:
    def test_what_is_given_is_not_chosen(self, config):
        assert set(search_space(config())) == {"feature_reg", "signature_reg", "features", "refinement", "balance"}
        given = {"feature_reg": 2.0, "features": "l2", "refinement": "none"}
        assert set(search_space(config(params=given))) == {"signature_reg", "balance"}

    def test_what_makes_a_method_is_not_chosen(self, config):
        assert not {"heads", "projection", "subsets"} & set(search_space(config("progressive")))

    def test_first_rounds_are_chosen_in_gzsl_alone(self, config):
        assert "first_rounds" not in search_space(config("pren"))
        assert "first_rounds" in search_space(config("pren", "gzsl"))

    def test_nothing_left(self, config, tmp_path):
        with refused("nothing-to-tune"):
            tune(config(params=FIXED), tmp_path / "out")


class TestTune:
    def test_the_best_is_chosen_and_written(self, config, tmp_path):
        wanted = config()
        tuned = tune(wanted, tmp_path / "out", trials=6)
        trials = study(tmp_path / "out")["trials"]
        assert trials[0]["params"] == FIXED
        best = max(trials, key=lambda trial: trial["value"])
        assert tuned.value == best["value"] == fmean(best["folds"])
        written = parse_config(read_yaml(tmp_path / "out" / "config.yaml"), "")
        assert written.params == {**best["params"], "gamma": 0.0}
        assert (written.data, written.method, written.setting) == (wanted.data, "eszsl", "zsl")
        for (problem, answers), value in zip(open_folds(wanted), tuned.folds, strict=True):
            scores = written.create_method().fit(problem).scores(problem.pool)
            assert evaluate_scores(scores, answers, problem.classes, "zsl").top1 == value

    def test_a_transductive_method(self, config, tmp_path):
        tuned = tune(config("progressive"), tmp_path / "out", trials=2)
        assert tuned.config.params["heads"] == 1
        assert tuned.config.params["rounds"] == 1

    def test_the_same_seed_gives_the_same(self, config, tmp_path):
        for name, seed in (("one", 0), ("same", 0), ("other", 1)):
            tune(config(), tmp_path / name, trials=3, seed=seed)
        assert study(tmp_path / "one") == study(tmp_path / "same")
        assert study(tmp_path / "one")["trials"] != study(tmp_path / "other")["trials"]

    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    def test_killed_and_continued(self, config, setting, monkeypatch, tmp_path):
        tune(config(setting=setting), tmp_path / "whole", trials=5)
        real, calls = tuning.attempt, []

        def killed(*arguments, **named):
            calls.append(arguments)
            if len(calls) in (3, 5):
                raise KeyboardInterrupt
            return real(*arguments, **named)

        monkeypatch.setattr(tuning, "attempt", killed)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                tune(config(setting=setting), tmp_path / "parts", trials=5)
        tune(config(setting=setting), tmp_path / "parts", trials=5)
        assert len(calls) == 5 + 2 + (setting == "gzsl")
        assert study(tmp_path / "whole") == study(tmp_path / "parts")
        whole, parts = (read_yaml(tmp_path / name / "config.yaml") for name in ("whole", "parts"))
        assert whole == parts

    def test_more_trials_go_on(self, config, tmp_path):
        numbers = []
        tune(config(), tmp_path / "out", trials=2)
        tune(config(), tmp_path / "out", trials=4, on_trial=lambda number, trial, best: numbers.append(number))
        assert numbers == [3, 4]
        tune(config(), tmp_path / "whole", trials=4)
        assert study(tmp_path / "out") == study(tmp_path / "whole")

    def test_trials_that_fail_are_told_and_do_not_stop_it(self, config, monkeypatch, tmp_path):
        fit = ESZSL.fit

        def failing(self, problem):
            if self.feature_reg == 1.0:
                raise PrenError("planted", "no such luck")
            return fit(self, problem)

        monkeypatch.setattr(ESZSL, "fit", failing)
        tuned = tune(config(), tmp_path / "out", trials=3)
        assert (tuned.trials, tuned.failed) == (3, 1)
        assert study(tmp_path / "out")["trials"][0]["error"] == "no such luck"
        assert tuned.config.params["feature_reg"] != 1.0

    def test_all_trials_fail(self, config, monkeypatch, tmp_path):
        monkeypatch.setattr(ESZSL, "_fit", lambda self, problem: (_ for _ in ()).throw(PrenError("planted", "never")))
        with refused("trials-failed"):
            tune(config(), tmp_path / "out", trials=1)

    def test_what_fails_alike_twice_is_not_tried_again(self, config, monkeypatch, tmp_path):
        tried, fit = [], ESZSL._fit

        def failing(self, problem):
            tried.append(problem)
            raise PrenError("planted", "no")

        monkeypatch.setattr(ESZSL, "_fit", failing)
        for number in (2, 3):
            with refused("trials-failed"):
                tune(config(), tmp_path / "out", trials=9)
            assert len(tried) == number
        monkeypatch.setattr(ESZSL, "_fit", fit)
        assert tune(config(), tmp_path / "out", trials=4).failed == 1, "what was mended goes on"

    def test_a_comparison_may_stand_beside_it(self, config, tmp_path, here):
        tune(config(), tmp_path / "out" / "tuned" / "eszsl", trials=1)
        compare(ComparisonPlan([config()], ["eszsl"]), tmp_path / "out")
        tune(config(), tmp_path / "out", trials=1)
        compare(ComparisonPlan([config()], ["eszsl"]), tmp_path / "out")
        assert len(here) == 1

    @pytest.mark.parametrize("file", ["notes", "tuned/notes", "runs/model.safetensors"])
    def test_a_folder_with_more_than_experiments(self, config, tmp_path, here, file):
        tune(config(), tmp_path / "out" / "tuned" / "eszsl", trials=1)
        (tmp_path / "out" / file).parent.mkdir(exist_ok=True)
        (tmp_path / "out" / file).touch()
        with refused("out-taken"):
            compare(ComparisonPlan([config()], ["eszsl"]), tmp_path / "out")

    @pytest.mark.parametrize("different", [{"params": {"feature_reg": 2.0}}, {"setting": "gzsl"}, {"seed": 1}])
    def test_another_study_is_not_gone_on_with(self, config, different, tmp_path):
        tune(config(), tmp_path / "out", trials=1)
        before = (tmp_path / "out" / "study.json").read_bytes()
        seed = different.pop("seed", 0)
        with refused("study-other"):
            tune(config(**different), tmp_path / "out", trials=2, seed=seed)
        assert (tmp_path / "out" / "study.json").read_bytes() == before

    @pytest.mark.parametrize("content", ["", "{}", "[]", "{", '{"what": {}, "trials": [{"params": 3}]}'])
    def test_a_damaged_study_is_named(self, config, content, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "study.json").write_text(content)
        with refused("damaged"):
            tune(config(), tmp_path / "out")

    def test_a_folder_of_somebody_elses(self, config, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.tex").write_text("x")
        with refused("out-taken"):
            tune(config(), tmp_path / "out")


class TestGamma:
    def test_it_is_read_off_the_curves_and_holds_what_they_promise(self, config, tmp_path):
        wanted = config(setting="gzsl")
        tuned = tune(wanted, tmp_path / "out", trials=3)
        best = max(study(tmp_path / "out")["trials"], key=lambda trial: trial["value"])
        assert tuned.figure == "h"
        assert tuned.config.params["gamma"] == best["gamma"]
        assert tuned.config.choose_gamma is False
        assert tuned.value == pytest.approx(best["value"], abs=1e-12)
        assert best["value"] >= fmean(best["plain"])
        method = tuned.config.create_method()
        for (problem, answers), value in zip(open_folds(wanted), tuned.folds, strict=True):
            scores = clone(method).fit(problem).scores(problem.pool)
            assert evaluate_scores(scores, answers, problem.classes, "gzsl").h == pytest.approx(value, abs=1e-12)

    def test_one_that_is_given_stays(self, config, tmp_path):
        tuned = tune(config(setting="gzsl", params={"gamma": 0.125}), tmp_path / "out", trials=2)
        assert tuned.config.params["gamma"] == 0.125
        assert study(tmp_path / "out")["trials"][0]["gamma"] is None

    def test_a_method_with_nothing_else_to_choose_gets_one_trial(self, config, tmp_path):
        tuned = tune(config(setting="gzsl", params=FIXED), tmp_path / "out", trials=9)
        assert tuned.trials == 1
        assert tuned.config.params["gamma"] != 0.0

    def test_one_that_does_not_hold_its_promise_is_dropped(self, config, monkeypatch, tmp_path):
        """As with a method that learns otherwise when gamma is there."""
        run = ESZSL._run
        monkeypatch.setattr(ESZSL, "_run", lambda self, *given: run(self, *given) * (-1.0 if self.gamma else 1.0))
        tuned = tune(config(setting="gzsl"), tmp_path / "out", trials=1)
        trial = study(tmp_path / "out")["trials"][0]
        assert tuned.config.params["gamma"] == 0.0
        assert tuned.config.choose_gamma is False  # or a fit would choose another one
        assert tuned.folds == trial["plain"]

    def test_it_counts_on_top_of_a_recommended_one(self, config):
        wanted = config(setting="gzsl").resolved()
        folds = open_folds(wanted)
        plain, moved = (
            attempt(wanted.model_copy(update={"params": {**wanted.params, "gamma": g}}), {}, folds, True)
            for g in (0.0, 0.25)
        )
        assert moved.gamma == pytest.approx(plain.gamma, abs=1e-9)
        assert moved.value == pytest.approx(plain.value)

    def test_pren_and_its_first_rounds(self, config, tmp_path):
        tuned = tune(config("pren", "gzsl", {"heads": 4, "dim": 4}), tmp_path / "out", trials=2)
        assert {"first_rounds", "lr"} - set(study(tmp_path / "out")["trials"][1]["params"]) == {"lr"}
        assert tuned.config.setting == "gzsl"
