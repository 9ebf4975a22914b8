"""Disks that fill up or close, folders that vanish: what was finished stays whole, and the run goes on from it."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refused
from run_folders import run_folder

from pren.cli import __main__ as command_line
from pren.foundation.errors import PrenError
from pren.runs import run as running
from pren.store.config import RunConfig
from pren.store.folder import RunFolder

pytestmark = pytest.mark.slow

WHAT_TO_DO = "--resume|start again|choose another|Choose another"


@pytest.fixture
def results(outcome):
    """What a run came to, without the checksums (they cover its times too) and the lock file of a dead process."""
    return lambda folder: {k: v for k, v in outcome(folder).items() if not k.endswith(("manifest.json", ".lock"))}


@pytest.fixture
def config(data, configure):
    return configure(data(), rounds=2)


@pytest.fixture
def whole(config, results, tmp_path):
    """What the run comes to if nothing happens."""
    run_folder(config, tmp_path / "whole")
    return results(tmp_path / "whole")


@pytest.fixture
def goes_on(config, whole, results, tmp_path):
    """See that a run is intact and comes to the same end: in its place, and as a copy elsewhere with the data moved."""

    def check(folder):
        copy, moved = tmp_path / "elsewhere" / "copy", tmp_path / "elsewhere" / "moved.npz"
        shutil.rmtree(copy.parent, ignore_errors=True)
        shutil.copytree(folder, copy)
        shutil.copyfile(config.data, moved)
        RunFolder.open(folder).checkpoint()  # which verifies what it reads
        run_folder(config, folder, resume=True)
        assert results(folder) == whole
        run_folder(config.model_copy(update={"data": str(moved)}), copy, resume=True)
        assert results(copy) == whole

    return check


@pytest.mark.slow
class TestEveryWrite:
    """No write may fail in a way that loses what the writes before it have done."""

    DEEDS = ((os, "replace"), (os, "rename"), (os, "link"), (os, "fsync"), (os, "mkdir"), (os, "unlink"))
    DEEDS += ((Path, "write_bytes"), (os, "pwrite"), (os, "rmdir"))

    def count_and_fail(self, patch, limit, number):
        """Have the `limit`-th deed fail, and all later ones too: a disk stays full."""
        done = []

        def failing(name, original):
            def deed(*args, **kwargs):
                done.append(name)
                if len(done) >= limit and name not in ("unlink", "rmdir"):
                    raise OSError(number, os.strerror(number), str(args[0]))
                if len(done) == limit:  # removing may fail once, as on a disk with an error
                    raise OSError(errno.EIO, os.strerror(errno.EIO), str(args[0]))
                return original(*args, **kwargs)

            return deed

        for where, name in self.DEEDS:
            patch.setattr(where, name, failing(name, getattr(where, name)))
        return done

    @pytest.mark.parametrize("method", ["pren", "eszsl"])
    def test_may_find_the_disk_full(self, method, data, configure, results, monkeypatch, tmp_path):
        params = {"rounds": 1, "initial_batches": 1, "batches": 1} if method == "pren" else {}
        config = configure(data(), method, **params).model_copy(update={"rehearsals": 2})
        with monkeypatch.context() as patch:
            done = self.count_and_fail(patch, 10**9, errno.ENOSPC)
            run_folder(config, tmp_path / "whole")
        expected, deeds, wrong = results(tmp_path / "whole"), list(done), []
        assert {"replace", "fsync", "mkdir", "unlink", "write_bytes", "pwrite"} <= set(deeds)
        for limit in range(1, len(deeds) + 1):
            out = tmp_path / "run"
            with monkeypatch.context() as patch:
                done = self.count_and_fail(patch, limit, errno.ENOSPC)
                problem = self.attempt(config, out)
            if problem is None and not RunFolder(out).finished():
                resume = RunFolder(out).holds_run()
                run_folder(config, out, resume=resume)
            if problem is None and results(out) != expected:
                problem = "comes to another end"
            if problem:
                wrong.append(f"{limit}: {deeds[limit - 1]}: {problem}")
            shutil.rmtree(out, ignore_errors=True)
        assert not wrong, "\n".join(wrong)

    def attempt(self, config, out):
        """What is wrong with how a run ends in trouble, None if nothing is."""
        try:
            run_folder(config, out)
        except PrenError as error:
            advised = any(words in str(error) for words in WHAT_TO_DO.split("|"))
            return None if advised else f"does not say what to do: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None if RunFolder(out).finished() else "claims to have succeeded"


class TestTheFolder:
    """What others do to the run folder while the run goes on."""

    @pytest.fixture(params=[0, 1, 2])
    def disturbed(self, request, config, tmp_path):
        """Run, and do something to the folder after a round; return the message."""

        def run(disturb):
            def on_round(done, method):
                if done.number == request.param:
                    disturb(tmp_path / "run")

            with refused("run-lost") as error:
                run_folder(config, tmp_path / "run", on_round=on_round)
            return str(error.value)

        return run

    def test_is_removed(self, disturbed, tmp_path):
        assert "start again" in disturbed(shutil.rmtree)
        assert not (tmp_path / "run").exists()

    def test_is_renamed_and_goes_on_under_its_new_name(self, disturbed, goes_on, tmp_path):
        message = disturbed(lambda folder: folder.rename(tmp_path / "new name"))
        assert "'pren fit --resume'" in message
        assert not (tmp_path / "run").exists()
        goes_on(tmp_path / "new name")

    def test_is_replaced_by_another_run_which_stays_untouched(
        self, disturbed, configure, config, interrupted, fingerprint, goes_on, tmp_path
    ):
        interrupted(configure(config.data, seed=1), tmp_path / "other", 0)
        before = fingerprint(tmp_path / "other")

        def replace(folder):
            folder.rename(tmp_path / "moved")
            (tmp_path / "other").rename(folder)

        disturbed(replace)
        assert fingerprint(tmp_path / "run") == before
        goes_on(tmp_path / "moved")

    def test_is_replaced_by_a_copy_which_stays_untouched(self, disturbed, fingerprint, goes_on, tmp_path):
        seen = {}

        def replace(folder):
            folder.rename(tmp_path / "moved")
            shutil.copytree(tmp_path / "moved", folder)
            seen.update(fingerprint(folder))

        disturbed(replace)
        assert fingerprint(tmp_path / "run") == seen
        goes_on(tmp_path / "run")

    def test_belongs_to_a_run_that_has_only_begun(self, config, monkeypatch, tmp_path):
        """Ours fails before its first round: the other's configuration is not ours to remove."""

        def fail(*_):
            (tmp_path / "run").rename(tmp_path / "moved")
            (tmp_path / "run").mkdir()
            for name in ("config.yaml", ".lock"):
                (tmp_path / "run" / name).write_text("another's")
            raise PrenError("planted", "no luck")

        monkeypatch.setattr(running, "train", fail)
        with refused("planted"):
            run_folder(config, tmp_path / "run")
        assert {path.name: path.read_text() for path in (tmp_path / "run").iterdir()} == {
            "config.yaml": "another's",
            ".lock": "another's",
        }


