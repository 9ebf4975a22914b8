"""What a run leaves, and that it is the same whatever the answers are."""

import json
from datetime import datetime

import numpy as np
import pytest
import torch
import yaml
from refusals import refused
from run_folders import run_folder
from safetensors.torch import load_file

from pren.data import load
from pren.evaluation import evaluate_scores
from pren.foundation.errors import PrenError
from pren.foundation.version import __version__
from pren.methods.pren import PrEN
from pren.methods.rivals.eszsl import ESZSL
from pren.problem.scoring import top_classes
from pren.runs.reopening import evaluate_run
from pren.store.config import RunConfig, parse_config, read_yaml
from pren.store.folder import RunFolder

CASES = [(form, setting) for form in ("features", "images") for setting in ("zsl", "gzsl")]


def backbone(form):
    return {"backbone": "small-cnn"} if form == "images" else {}


@pytest.fixture(scope="module")
def library():
    """The same fit without a run folder: the model, its rounds and the problem."""

    def fit(config):
        problem, answers = config.load_data()
        method = config.resolved().create_method()
        return method, list(method.fit_rounds(problem)), problem, answers

    return fit


class TestFolder:
    @pytest.mark.parametrize(("form", "setting"), CASES)
    def test_everything_is_there_and_says_what_the_library_says(
        self, form, setting, data, configure, library, table, tmp_path
    ):
        config = configure(data(form, setting), setting=setting, **backbone(form))
        run = run_folder(config, tmp_path / "run")
        out = tmp_path / "run"
        assert isinstance(run, RunFolder)
        assert {path.name for path in out.iterdir() if path.is_file()} == {
            "config.yaml",
            "history.csv",
            "timings.csv",
            "pseudo_labels.csv",
            "manifest.json",
            "predictions.csv",
            "metrics.json",
            "model.safetensors",
        }
        assert [path.name for path in (out / "checkpoint").iterdir()] == ["round-0003"]

        method, rounds, problem, answers = library(config)
        names, scores = problem.classes.names, method.scores(problem.pool)
        assert table(out / "history.csv") == [
            ["round", "loss", "pseudo_labels", "changed", "agreement"],
            *(
                [str(r.number), *("" if value != value else repr(value) for value in r.figures.values())]
                for r in rounds
            ),
        ]
        taken = rounds[-1].pseudo
        assert table(out / "pseudo_labels.csv") == [
            ["input", "class"],
            *([str(i), names[c]] for i, c in sorted(zip(taken.images.tolist(), taken.labels.tolist(), strict=True))),
        ]
        best, _ = top_classes(scores, problem.classes, "unseen" if setting == "zsl" else "all", 2)
        assert [names[row] for row, _ in best] == method.predict(problem.pool).tolist()
        assert table(out / "predictions.csv") == [
            ["input", "class", "score", "confidence", "familiarity", "class_2", "score_2", "error"],
            *(
                [str(i), names[one], repr(float(scores[i, one])), "", "", names[two], repr(float(scores[i, two])), ""]
                for i, (one, two) in enumerate(best)
            ),
        ]
        written = json.loads((out / "metrics.json").read_text())
        expected = evaluate_scores(scores, answers, problem.classes, setting).to_dict()
        assert {key: written[key] for key in expected} == expected
        assert written["hashes"] == problem.fingerprint()
        assert written["rule"] == method.gzsl_rule
        times = table(out / "timings.csv")
        assert [row[0] for row in times] == ["round", "0", "1", "2", "3"]
        assert all(float(seconds) >= 0 for _, seconds in times[1:])
        assert np.array_equal(run.model().scores(problem.pool), scores)

    def test_a_one_shot_method_has_a_model_and_no_rounds(self, data, configure, library, tmp_path):
        config = configure(data(), "eszsl", feature_reg=2.0)
        run = run_folder(config, tmp_path / "run")
        assert sorted(path.name for path in (tmp_path / "run").rglob("*")) == [
            "config.yaml",
            "manifest.json",
            "metrics.json",
            "model.safetensors",
            "predictions.csv",
            "trust.safetensors",
        ]
        method, _, problem, _ = library(config)
        assert type(run.model()) is ESZSL
        assert np.array_equal(run.model().scores(problem.pool), method.scores(problem.pool))
        assert run.history() == []
        assert run.checkpoint() is None
        assert run.finished()

    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    def test_images_are_taken_for_the_candidates_of_the_setting(
        self, setting, arrays, data, configure, library, table, tmp_path
    ):
        """The pool holds seen classes, whose own scores are the highest: in ZSL they are no candidates."""
        config = configure(data(pool=arrays()["features"], answers=None), "eszsl", setting, gamma=0.0)
        run_folder(config, tmp_path / "run")
        method, _, problem, _ = library(config)
        seen = {name for name, known in zip(method.classes_.names, method.classes_.seen, strict=True) if known}
        assert seen.intersection(method.predict(problem.pool, among="all").tolist())
        predicted = [row[1] for row in table(tmp_path / "run" / "predictions.csv")[1:]]
        assert predicted == method.predict(problem.pool).tolist()

    def test_without_answers_there_are_no_metrics(self, data, configure, tmp_path):
        run = run_folder(configure(data(answers=None)), tmp_path / "run")
        assert run.finished()
        assert run.figures() is None
        assert not (tmp_path / "run" / "metrics.json").exists()

    def test_answers_that_nobody_knows_are_no_reason_to_stop(self, data, configure, tmp_path):
        run = run_folder(configure(data(answers=np.full(18, -1))), tmp_path / "run")
        assert run.finished()
        assert (tmp_path / "run" / "predictions.csv").is_file()

    def test_answers_that_do_not_fit_the_setting_cost_nobody_the_predictions(self, data, configure, tmp_path):
        """Images of seen classes in a ZSL pool: to be found before hours of training, or not to matter to it."""
        trained = []
        config = configure(data(answers=np.zeros(18, dtype=int)))
        try:
            run_folder(config, tmp_path / "run", on_round=lambda *_: trained.append(1))
        except PrenError:
            if not trained:
                assert not (tmp_path / "run").exists()
                return
        assert (tmp_path / "run" / "predictions.csv").is_file()

    def test_the_record_tells_how_it_came_about(self, data, configure, tmp_path):
        path = data()
        run = run_folder(configure(path), tmp_path / "run", command="pren fit 'my data.npz'")
        content = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
        record = content["record"]
        problem, _ = load(path)
        assert content["data"] == path
        assert content["method"] == "pren"
        assert content["setting"] == "zsl"
        assert set(content["params"]) == set(PrEN().get_params())
        assert content["params"]["hidden"] == [8]
        assert record["command"] == "pren fit 'my data.npz'"
        assert record["hashes"] == problem.fingerprint()
        assert record["source"]["file"] == path
        assert record["versions"]["pren"] == __version__
        assert record["versions"]["torch"] == torch.__version__.split("+")[0] or torch.__version__
        assert datetime.fromisoformat(record["started"]).utcoffset() is not None
        assert run.config().resolved().params == configure(path).resolved().params

    def test_only_the_last_checkpoint_is_kept_and_it_is_kept_before_anyone_hears_of_it(self, data, configure, tmp_path):
        heard = []

        def on_round(done, method):
            folder = RunFolder.open(tmp_path / "run")
            checkpoint = folder.checkpoint()
            pool = load(path)[0].pool
            expected = method.scores(pool)
            heard.append(done.number)
            assert [row["round"] for row in checkpoint.state.history] == list(range(done.number + 1))
            assert len(checkpoint.state.timings) == done.number + 1
            assert int(checkpoint.training["round.number"]) == done.number
            assert np.array_equal(checkpoint.method.scores(pool), expected)
            assert np.array_equal(folder.model().scores(pool), expected)
            assert not folder.finished()
            assert len(list((tmp_path / "run" / "checkpoint").iterdir())) == 1

        path = data()
        run_folder(configure(path), tmp_path / "run", on_round=on_round)
        assert heard == [0, 1, 2, 3]

    def test_no_rounds_are_a_run_too(self, data, configure, tmp_path):
        run = run_folder(configure(data(), rounds=0), tmp_path / "run")
        assert [row["round"] for row in run.history()] == [0]
        assert run.finished()

    @pytest.mark.parametrize("params", [{"initial_batches": 0}, {"batches": 0}, {"lr": 1e30}], ids=str)
    def test_a_loss_that_is_no_number_is_no_crash(self, data, configure, tmp_path, params):
        """Rounds without batches have no loss, and a learning rate that is too large makes it NaN."""
        try:
            run = run_folder(configure(data(), **params), tmp_path / "run")
        except PrenError:
            assert "lr" in params  # which the user can mend
        else:
            assert run.finished()
            assert run.history()

    def test_nothing_is_printed(self, data, configure, tmp_path, capfd):
        run_folder(configure(data()), tmp_path / "run")
        assert capfd.readouterr() == ("", "")


