"""Folders of the format before this one: refused with the way out, and brought up to date without being touched."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors import safe_open
from safetensors.torch import load_file

from pren.cli import __main__ as command_line
from pren.errors import PrenError
from pren.methods.storage import MODEL_FILE, load_model, read_model, write_model
from pren.runs import migrate as migration
from pren.runs.folder import RunFolder
from pren.runs.manifest import MANIFEST
from pren.runs.migrate import migrate
from pren.runs.train import evaluate_run, train

OLD = Path(__file__).parent / "format_1"
SAME = (MODEL_FILE, "history.csv", "pseudo_labels.csv", "predictions.csv", "metrics.json")


@pytest.fixture(params=["finished", "interrupted"])
def old(request, tmp_path):
    """A copy of a real folder of format 1."""
    shutil.copytree(OLD / request.param, tmp_path / "old")
    return tmp_path / "old"


def test_metrics_from_before_there_was_ausuc_are_read():
    assert "ausuc" not in json.loads((OLD / "finished" / "metrics.json").read_text())
    assert RunFolder(OLD / "finished").metrics()["images"] > 0


@pytest.fixture
def finished(tmp_path):
    shutil.copytree(OLD / "finished", tmp_path / "old")
    return tmp_path / "old"


@pytest.fixture
def refused(fingerprint, tmp_path):
    """See that a folder is not migrated, that neither it nor anything else changes, and return why."""

    def check(folder, target=None, match=r"."):
        before = fingerprint(tmp_path)
        with pytest.raises(PrenError, match=match) as error:
            migrate(folder, target or tmp_path / "new")
        assert fingerprint(tmp_path) == before
        assert ".writing-" not in str(error.value)
        return str(error.value)

    return check


@pytest.fixture
def pren(monkeypatch, capsys, tmp_path):
    """Run ``pren`` with arguments, in this process: its exit code, and what it printed and complained of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pren", *map(str, arguments)])
        try:
            command_line.main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        return code, *capsys.readouterr()

    return run


class TestOldFolders:
    def test_every_command_names_the_way_out(self, old, pren, fingerprint, tmp_path):
        np.save(tmp_path / "inputs.npy", np.zeros((2, 512), dtype=np.float32))
        before = fingerprint(tmp_path)
        for command in (
            ["show", old],
            ["evaluate", old],
            ["predict", old, "inputs.npy", "--out", "labels.csv"],
            ["fit", "--resume", "--out", old],
            ["fit", "numbers-features", "--resume", "--out", old],
        ):
            code, out, told = pren(*command)
            assert (code, out) == (2, ""), command
            assert "config.yaml was written by an older version of pren (format 1" in told
            assert "pren migrate FOLDER --out NEW" in told
            assert len(told.splitlines()) == 1
        assert fingerprint(tmp_path) == before

    def test_a_model_on_its_own_does_too(self, finished):
        with pytest.raises(PrenError, match=r"model\.safetensors was written by another version.*pren migrate"):
            load_model(finished)