# Runs `pren fit`, and after a round lets a limit bear on the disk.
TROUBLED = """
import os, resource, subprocess, sys
from pathlib import Path
from pren.cli import __main__ as main
from pren.store.folder import RunFolder

trouble, after, *arguments = sys.argv[1:]
save = RunFolder.save_round

def limited(self, method, state):
    if state.history[-1]["round"] == int(after):
        if trouble == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        elif trouble == "fill":
            with open(self.path.parent / "filler", "wb", buffering=0) as file:
                try:
                    while file.write(bytes(4096)):
                        pass
                except OSError:
                    pass
        else:
            # Over itself: the disk cannot be closed while the lock file is open for writing.
            for options in (["--bind", self.path], ["-o", "remount,bind,ro"]):
                subprocess.run(["mount", *options, self.path], check=True)
    save(self, method, state)

RunFolder.save_round = limited
sys.argv = ["pren", *arguments]
main.main()
"""
ON_A_SMALL_DISK = """
mount -t tmpfs -o size=600k tmpfs "$1" || exit 77
disk=$1 keep=$2; shift 2
"$@"; code=$?
cp -a "$disk/run" "$keep"
exit $code
"""
READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77
shift; "$@"
"""
ONE_AFTER_ANOTHER = """
import json, sys
from pren.cli import __main__ as main
codes = []
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    try:
        main.main()
    except SystemExit as ended:
        codes.append(ended.code)