@pytest.mark.slow
class TestAnswers:
    """The decisive test: nothing that is fitted depends on the labels of the pool."""

    @pytest.mark.parametrize("method", ["pren", "eszsl"])  # of all others: methods/test_contract.py
    @pytest.mark.parametrize(("form", "setting"), CASES)
    def test_true_shuffled_and_absent_answers_give_the_same_bits(
        self, method, form, setting, arrays, data, configure, table, tmp_path
    ):
        true = arrays(form, setting)["answers"]
        shuffled = np.random.default_rng(5).permutation(true)
        assert not np.array_equal(true, shuffled)
        params = {} if method == "eszsl" else {"first_rounds": 1, **backbone(form)}
        found = []
        for name, answers in {"true": true, "shuffled": shuffled, "absent": None}.items():
            config = configure(data(form, setting, f"{name}.npz", answers=answers), method, setting, **params)
            run_folder(config, tmp_path / name)
            files = (
                ["predictions.csv"] if method == "eszsl" else ["predictions.csv", "history.csv", "pseudo_labels.csv"]
            )
            tensors = load_file(tmp_path / name / "model.safetensors")
            assert len(tensors) > 1
            found.append((tensors, [(tmp_path / name / file).read_bytes() for file in files]))
        assert not (tmp_path / "absent" / "metrics.json").exists()
        if len({row[1] for row in table(tmp_path / "true" / "predictions.csv")[1:]}) > 1:
            # The answers do differ: they have another accuracy.
            one, two = ((tmp_path / name / "metrics.json").read_bytes() for name in ("true", "shuffled"))
            assert one != two
        else:
            assert form == "images"  # hardly trained here, so all may look the same to it
        for tensors, files in found[1:]:
            assert tensors.keys() == found[0][0].keys()
            assert all(torch.equal(tensors[key], found[0][0][key]) for key in tensors)
            assert files == found[0][1]

    def test_the_hashes_do_not_tell_the_answers(self, arrays, data):
        true = arrays()["answers"]
        assert load(data())[0].fingerprint() == load(data(file="b.npz", answers=np.roll(true, 1)))[0].fingerprint()