class TestMigrated:
    def test_it_opens_and_evaluates_and_the_old_one_is_untouched(self, old, pren, fingerprint, tmp_path):
        before = fingerprint(old)
        code, out, told = pren("migrate", old, "--out", "new")
        assert (code, out, told) == (0, "Migrated to new.\n", "")
        assert fingerprint(old) == before
        run = RunFolder.open(tmp_path / "new")
        assert run.finished() == (old / "predictions.csv").exists()
        assert "accelerator" not in run.config().params
        assert run.checkpoint().state.history == run.history()
        assert len(run.history()) == (3 if run.finished() else 2)
        assert evaluate_run(run)["setting"] == "zsl"
        assert "accelerator" in yaml.safe_load((old / "config.yaml").read_text())["params"]
        for name in SAME[1:]:
            assert (old / name).exists() == (tmp_path / "new" / name).exists()
            assert not (old / name).exists() or (old / name).read_bytes() == (tmp_path / "new" / name).read_bytes()
        ours, theirs = load_file(tmp_path / "new" / MODEL_FILE), load_file(old / MODEL_FILE)
        assert ours.keys() == theirs.keys()
        assert all(ours[name].equal(theirs[name]) for name in ours)

    def test_a_run_that_goes_on_after_it_ends_as_it_would_have(self, tmp_path):
        finished = RunFolder.open(migrate(OLD / "finished", tmp_path / "finished"))
        resumed = RunFolder.open(migrate(OLD / "interrupted", tmp_path / "resumed"))
        assert not resumed.finished()
        rounds = []
        train(resumed.config(), resumed.path, resume=True, on_round=lambda done, _: rounds.append(done.number))
        assert rounds == [2]
        for name in SAME[1:]:
            after = (
                (resumed.path / name).read_bytes().replace(b'  "ausuc": null,\n', b"")
            )  # which format 1 did not have
            assert after == (finished.path / name).read_bytes(), name
        ours, theirs = load_file(resumed.path / MODEL_FILE), load_file(finished.path / MODEL_FILE)
        assert all(ours[name].equal(theirs[name]) for name in theirs)
        assert resumed.history() == finished.history()
        assert evaluate_run(resumed) == evaluate_run(finished)

    def test_a_finished_one_is_not_run_again(self, tmp_path, fingerprint):
        run = RunFolder.open(migrate(OLD / "finished", tmp_path / "new"))
        before = fingerprint(run.path)
        assert train(run.config(), run.path, resume=True, on_round=lambda *_: pytest.fail("a round")).finished()
        assert fingerprint(run.path) == before

    def test_a_model_on_its_own(self, tmp_path, fingerprint):
        (tmp_path / "old").mkdir()
        shutil.copy(OLD / "finished" / MODEL_FILE, tmp_path / "old")
        before = fingerprint(tmp_path / "old")
        new = migrate(tmp_path / "old", tmp_path / "deeper" / "new")
        assert [path.name for path in new.iterdir()] == [MODEL_FILE]
        rows = np.random.default_rng(0).normal(size=(3, 512)).astype(np.float32)
        whole = load_model(migrate(OLD / "finished", tmp_path / "whole"))
        assert np.array_equal(load_model(new).scores(rows), whole.scores(rows))
        assert fingerprint(tmp_path / "old") == before

    def test_what_a_writer_has_left_does_not_come_along(self, finished, tmp_path):
        (finished / ".lock").write_text("left")
        (finished / "checkpoint" / ".writing-round-0003").mkdir()
        new = migrate(finished, tmp_path / "new")
        assert not [path for path in new.rglob("*") if path.name.startswith(".")]