print("codes", codes)
"""
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")


def arguments_of(config, out):
    params = [f"--set={key}={list(v) if isinstance(v, tuple) else v}" for key, v in config.params.items()]
    return ["fit", config.data, "--method", config.method, *params, "--out", str(out)]


def execute(*command):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    if result.returncode == 77:
        pytest.skip(f"no file system can be mounted here: {result.stderr.strip()}")
    return result


@pytest.fixture
def mounts():
    """Skip where a process may not have mounts of its own."""
    if shutil.which("unshare") is None or execute(*UNSHARE, "true").returncode != 0:
        pytest.skip("unshare --user --mount is not allowed here")


def the_message(result):
    """The one line that says what to do."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    *progress, message = result.stderr.splitlines()
    assert message.startswith("Error [")
    assert not [line for line in progress if line.startswith("Error")]
    return message


@pytest.mark.slow
class TestRealDisks:
    def test_a_file_becomes_too_large(self, config, goes_on, tmp_path):
        fit = arguments_of(config, tmp_path / "run")
        message = the_message(execute(sys.executable, "-c", TROUBLED, "limit", "1", *fit))
        assert "model.safetensors: File too large" in message
        assert "--resume" in message
        assert [path.name for path in (tmp_path / "run" / "checkpoint").iterdir()] == ["round-0000"]
        goes_on(tmp_path / "run")

    @pytest.mark.parametrize(
        ("trouble", "reason"), [("fill", "No space left on device"), ("close", "Read-only file system")]
    )
    def test_the_disk_fills_up_or_closes(self, trouble, reason, mounts, config, goes_on, tmp_path):
        (tmp_path / "disk").mkdir()
        fit = [sys.executable, "-c", TROUBLED, trouble, "2", *arguments_of(config, tmp_path / "disk" / "run")]
        message = the_message(execute(*UNSHARE, ON_A_SMALL_DISK, "sh", tmp_path / "disk", tmp_path / "kept", *fit))
        assert reason in message
        assert "--resume" in message
        rounds = [path.name for path in (tmp_path / "kept" / "checkpoint").glob("round-*")]
        assert rounds == ["round-0001"]
        goes_on(tmp_path / "kept")

    def test_a_folder_that_cannot_be_written_to(self, mounts, config, interrupted, fingerprint, goes_on, tmp_path):
        disk = tmp_path / "disk"
        disk.mkdir()
        interrupted(config, disk / "run", 1)
        before = fingerprint(disk)
        commands = [
            ["fit", "--resume", f"{disk}/run"],
            ["show", f"{disk}/run"],
            arguments_of(config, disk / "new"),
        ]
        result = execute(*UNSHARE, READ_ONLY, "sh", disk, sys.executable, "-c", ONE_AFTER_ANOTHER, json.dumps(commands))
        assert result.returncode == 0, result.stderr
        assert "codes [2, 0, 2]" in result.stdout
        assert "unfinished, 1 of 2 rounds" in result.stdout
        resumed, started = (line for line in result.stderr.splitlines() if line.startswith("Error ["))
        assert "run: Read-only file system. Make room there" in resumed
        assert "new: Read-only file system. Choose another" in started
        assert "Traceback" not in result.stderr
        assert fingerprint(disk) == before
        goes_on(disk / "run")


def test_the_command_line_says_it_in_one_line(config, monkeypatch, capsys, tmp_path):
    def full(self, *_):
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "replace", full)
    monkeypatch.setattr(sys, "argv", ["pren", *arguments_of(RunConfig(data=config.data, method="eszsl"), "run")])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "config.yaml: No space left on device" in told
    assert len([line for line in told.splitlines() if line.startswith("Error")]) == 1
    assert not (tmp_path / "run").exists()