class TestRepeat:
    @pytest.mark.parametrize("method", ["pren", "progressive", "eszsl"])
    def test_the_same_seed_gives_the_same_run(self, method, data, configure, outcome, tmp_path):
        params = {"heads": 1} if method == "progressive" else {}
        config = configure(data(), method, **params)
        for name in ("one", "two"):
            run_folder(config, tmp_path / name)
        assert outcome(tmp_path / "one") == outcome(tmp_path / "two")

    def test_another_seed_gives_another(self, data, configure, tmp_path):
        path = data()
        for seed in (0, 1):
            run_folder(configure(path, seed=seed), tmp_path / str(seed))
        assert (tmp_path / "0" / "history.csv").read_bytes() != (tmp_path / "1" / "history.csv").read_bytes()

    @pytest.mark.parametrize(("form", "setting"), CASES)
    def test_config_yaml_repeats_the_run(self, form, setting, data, configure, outcome, tmp_path):
        run_folder(configure(data(form, setting), setting=setting, **backbone(form)), tmp_path / "one")
        again = parse_config(read_yaml(tmp_path / "one" / "config.yaml"), "here")
        run_folder(again, tmp_path / "two")
        assert outcome(tmp_path / "one") == outcome(tmp_path / "two")

    def test_all_parameters_are_written_down(self, tmp_path, configure):
        small = {"heads": 2, "rounds": 0, "initial_batches": 1, "batch_size": 4, "hidden": [4]}
        run = run_folder(RunConfig(data="numbers-features", method="pren", params=small), tmp_path / "run")
        expected = {**PrEN().get_params(), **small}
        assert json.loads(json.dumps(expected)) == run.config().params


