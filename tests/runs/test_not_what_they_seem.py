"""Run folders that are not what they seem: refused by name, or read exactly as if nothing were; and never touched."""

import datetime
import hashlib
import json
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
import yaml
from refusals import refused
from run_folders import run_folder
from safetensors.torch import load_file, save_file

from pren.foundation.errors import PrenError
from pren.methods.storage import FORMAT as MODEL_FORMAT
from pren.methods.storage import read_model, write_model
from pren.runs.reopening import evaluate_run, load_state
from pren.store.folder import RunFolder
from pren.store.manifest import FORMAT, with_checksum

pytestmark = pytest.mark.slow

ROUND = {"finished": "checkpoint/round-0002", "interrupted": "checkpoint/round-0001"}
INSIDE = ("model.safetensors", "training.safetensors", "state.json", "manifest.json")
TABLES = ("history.csv", "timings.csv", "pseudo_labels.csv")
SHOWN = (*TABLES, "model.safetensors")  # an unfinished run writes these anew, and reads the checkpoint only
FILES = [
    ("finished", name) for name in ("config.yaml", "model.safetensors", "predictions.csv", "metrics.json", *TABLES)
]
FILES += [("finished", "manifest.json"), ("interrupted", "config.yaml"), ("interrupted", "model.safetensors")]
FILES += [("interrupted", name) for name in TABLES]
FILES += [(state, f"{ROUND[state]}/{name}") for state in ROUND for name in INSIDE]


