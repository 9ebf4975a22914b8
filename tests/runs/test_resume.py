"""A run that was stopped, at whatever moment, ends as if nobody had stopped it; and nothing else is touched."""

import json
import os
import shutil
import sys

import numpy as np
import pytest
import torch
from refusals import refused
from run_folders import run_folder
from safetensors.torch import load_file, save_file

from pren.data import load
from pren.foundation.errors import PrenError
from pren.methods.storage import load_model
from pren.store.folder import RunFolder
from pren.store.manifest import write_manifest

CASES = [(form, setting) for form in ("features", "images") for setting in ("zsl", "gzsl")]


def variant(form):
    return {"first_rounds": 1, "gamma": -0.5, **({"backbone": "small-cnn"} if form == "images" else {})}


@pytest.mark.slow
class TestExact:
    @pytest.mark.parametrize(("form", "setting"), CASES)
    def test_stopped_after_any_round(self, form, setting, data, configure, interrupted, outcome, tmp_path):
        config = configure(data(form, setting), setting=setting, **variant(form))
        run_folder(config, tmp_path / "whole")
        expected = outcome(tmp_path / "whole")
        assert "checkpoint/round-0003/training.safetensors" in expected
        for number in range(4):
            out = tmp_path / f"stopped-{number}"
            interrupted(config, out, number)
            assert not RunFolder(out).finished()
            rounds = []
            run_folder(config, out, resume=True, on_round=lambda done, _: rounds.append(done.number))  # noqa: B023
            assert rounds == list(range(number + 1, 4))
            assert outcome(out) == expected, f"stopped after round {number}"
            shutil.rmtree(out)

    @pytest.mark.parametrize(
        "params",
        [
            {"backbone_lr": 1e-4},
            {"projection": False},
            {"output_relu": False, "gzsl_rule": "probability", "completion": "complement"},
            {"hidden": []},
        ],
        ids=str,
    )
    def test_whatever_the_parameters(self, params, data, configure, interrupted, outcome, tmp_path):
        config = configure(data("images", "gzsl"), setting="gzsl", **variant("images"), **params)
        run_folder(config, tmp_path / "whole")
        interrupted(config, tmp_path / "stopped", 1)
        run_folder(config, tmp_path / "stopped", resume=True)
        assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")

    def test_stopped_again_and_again(self, data, configure, interrupted, outcome, tmp_path):
        config = configure(data())
        run_folder(config, tmp_path / "whole")
        interrupted(config, tmp_path / "run", 0)
        for number in (1, 2, 3):
            interrupted(config, tmp_path / "run", number, resume=True)
        run_folder(config, tmp_path / "run", resume=True)
        assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")

    def test_stopped_before_the_first_round_was_finished(self, data, configure, outcome, tmp_path, monkeypatch):
        config = configure(data())
        run_folder(config, tmp_path / "whole")
        with monkeypatch.context() as patch:
            patch.setattr(torch.optim.Adam, "step", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                run_folder(config, tmp_path / "run")
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["config.yaml"]
        run_folder(config, tmp_path / "run", resume=True)
        assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")

    def test_stopped_within_a_round(self, data, configure, outcome, tmp_path, monkeypatch):
        config = configure(data())
        run_folder(config, tmp_path / "whole")
        for steps in (11, 13, 16, 18):
            with monkeypatch.context() as patch:
                patch.setattr(torch.optim.Adam, "step", _interrupt_after(steps))
                with pytest.raises(KeyboardInterrupt):
                    run_folder(config, tmp_path / f"run-{steps}")
            run_folder(config, tmp_path / f"run-{steps}", resume=True)
            assert outcome(tmp_path / f"run-{steps}") == outcome(tmp_path / "whole")

    def test_what_was_saved_is_a_model_to_use(self, data, configure, interrupted, tmp_path):
        path = data()
        interrupted(configure(path), tmp_path / "run", 1)
        run_folder(configure(path, rounds=1), tmp_path / "short")
        pool = load(path)[0].pool
        assert np.array_equal(
            RunFolder.open(tmp_path / "run").model().scores(pool), load_model(tmp_path / "short").scores(pool)
        )

    def test_a_run_folder_may_move(self, data, configure, interrupted, outcome, tmp_path):
        config = configure(data())
        run_folder(config, tmp_path / "whole")
        interrupted(config, tmp_path / "run", 1)
        (tmp_path / "run").rename(tmp_path / "moved")
        run_folder(config, tmp_path / "moved", resume=True)
        assert outcome(tmp_path / "moved") == outcome(tmp_path / "whole")

    def test_the_data_may_move(self, data, configure, interrupted, outcome, tmp_path):
        interrupted(configure(data()), tmp_path / "run", 1)
        (tmp_path / "data.npz").unlink()
        (tmp_path / "new").mkdir()
        moved = configure(data(file="new/other.npz"))
        run_folder(moved, tmp_path / "run", resume=True)
        run_folder(moved, tmp_path / "whole")
        assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")

    def test_answers_that_came_later_do_not_matter(self, data, configure, interrupted, outcome, tmp_path):
        config = configure(data(answers=None))
        interrupted(config, tmp_path / "run", 1)
        data()
        run_folder(config, tmp_path / "run", resume=True)
        run_folder(config, tmp_path / "whole")
        assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


class TestFinished:
    @pytest.mark.parametrize("method", ["pren", "eszsl"])
    def test_resuming_a_finished_run_changes_nothing(self, method, data, configure, fingerprint, tmp_path):
        config = configure(data(), method)
        run_folder(config, tmp_path / "run")
        before = fingerprint(tmp_path / "run")
        rounds = []
        run = run_folder(config, tmp_path / "run", resume=True, on_round=lambda *_: rounds.append(1))
        assert run.finished()
        assert not rounds
        assert fingerprint(tmp_path / "run") == before

    def test_what_the_end_writes_is_written_again_if_it_is_not_there(self, data, configure, outcome, tmp_path):
        config = configure(data())
        run_folder(config, tmp_path / "run")
        expected = outcome(tmp_path / "run")
        for name in ("predictions.csv", "metrics.json"):
            (tmp_path / "run" / name).unlink()
        with refused("damaged"):
            run_folder(config, tmp_path / "run", resume=True)
        (tmp_path / "run" / "manifest.json").unlink()
        run_folder(config, tmp_path / "run", resume=True)
        assert outcome(tmp_path / "run") == expected

    @pytest.mark.parametrize(
        ("method", "name"),
        [
            ("pren", "model.safetensors"),
            ("pren", "history.csv"),
            ("eszsl", "model.safetensors"),
            ("eszsl", "predictions.csv"),
            ("eszsl", "trust.safetensors"),
        ],
    )
    def test_damage_in_place_can_be_mended_as_the_message_says(self, method, name, data, configure, outcome, tmp_path):
        config = configure(data(), method).model_copy(update={"rehearsals": 2 if method == "eszsl" else 0})
        run_folder(config, tmp_path / "run")
        expected = outcome(tmp_path / "run")
        with (tmp_path / "run" / name).open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\x55")
        with refused("damaged"):
            run_folder(config, tmp_path / "run", resume=True)
        (tmp_path / "run" / "manifest.json").unlink()
        run_folder(config, tmp_path / "run", resume=True)
        assert outcome(tmp_path / "run") == expected


@pytest.fixture(scope="module")
def stopped(arrays, configure, interrupted, tmp_path_factory):
    """Where there are data, and a run on them that was stopped after round 1."""
    root = tmp_path_factory.mktemp("stopped")
    np.savez(root / "data.npz", **arrays())
    interrupted(configure(root / "data.npz"), root / "run", 1)
    return root


@pytest.fixture
def started(stopped, configure, tmp_path):
    """The configuration and folder of a copy of it, with its data."""
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    return configure(tmp_path / "data.npz"), tmp_path / "run"


class TestRefused:
    def refuse(self, config, folder, fingerprint, refusal):
        before = fingerprint(folder)
        with refused(refusal):
            run_folder(config, folder, resume=True)
        assert fingerprint(folder) == before

    @pytest.mark.parametrize(
        ("params", "facts"),
        [
            ({"heads": 5}, "params.heads: 4, 5"),
            ({"rounds": 9}, "params.rounds: 3, 9"),
            ({"seed": 1}, "params.seed: 0, 1"),
            ({"lr": 2e-2}, "params.lr: 0.03, 0.02"),
            ({"hidden": [9]}, "params.hidden: (8,), (9,)"),
            ({"hidden": [8, 8]}, "params.hidden"),
            ({"dim": 5}, "params.dim: 4, 5"),
        ],
    )
    def test_other_parameters(self, params, facts, started, configure, fingerprint):
        config, folder = started
        self.refuse(configure(config.data, **params), folder, fingerprint, f"other-run {facts}")

    def test_another_setting(self, started, configure, fingerprint):
        config, folder = started
        self.refuse(configure(config.data, setting="gzsl"), folder, fingerprint, "other-run setting: 'zsl', 'gzsl'")

    @pytest.mark.parametrize("method", ["pren-no-projection", "eszsl"])
    def test_another_method(self, method, started, configure, fingerprint):
        config, folder = started
        self.refuse(configure(config.data, method), folder, fingerprint, f"other-run method: 'pren', '{method}'")

    def test_other_data(self, started, configure, fingerprint):
        _, folder = started
        self.refuse(configure("numbers-features"), folder, fingerprint, "other-run data: data.npz', 'numbers-features'")

    @pytest.mark.parametrize("key", ["features", "pool", "signatures"])
    def test_other_numbers_in_the_file(self, key, started, data, arrays, fingerprint):
        config, folder = started
        changed = arrays()[key].copy()
        changed.flat[3] += 1e-3
        data(**{key: changed})
        self.refuse(config, folder, fingerprint, "data-changed")

    def test_other_labels_in_the_file(self, started, data, arrays, fingerprint):
        config, folder = started
        labels = arrays()["labels"].copy()
        labels[[0, -1]] = labels[[-1, 0]]
        data(labels=labels)
        self.refuse(config, folder, fingerprint, "data-changed")

    @pytest.mark.parametrize("rows", [[0, 1], [6, 7]], ids=["seen", "unseen"])
    def test_class_names_that_changed_places(self, rows, started, data, arrays, fingerprint):
        """The same name now means another signature."""
        config, folder = started
        names = arrays()["class_names"].copy()
        names[rows] = names[rows[::-1]]
        data(class_names=names)
        self.refuse(config, folder, fingerprint, "data-changed")

    def test_a_new_name_for_a_class(self, started, data, arrays, fingerprint):
        config, folder = started
        names = arrays()["class_names"].copy()
        names[7] = "z class"
        data(class_names=names)
        self.refuse(config, folder, fingerprint, "data-changed")

    def test_no_run(self, data, configure, tmp_path):
        (tmp_path / "empty").mkdir()
        for folder in (tmp_path / "nowhere", tmp_path / "empty"):
            with refused("not-a-run"):
                run_folder(configure(data()), folder, resume=True)
        assert not (tmp_path / "nowhere").exists()
        assert list((tmp_path / "empty").iterdir()) == []

    def test_a_damaged_configuration(self, started, fingerprint):
        config, folder = started
        for content in ("", "data: [", "data: x\nmehtod: y\n", "\0"):
            (folder / "config.yaml").write_text(content)
            self.refuse(config, folder, fingerprint, "damaged config.yaml")


def _empty_training(checkpoint):
    save_file({"unrelated": torch.zeros(1)}, checkpoint / "training.safetensors")


def _without(key):
    def change(checkpoint):
        training = load_file(checkpoint / "training.safetensors")
        assert key in training
        save_file({k: v for k, v in training.items() if k != key}, checkpoint / "training.safetensors")

    change.__name__ = f"without {key}"
    return change


def _changed(key, what, function):
    def change(checkpoint):
        training = load_file(checkpoint / "training.safetensors")
        save_file({**training, key: function(training[key]).clone()}, checkpoint / "training.safetensors")

    change.__name__ = f"{key} {what}"
    return change


def _without_adam(checkpoint):
    training = load_file(checkpoint / "training.safetensors")
    assert any(key.startswith("adam.") for key in training)
    kept = {key: value for key, value in training.items() if not key.startswith("adam.")}
    save_file(kept, checkpoint / "training.safetensors")


def _truncate(name):
    def change(checkpoint):
        content = (checkpoint / name).read_bytes()
        (checkpoint / name).write_bytes(content[: len(content) // 2])

    change.__name__ = f"truncate {name}"
    return change


def _garbage(name):
    def change(checkpoint):
        (checkpoint / name).unlink()  # the model is one file with two names
        (checkpoint / name).write_bytes(b"garbage")

    change.__name__ = f"garbage {name}"
    return change


def _remove(name):
    def change(checkpoint):
        (checkpoint / name).unlink()

    change.__name__ = f"remove {name}"
    return change


def _state(content):
    def change(checkpoint):
        (checkpoint / "state.json").write_text(content)

    change.__name__ = f"state {content}"
    return change


FILES = ("model.safetensors", "training.safetensors", "state.json")
DAMAGES = [
    *(kind(name) for kind in (_truncate, _garbage, _remove) for name in FILES),
    *(_state(content) for content in ("[]", "{}", "null", '{"history": 3, "timings": []}', '{"history": [{}]}')),
    _state('{"history": [], "timings": ["x"]}'),
    _empty_training,
    _without("round.number"),
    _without("round.images"),
    _without("adam.0.exp_avg"),
    _without("adam.0.step"),
    _without_adam,
    # A fused optimiser would read beyond the end of these.
    _changed("adam.0.exp_avg", "too short", lambda value: value.flatten()[:1]),
    _changed("adam.0.exp_avg_sq", "too short", lambda value: value.flatten()[:1]),
    _changed("adam.0.step", "too long", lambda value: value.repeat(2)),
    _changed("round.number", "too long", lambda value: value.repeat(2)),
    _changed("round.images", "too short", lambda value: value[:1]),
]


@pytest.mark.slow
class TestDamage:
    @pytest.mark.parametrize("signed", [False, True], ids=["", "signed"])
    @pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
    def test_a_damaged_checkpoint_is_refused(self, damage, signed, started, fingerprint):
        """By its checksums, and were they forged, by what it says."""
        config, folder = started
        checkpoint = folder / "checkpoint" / "round-0001"
        run = RunFolder.open(folder).config().record["id"]
        damage(checkpoint)
        if signed:
            write_manifest(checkpoint, [name for name in FILES if (checkpoint / name).exists()], run)
        before = fingerprint(folder)
        with refused("damaged"):
            run_folder(config, folder, resume=True)
        assert fingerprint(folder) == before

    def test_a_damaged_checkpoint_does_not_spoil_the_model(self, started):
        config, folder = started
        shutil.rmtree(folder / "checkpoint")
        assert RunFolder(folder).model().scores(load(config.data)[0].pool).shape == (18, 8)

    @pytest.mark.parametrize("content", ["", "[]", "{", "3", "null"])
    def test_damaged_metrics_are_named(self, content, started):
        _, folder = started
        (folder / "metrics.json").write_text(content)
        with refused("damaged"):
            RunFolder(folder).figures()


class TestLeftovers:
    def test_unfinished_files_do_not_disturb(self, started, outcome, tmp_path):
        config, folder = started
        for name in ("config.yaml", "history.csv", "model.safetensors", "predictions.csv", "metrics.json", "other"):
            (folder / f".writing-{name}").write_bytes(b"half a fi")
        for name in ("round-0002", "round-0007"):
            writing = folder / "checkpoint" / f".writing-{name}"
            writing.mkdir()
            (writing / "model.safetensors").write_bytes(b"half a fi")
        run_folder(config, folder, resume=True)
        run_folder(config, tmp_path / "whole")
        found = outcome(folder)
        expected = outcome(tmp_path / "whole")
        assert {name: found[name] for name in expected} == expected
        assert not [name for name in found if name.startswith("checkpoint/.writing")]

    def test_an_older_checkpoint_does_not_disturb(self, started, outcome, tmp_path):
        config, folder = started
        older = folder / "checkpoint" / "round-0000"
        shutil.copytree(folder / "checkpoint" / "round-0001", older)
        (older / "state.json").unlink()  # half removed
        run_folder(config, folder, resume=True)
        run_folder(config, tmp_path / "whole")
        assert outcome(folder) == outcome(tmp_path / "whole")

    def test_a_run_killed_before_it_had_a_configuration_can_start_anew(self, data, configure, tmp_path):
        config = configure(data())
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / ".writing-config.yaml").write_bytes(b"half a fi")
        assert run_folder(config, tmp_path / "run").finished()


class Killed(BaseException):
    """The power went: nothing catches it, nothing is tidied up."""


class _Killer:
    """Counts what a run does to the file system and ends it before the n-th deed.

    An audit hook hears of every deed, whoever does it; it cannot be removed, so it is off unless armed.
    """

    DEEDS = ("os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree")

    def __init__(self):
        self.folder = None
        self.limit = 0
        self.deeds = []

    def __call__(self, event, args):
        if self.folder is None:
            return
        if event == "open":
            path, mode, flags = args
            writes = any(letter in (mode or "") for letter in "wax+") or (flags or 0) & (os.O_WRONLY | os.O_RDWR)
            if not writes or not str(path).startswith(self.folder):
                return
        elif event not in self.DEEDS:
            return
        self.deeds.append(f"{event} {args[0]}")
        if len(self.deeds) >= self.limit:
            raise Killed  # and again at every later deed: the dead tidy nothing up

    def run(self, folder, limit, action):
        """Perform an action up to its `limit`-th deed. True if it came to its end."""
        self.folder, self.limit, self.deeds = str(folder), limit, []
        try:
            action()
        except Killed:
            return False
        finally:
            self.folder = None
        return True


_killer = _Killer()


@pytest.fixture(scope="module")
def killer():
    if not hasattr(_killer, "hooked"):
        sys.addaudithook(_killer)
        _killer.hooked = True
    return _killer


class TestKilled:
    """The process may end at any moment, between any two deeds on the disk."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("method", "models"), [("pren", 2), ("eszsl", 1)])
    def test_at_any_moment(self, method, models, killer, data, configure, outcome, tmp_path):
        """It ends as if nobody had killed it; and a model that is there meanwhile is that of a whole round."""
        params = {"rounds": 1} if method == "pren" else {}
        config = configure(data(), method, **params).model_copy(update={"rehearsals": 2})
        whole, out, pool = tmp_path / "whole", tmp_path / "run", load(config.data)[0].pool
        assert killer.run(whole, float("inf"), lambda: run_folder(config, whole))
        expected, moments = outcome(whole), len(killer.deeds)
        assert moments > 8
        wrong, seen = [], set()
        for moment in range(1, moments + 1):
            finished = killer.run(out, moment, lambda: run_folder(config, out))
            assert not finished
            if (out / "model.safetensors").exists():
                seen.add(load_model(out).scores(pool).tobytes())
            if not (out / "config.yaml").exists():  # it never began; see the leftovers above
                shutil.rmtree(out, ignore_errors=True)
                continue
            try:
                run_folder(config, out, resume=True)
                after = {name: content for name, content in outcome(out).items() if ".writing-" not in name}
                different = sorted(name for name in expected if after.get(name) != expected[name])
                problem = f"differs in {different}" if different else None
            except PrenError as error:
                problem = f"cannot be resumed: {error}"
            if problem:
                wrong.append(f"killed before deed {moment} ({killer.deeds[moment - 1]}): {problem}")
            shutil.rmtree(out)
        assert not wrong, "\n".join(wrong)
        assert len(seen) == models


def _interrupt(*_, **__):
    raise KeyboardInterrupt


def _interrupt_after(steps):
    original, count = torch.optim.Adam.step, 0

    def step(self, *args, **kwargs):
        nonlocal count
        count += 1
        if count > steps:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    return step


def test_a_checkpoint_knows_its_rounds(started):
    _, folder = started
    state = json.loads((folder / "checkpoint" / "round-0001" / "state.json").read_text())
    assert [row["round"] for row in state["history"]] == [0, 1]
    assert RunFolder.open(folder).history() == state["history"]
    assert len(state["timings"]) == 2