class TestRefused:
    def test_a_folder_that_holds_a_run(self, data, configure, fingerprint, tmp_path):
        config = configure(data())
        run_folder(config, tmp_path / "run")
        before = fingerprint(tmp_path / "run")
        with refused("run-exists"):
            run_folder(config, tmp_path / "run")
        assert fingerprint(tmp_path / "run") == before

    def test_a_folder_that_holds_something_else(self, data, configure, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.txt").write_text("precious")
        with refused("out-taken"):
            run_folder(configure(data()), tmp_path / "out")
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]

    def test_a_file_in_its_place(self, data, configure, tmp_path):
        (tmp_path / "out").write_text("precious")
        for out in (tmp_path / "out", tmp_path / "out" / "deeper"):
            with refused("write-failed"):
                run_folder(configure(data()), out)
        assert (tmp_path / "out").read_text() == "precious"

    def test_an_empty_folder_is_taken(self, data, configure, tmp_path):
        (tmp_path / "out").mkdir()
        assert run_folder(configure(data()), tmp_path / "out").finished()

    def test_a_fit_that_fails_leaves_no_folder(self, data, configure, tmp_path):
        with refused("projection-size"):
            run_folder(configure(data(), dim=6), tmp_path / "run")
        assert not (tmp_path / "run").exists()
        assert [path.name for path in tmp_path.iterdir()] == ["data.npz"]

    def test_a_fit_that_fails_does_not_take_the_users_own_folder_with_it(self, data, configure, tmp_path):
        (tmp_path / "mine").mkdir()
        with refused("projection-size"):
            run_folder(configure(data(), dim=6), tmp_path / "mine")
        assert list((tmp_path / "mine").iterdir()) == []

    def test_a_fit_that_fails_where_one_stands(self, data, configure, tmp_path, monkeypatch):
        path = data()
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        with refused("projection-size"):
            run_folder(configure(path, dim=6), ".")

    @pytest.mark.parametrize("method", ["pern", "PrEN"])
    def test_an_unknown_method(self, method, data, configure, tmp_path):
        with refused("unknown-name"):
            run_folder(configure(data(), method), tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_data_that_cannot_be_read(self, configure, tmp_path):
        with refused("file-missing"):
            run_folder(configure(tmp_path / "nowhere.npz"), tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_a_variant_that_would_be_another_method(self, data, configure, tmp_path):
        with refused("param-preset"):
            run_folder(configure(data(), "progressive"), tmp_path / "run")
        assert not (tmp_path / "run").exists()


class TestEvaluateRun:
    @pytest.mark.parametrize(("form", "setting"), CASES)
    def test_it_says_what_the_run_said(self, form, setting, data, configure, tmp_path):
        run = run_folder(configure(data(form, setting), setting=setting, **backbone(form)), tmp_path / "run")
        assert evaluate_run(run) == run.figures()

    def test_it_follows_new_answers(self, arrays, data, configure, tmp_path):
        run = run_folder(configure(data()), tmp_path / "run")
        names = arrays()["class_names"].tolist()
        predicted = run.model().predict(load(tmp_path / "data.npz")[0].pool)
        data(answers=np.array([names.index(name) for name in predicted]))
        assert evaluate_run(run).top1 == 1.0

    @pytest.mark.parametrize("method", ["pren", "eszsl"])
    def test_the_classes_may_change_places_in_the_file(self, method, arrays, data, configure, tmp_path):
        """Names, signatures, labels and answers move together: it is the same problem, and has the same figures."""
        config = configure(data(setting="gzsl"), method, "gzsl")
        run = run_folder(config, tmp_path / "run")
        expected = {row.name: row for row in evaluate_run(run).per_class}
        assert len({row.accuracy for row in expected.values()}) > 1
        content, order = arrays(setting="gzsl"), np.random.default_rng(1).permutation(8)
        place = np.argsort(order)
        moved = {key: content[key][order] for key in ("signatures", "class_names")}
        data(setting="gzsl", **moved, **{key: place[content[key]] for key in ("labels", "answers")})
        try:
            found = evaluate_run(run).per_class
        except PrenError:
            return  # to refuse is right as well
        assert {row.name: row for row in found} == expected

    def test_no_answers(self, data, configure, tmp_path):
        run = run_folder(configure(data(answers=None)), tmp_path / "run")
        with refused("no-answers"):
            evaluate_run(run)

    @pytest.mark.parametrize("key", ["features", "pool", "signatures"])
    def test_other_data_are_refused(self, key, arrays, data, configure, tmp_path):
        run = run_folder(configure(data()), tmp_path / "run")
        data(**{key: arrays()[key] + 1e-3})
        with refused("data-changed"):
            evaluate_run(run)


class TestTopClasses:
    @pytest.mark.parametrize("among", ["unseen", "seen", "all"])
    @pytest.mark.parametrize("top", [1, 3, 100])
    def test_best_first_among_the_candidates(self, arrays, among, top, make_problem):
        classes = make_problem().classes
        scores = np.random.default_rng(0).integers(0, 4, size=(30, 8)).astype(float)  # with ties
        rows, values = top_classes(scores, classes, among, top)
        candidates = np.flatnonzero(classes.among(among)).tolist()
        for image in range(30):
            expected = sorted(candidates, key=lambda c, i=image: (-scores[i, c], c))[:top]
            assert rows[image].tolist() == expected
            assert values[image].tolist() == [scores[image, c] for c in expected]


def test_rounds_note_agreement_and_what_the_answers_say(data, configure, tmp_path):
    run = run_folder(configure(data()), tmp_path / "run")
    agreement = [row["agreement"] for row in run.history()]
    assert agreement[0] is None  # nobody has voted yet
    assert all(0 < share <= 1 for share in agreement[1:])
    known = run.rounds_by_answers()
    assert known[0] == {}
    assert all(set(row) == {"precision", "top1_before"} for row in known[1:])
    assert run_folder(configure(data(answers=None)), tmp_path / "none").rounds_by_answers() == [{}] * 4