def content_of(folder):
    """Everything in a folder, with its times, as it is: links are not followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        what = path.readlink() if path.is_symlink() else path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        found[path.relative_to(folder).as_posix()] = (status.st_mode, status.st_mtime_ns, what)
    return found


def seal(folder):
    """Make all checksums right again: only what the content says can give it away now."""
    for path in folder.rglob("manifest.json"):
        manifest = json.loads(path.read_text())
        for name, entry in manifest["files"].items():
            content = (path.parent / name).read_bytes()
            entry |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        path.write_text(json.dumps(manifest))


def readings_of(folder, config):
    """What every way to read a run finds, or the error it raises."""

    def summary():
        found = load_state(folder).to_dict()
        return {key: value for key, value in found.items() if key not in ("run", "model", "predictions")}  # paths

    def checkpoint():
        found = RunFolder.open(folder).checkpoint()
        tensors = {name: (tensor.shape, tensor.numpy().tobytes()) for name, tensor in found.training.items()}
        return tensors, found.method.scores(pool).tobytes(), found.state

    def scores():
        return RunFolder.open(folder).model().scores(pool).tobytes()

    pool, found = config.load_data()[0].pool, {}
    for action in (summary, checkpoint, scores, lambda: evaluate_run(RunFolder.open(folder))):
        found[action.__name__] = _result_or_error(action)
    return found


def _result_or_error(action):
    try:
        return action()
    except PrenError as error:
        return error


class Runs:
    """A finished run and an interrupted one, what there is to read in them and what they come to."""

    def __init__(self, config, root, outcome):
        self.config, self.root, self.outcome = config, root, outcome
        self.expected = {state: readings_of(root / state, config) for state in ROUND}
        self.end = self.results(root / "finished")
        assert not [
            value for found in self.expected.values() for value in found.values() if isinstance(value, Exception)
        ]

    def results(self, folder):
        return {k: v for k, v in self.outcome(folder).items() if not k.endswith("manifest.json")}

    def check(self, state, folder, name, match=None, also=()):
        """See that a changed folder is refused, naming the file, or read as if nothing were; return the errors."""
        before, errors = content_of(folder), []
        for action, found in readings_of(folder, self.config).items():
            if isinstance(found, PrenError):
                errors.append(str(found))
            else:
                assert found == self.expected[state][action], f"{action} takes {name} for good"
        assert content_of(folder) == before
        try:
            run_folder(self.config, folder, resume=True)
        except PrenError as error:
            errors.append(str(error))
            assert content_of(folder) == before
        else:
            if state == "interrupted":
                assert {k: v for k, v in self.results(folder).items() if k not in also} == self.end
        for message in errors:
            # A flipped bit may be that of another file's checksum, which is then the one to be named.
            named = Path(name).name in message or (name.endswith("manifest.json") and "checksum differs" in message)
            assert named or "another run" in message
            assert len(message.splitlines()) == 1
            assert len(message) < 1500
        if match is not None:
            assert any(match in message for message in errors), errors
        return errors


@pytest.fixture(scope="module")
def runs(arrays, configure, interrupted, outcome, tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    np.savez(root / "data.npz", **arrays())
    config = configure(root / "data.npz", rounds=2)
    run_folder(config, root / "finished")
    interrupted(config, root / "interrupted", 1)
    return Runs(config, root, outcome)


@pytest.fixture
def copy(runs, tmp_path):
    """A fresh copy of one of the runs."""

    def make(state):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(runs.root / state, tmp_path / "run")
        return tmp_path / "run"

    return make


def is_guarded(state, name):
    return state == "finished" or name not in SHOWN


def test_these_are_all_the_files(runs):
    for state in ROUND:
        found = {path.relative_to(runs.root / state).as_posix() for path in (runs.root / state).rglob("*.*")}
        assert found == {name for which, name in FILES if which == state}


@pytest.mark.parametrize(("state", "name"), FILES)
class TestEveryFile:
    def test_truncated(self, state, name, runs, copy):
        size = (runs.root / state / name).stat().st_size
        for length in (0, size - 2):
            folder = copy(state)
            os.truncate(folder / name, length)
            assert runs.check(state, folder, name) or not is_guarded(state, name), f"at {length}"

    def test_with_a_bit_flipped(self, state, name, runs, copy):
        folder = copy(state)
        content = (folder / name).read_bytes()
        rng = np.random.default_rng(0)
        refused = 0
        for place in rng.integers(len(content), size=4):
            changed = bytearray(content)
            changed[place] ^= 1 << int(rng.integers(8))
            (folder / name).write_bytes(changed)
            refused += bool(runs.check(state, folder, name))
            if state == "interrupted":  # it may have been finished
                folder = copy(state)
        assert refused == 0 if not is_guarded(state, name) else refused >= (1 if "manifest" in name else 4)

    def test_missing(self, state, name, runs, copy):
        folder = copy(state)
        (folder / name).unlink()
        if name == "manifest.json":  # which is written last: without it the run is unfinished, and its end comes again
            run_folder(runs.config, folder, resume=True)
            assert runs.results(folder) == runs.end
            return
        errors = runs.check(state, folder, name)
        assert errors or not is_guarded(state, name)

    @pytest.mark.parametrize("kind", ["folder", "pipe", "link inside", "link out", "link to nowhere"])
    def test_replaced_by(self, kind, state, name, runs, copy, tmp_path):
        folder = copy(state)
        outside = tmp_path / "outside"
        (folder / name).rename(outside)
        if kind == "folder":
            (folder / name).mkdir()
        elif kind == "pipe":
            os.mkfifo(folder / name)
        elif kind == "link inside":
            shutil.copy(outside, folder / "copy")
            (folder / name).symlink_to(folder / "copy")
        else:
            (folder / name).symlink_to(outside if kind == "link out" else tmp_path / "nowhere")
        before = outside.read_bytes(), outside.stat().st_mtime_ns
        if kind == "folder" and state == "interrupted" and name in SHOWN:
            with refused("write-failed"):
                run_folder(runs.config, folder, resume=True)
            return
        errors = runs.check(state, folder, name, also=("copy",))
        assert errors or not is_guarded(state, name)
        assert not kind.startswith("link ") or kind == "link inside" or len(errors) == 5
        assert (outside.read_bytes(), outside.stat().st_mtime_ns) == before


class TestFolders:
    @pytest.mark.parametrize("state", ROUND)
    @pytest.mark.parametrize("place", ["checkpoint", "the round"])
    @pytest.mark.parametrize("out", [True, False])
    def test_a_checkpoint_behind_a_link(self, out, place, state, runs, copy, tmp_path):
        folder = copy(state)
        name = "checkpoint" if place == "checkpoint" else ROUND[state]
        target = tmp_path / "outside" if out else folder / "moved"
        (folder / name).rename(target)
        (folder / name).symlink_to(target)
        before = content_of(target)
        if out:
            assert len(runs.check(state, folder, name, "is a link that leads out of")) == 5
            assert content_of(target) == before
        else:
            assert not [found for found in readings_of(folder, runs.config).values() if isinstance(found, PrenError)]
            run_folder(runs.config, folder, resume=True)
            assert (folder / "predictions.csv").read_bytes() == runs.end["predictions.csv"]

    @pytest.mark.parametrize("kind", ["file", "pipe"])
    def test_something_else_in_place_of_the_checkpoints(self, kind, runs, copy):
        folder = copy("interrupted")
        shutil.rmtree(folder / "checkpoint")
        (folder / "checkpoint").touch() if kind == "file" else os.mkfifo(folder / "checkpoint")
        runs.check("interrupted", folder, "checkpoint", "is not a folder")

    def test_unfinished_files_that_are_links(self, runs, copy, tmp_path):
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "precious").write_text("precious")
        before = content_of(tmp_path / "outside")
        for place in (".writing-model.safetensors", "checkpoint/.writing-round-0002"):
            folder = copy("interrupted")
            (folder / place).symlink_to(tmp_path / "outside")
            assert len(runs.check("interrupted", folder, place, "leads out of")) == 5
        assert content_of(tmp_path / "outside") == before

    def test_links_that_come_while_a_run_is_going_on(self, runs, tmp_path):
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "precious").write_text("precious")
        before, out = content_of(tmp_path / "outside"), tmp_path / "run"

        def plant(done, method):
            for name in ("history.csv", "model.safetensors", "predictions.csv", "manifest.json", "other"):
                (out / f".writing-{name}").symlink_to(tmp_path / "outside" / "precious")
            (out / "checkpoint" / f".writing-round-{done.number + 1:04d}").symlink_to(tmp_path / "outside")
            for name in ("history.csv", "model.safetensors"):
                (out / name).unlink()
                (out / name).symlink_to(tmp_path / "outside" / "precious")

        with refused("write-failed"):
            run_folder(runs.config, out, on_round=plant)
        assert content_of(tmp_path / "outside") == before


@pytest.fixture(scope="module", params=["seed", "data", "method"])
def other(request, runs, arrays, configure, interrupted, tmp_path_factory):
    """Runs of another seed, of other data and of another method, finished and interrupted."""
    root = tmp_path_factory.mktemp("other")
    np.savez(root / "data.npz", **arrays(seed=1))
    path = root / "data.npz" if request.param == "data" else runs.config.data
    method = "pren-no-projection" if request.param == "method" else "pren"
    config = configure(path, method, rounds=2, seed=1 if request.param == "seed" else 0)
    run_folder(config, root / "finished")
    interrupted(config, root / "interrupted", 1)
    return root


class TestOfAnotherRun:
    @pytest.mark.parametrize(("state", "name"), [pair for pair in FILES if pair[1] not in TABLES])
    def test_a_file(self, state, name, runs, other, copy):
        folder = copy(state)
        shutil.copy(other / state / name, folder / name)
        readings = readings_of(folder, runs.config)
        errors = [str(found) for found in readings.values() if isinstance(found, PrenError)]
        same = (folder / name).read_bytes() == (runs.root / state / name).read_bytes()
        assert same or errors or (state, name) == ("interrupted", "config.yaml") or not is_guarded(state, name)
        if not is_guarded(state, name):
            assert readings == runs.expected[state]
        before = content_of(folder)
        if name == "config.yaml" or (state == "interrupted" and "checkpoint" in name):
            with pytest.raises(PrenError) as error:
                run_folder(runs.config, folder, resume=True)
            assert error.value.code in ("other-run", "data-changed", "damaged")
            assert content_of(folder) == before

    @pytest.mark.parametrize("state", ROUND)
    def test_a_whole_checkpoint(self, state, runs, other, copy):
        folder = copy(state)
        shutil.rmtree(folder / "checkpoint")
        shutil.copytree(other / state / "checkpoint", folder / "checkpoint")
        runs.check(state, folder, "checkpoint", "belongs to another run")


def _state(**changed):
    return "state.json", lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


def _row(**changed):
    def change(path):
        state = json.loads(path.read_text())
        state["history"][1] |= changed
        path.write_text(json.dumps(state))

    return "state.json", change


def _training(name, function):
    def change(path):
        tensors = load_file(path)
        save_file({**tensors, name: function(tensors[name]).contiguous()}, path)

    return "training.safetensors", change


def _facts(**changed):
    def change(path):
        tensors, facts = read_model(path)
        write_model(path, tensors, {**facts, **changed})

    return "model.safetensors", change


INVALID = [
    _state(history=[]),
    _state(history=3),
    _state(timings=[float("nan")]),
    _state(pseudo_labels=[["x", 1]]),
    _state(more=1),
    _row(loss=float("inf")),
    _row(round=7),
    _row(round="1"),
    _row(changed={}),
    _training("round.number", lambda value: value + 100),
    _training("round.number", lambda value: value.repeat(2)),
    _training("round.images", lambda value: value[:1]),
    _training("round.images", lambda value: value.double()),
    _training("adam.0.step", lambda value: value.double()),
    _training("adam.0.exp_avg", lambda value: value.long()),
    _training("adam.0.exp_avg", lambda value: value.flatten()[:1]),
    _facts(sample_shape=[10**12]),
    _facts(sample_shape=[300]),
    _facts(sample_shape=[]),
    _facts(params={"heads": "many"}),
    _facts(method="os.system"),
    _facts(class_names=["a"]),
    _facts(format=MODEL_FORMAT + 1),
]


class TestSealed:
    """All checksums are right, but no run writes this."""

    @pytest.mark.parametrize("place", range(len(INVALID)))
    def test_a_checkpoint(self, place, runs, copy):
        folder = copy("interrupted")
        name, change = INVALID[place]
        change(folder / ROUND["interrupted"] / name)
        seal(folder)
        before = content_of(folder)
        with pytest.raises(PrenError) as error:
            run_folder(runs.config, folder, resume=True)
        assert error.value.code in ("damaged", "format-other")
        assert content_of(folder) == before

    @pytest.mark.parametrize(
        "change",
        [
            {"format": FORMAT + 1},
            {"format": FORMAT - 1},
            {"more": 1},
            {"files": {}},
            {"run": "0"},
            {"files": {"../x": {}}},
        ],
    )
    @pytest.mark.parametrize("state", ROUND)
    def test_a_manifest(self, state, change, runs, copy):
        folder = copy(state)
        path = folder / ("manifest.json" if state == "finished" else f"{ROUND[state]}/manifest.json")
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
        assert runs.check(state, folder, "manifest.json")

    @pytest.mark.parametrize(
        "change",
        [
            {"format": FORMAT + 1},
            {"format": FORMAT - 1},
            {"format": str(FORMAT)},
            {"more": 1},
            {"params": []},
            {"data": None},
            {"record": {"started": datetime.date(2026, 1, 1)}},
            {"record": {"id": float("nan")}},
            {"record": []},
        ],
        ids=str,
    )
    def test_a_configuration(self, change, runs, copy):
        folder = copy("interrupted")
        mapping = yaml.safe_load((folder / "config.yaml").read_text())
        (folder / "config.yaml").write_bytes(with_checksum(yaml.safe_dump({**mapping, **change}).encode()))
        assert len(runs.check("interrupted", folder, "config.yaml")) == 5