class TestRefused:
    def test_a_target_that_is_there(self, old, refused, tmp_path):
        (tmp_path / "new").mkdir()
        assert "choose another folder with --out" in refused(old, match="is there already")
        assert "is there already" in refused(old, target=old)

    def test_a_target_within_the_old_folder(self, old, refused):
        refused(old, target=old / "new", match="stays as it is")
        refused(old, target=old / "deep" / "new", match="stays as it is")

    def test_nothing_to_migrate(self, refused, tmp_path):
        (tmp_path / "empty").mkdir()
        for folder in (tmp_path / "empty", tmp_path / "nowhere"):
            refused(folder, match="neither a run nor a model")

    def test_what_is_up_to_date(self, old, refused, tmp_path):
        refused(migrate(old, tmp_path / "once"), target=tmp_path / "twice", match="format 2.*nothing to do")
        (tmp_path / "model").mkdir()
        shutil.copy(tmp_path / "once" / MODEL_FILE, tmp_path / "model")
        refused(tmp_path / "model", match="nothing to do")

    @pytest.mark.parametrize(("number", "match"), [(3, "upgrade pren"), (0, "format 0"), ("'1'", "format '1'")])
    def test_other_formats(self, number, match, old, refused):
        with (old / "config.yaml").open("a") as file:
            file.write(f"format: {number}\n")
        refused(old, match=match)

    @pytest.mark.parametrize("place", [MODEL_FILE, f"checkpoint/round-0002/{MODEL_FILE}"])
    @pytest.mark.parametrize("length", [0, 7, 100, 20_000, -1])
    def test_a_truncated_model(self, place, length, finished, refused):
        (finished / place).write_bytes((finished / place).read_bytes()[:length])
        refused(finished, match=r"model\.safetensors is damaged")

    @pytest.mark.parametrize("name", ["model.safetensors", "training.safetensors", "state.json"])
    def test_a_checkpoint_that_lacks_a_file(self, name, finished, refused):
        (finished / "checkpoint" / "round-0002" / name).unlink()
        refused(finished, match=f"{name} is missing")

    @pytest.mark.parametrize("content", ["{}", "[", '{"history": [], "timings": [], "pseudo_labels": []}'])
    def test_a_damaged_state(self, content, finished, refused):
        (finished / "checkpoint" / "round-0002" / "state.json").write_text(content)
        refused(finished, match=r"The checkpoint .*round-0002 is damaged")

    def test_damaged_training(self, finished, refused):
        (finished / "checkpoint" / "round-0002" / "training.safetensors").write_bytes(b"garbage")
        refused(finished, match=r"The checkpoint .*round-0002 is damaged")

    @pytest.mark.parametrize(
        "change",
        [
            {"params": ["accelerator"]},
            {"params": None},
            {"method": "os.system"},
            {"class_names": ["a"]},
            {"sample_shape": [10**12]},
            {"learned": {}},
            {"more": 1},
        ],
        ids=str,
    )
    def test_facts_that_are_none(self, change, finished, refused):
        tensors, facts = read_model(finished / MODEL_FILE)
        write_model(finished / MODEL_FILE, tensors, {**facts, **change})
        refused(finished, match=r"model\.safetensors is damaged")

    @pytest.mark.parametrize(
        "content",
        [
            "",
            "- a list",
            "data: !!python/object/apply:os.mkdir [canary]",
            "data: [",
            "data: numbers-features\nparams: 3",
            "data: numbers-features\nmehtod: pren",
            "params: {}",
            "data: numbers-features\nparams: &a [*a]",
            "\0",
        ],
        ids=range(9),
    )
    def test_a_hostile_configuration(self, content, finished, refused, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        (finished / "config.yaml").write_text(content)
        refused(finished, match=r"config\.yaml")

    @pytest.mark.parametrize("place", ["stray", MODEL_FILE, "config.yaml", "checkpoint"])
    def test_a_link_out_of_the_folder(self, place, finished, refused, tmp_path):
        outside = tmp_path / "outside"
        if (finished / place).exists():
            (finished / place).rename(outside)
        else:
            outside.write_text("precious")
        (finished / place).symlink_to(outside)
        refused(finished, match=rf"{place} is a link that leads out of")

    def test_a_link_to_its_own_parent_is_not_followed_for_ever(self, finished, tmp_path):
        for name in ("one", "two", "three"):
            (finished / "checkpoint" / name).symlink_to("..")
        new = migrate(finished, tmp_path / "new")
        assert (new / "checkpoint" / "one").is_symlink()

    def test_a_model_behind_a_link(self, finished, refused):
        (finished / MODEL_FILE).unlink()
        (finished / MODEL_FILE).symlink_to(f"checkpoint/round-0002/{MODEL_FILE}")
        refused(finished, match="not an ordinary file")


@pytest.mark.parametrize("where", ["write_manifest", "_read_back", "write_model", "write_bytes", "parse_config"])
@pytest.mark.parametrize("error", [PrenError, OSError, KeyboardInterrupt])
def test_an_interrupted_migration_leaves_no_target(where, error, finished, fingerprint, monkeypatch, tmp_path):
    before = fingerprint(tmp_path)

    def fail(*_):
        raise error("in the middle")

    with monkeypatch.context() as patch:
        patch.setattr(migration, where, fail)
        with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else PrenError, match="in the middle"):
            migrate(finished, tmp_path / "new")
    assert fingerprint(tmp_path) == before
    assert (migrate(finished, tmp_path / "new") / MANIFEST).is_file()


def test_the_folders_here_are_of_format_1():
    for name in ("finished", "interrupted"):
        assert "format" not in yaml.safe_load((OLD / name / "config.yaml").read_text())
        assert not list((OLD / name).rglob(MANIFEST))
        with safe_open(OLD / name / MODEL_FILE, framework="pt") as file:
            assert '"format":1' in file.metadata()["pren"].replace(" ", "")
