"""One writer per run folder, whatever becomes of the others."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from refusals import refused
from run_folders import run_folder

from pren.foundation.errors import PrenError
from pren.foundation.lock import LOCK, MOST_BYTES, Lock
from pren.runs.reopening import load_state
from pren.store.folder import RunFolder

HOSTILE = {
    "nothing": b"",
    "garbage": b"not JSON at all",
    "binary": bytes(range(256)) * 30,
    "huge": b"x" * (1 << 20),
    "another kind of JSON": b'["pid", "host", "since", "command"]',
    "names without values": b"{}",
    "values of other kinds": b'{"pid": [1], "host": {}, "since": null, "command": 3}',
    "deep": b"[" * MOST_BYTES,
    "deep values": b'{"pid": ' + b"[" * 4000 + b"]" * 4000 + b', "host": 1, "since": 1, "command": 1}',
    "a number without end": b"9" * MOST_BYTES,
    "half a character": b'{"pid": 1, "host": "\\ud800", "since": "\xff", "command": ""}',
}
TAKE = """
import sys
from pathlib import Path
from pren.foundation.lock import Lock
lock = Lock(Path(sys.argv[1]), "pren fit of another process")
print("taken", flush=True)
sys.stdin.readline()
"""
RACE = """
import os, sys
from pathlib import Path
from pren.foundation.errors import PrenError
from pren.foundation.lock import Lock
folder, witness = Path(sys.argv[1]), Path(sys.argv[2])
sys.stdin.readline()
taken = 0
for _ in range(400):
    try:
        lock = Lock(folder)
    except PrenError as error:
        assert "is in use by" in str(error), error
        continue
    os.close(os.open(witness, os.O_CREAT | os.O_EXCL))  # fails if there are two of us
    taken += 1
    witness.unlink()
    lock.release()
print(taken)
"""


def start(program, *arguments):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class TestHeld:
    def test_a_second_taker_is_told_who_holds_it(self, tmp_path):
        lock = Lock(tmp_path, "pren fit data.npz --seed 3")
        who = json.loads((tmp_path / LOCK).read_text())
        with refused("in-use") as caught:
            Lock(tmp_path, "pren fit again")
        message = str(caught.value)
        assert f"{tmp_path} is in use by process {os.getpid()} on {socket.gethostname()}" in message
        assert f"since {who['since']} (pren fit data.npz --seed 3)" in message
        assert "choose another folder with --out" in message
        assert json.loads((tmp_path / LOCK).read_text()) == who
        assert lock.held()
        lock.release()

    def test_a_released_lock_leaves_nothing_and_lets_others_in(self, tmp_path):
        for _ in range(3):
            lock = Lock(tmp_path)
            assert (tmp_path / LOCK).is_file()
            lock.release()
            assert list(tmp_path.iterdir()) == []

    def test_a_child_of_the_holder_is_refused_as_well(self, tmp_path):
        lock = Lock(tmp_path)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                Lock(tmp_path)
                os.write(write, b"taken")
            except PrenError:
                os.write(write, b"refused")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 100) == b"refused"
        assert lock.held()
        lock.release()
        for descriptor in (read, write):
            os.close(descriptor)

    @pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
    def test_a_holder_that_wrote_nonsense_is_still_a_holder(self, content, tmp_path):
        lock = Lock(tmp_path)
        (tmp_path / LOCK).write_bytes(content)
        with refused("in-use") as caught:
            Lock(tmp_path)
        assert len(str(caught.value)) < 2 * MOST_BYTES
        assert (tmp_path / LOCK).read_bytes() == content
        lock.release()

    def test_a_command_beyond_all_measure_does_not_matter(self, tmp_path):
        lock = Lock(tmp_path, "x" * (1 << 20))
        with refused("in-use"):
            Lock(tmp_path)
        assert (tmp_path / LOCK).stat().st_size <= MOST_BYTES
        lock.release()


class TestLost:
    def test_when_the_file_is_removed(self, tmp_path):
        lock = Lock(tmp_path)
        (tmp_path / LOCK).unlink()
        assert not lock.held()
        lock.release()

    def test_when_the_file_is_replaced_and_then_it_is_left_alone(self, tmp_path):
        lock = Lock(tmp_path)
        (tmp_path / "other").write_bytes((tmp_path / LOCK).read_bytes())
        (tmp_path / "other").rename(tmp_path / LOCK)
        assert not lock.held()
        lock.release()
        assert (tmp_path / LOCK).is_file()

    def test_when_the_file_became_a_link_to_itself(self, tmp_path):
        lock = Lock(tmp_path)
        (tmp_path / LOCK).rename(tmp_path / "moved")
        (tmp_path / LOCK).symlink_to("moved")
        assert not lock.held()
        lock.release()
        assert (tmp_path / "moved").is_file()

    def test_when_the_folder_is_renamed(self, tmp_path):
        (tmp_path / "run").mkdir()
        lock = Lock(tmp_path / "run")
        (tmp_path / "run").rename(tmp_path / "moved")
        assert not lock.held()
        lock.release()
        Lock(tmp_path / "moved").release()
        assert list((tmp_path / "moved").iterdir()) == []


class TestStale:
    def test_the_file_of_a_dead_process_is_taken_over(self, tmp_path):
        dead = {"pid": 1, "host": "elsewhere", "since": "2020-01-01T00:00:00+00:00", "command": "pren " + "x" * 5000}
        (tmp_path / LOCK).write_text(json.dumps(dead))
        lock = Lock(tmp_path, "pren fit")
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
        lock.release()
        assert not (tmp_path / LOCK).exists()

    @pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
    def test_whatever_it_left(self, content, tmp_path):
        (tmp_path / LOCK).write_bytes(content)
        lock = Lock(tmp_path, "pren fit")
        assert json.loads((tmp_path / LOCK).read_text())["command"] == "pren fit"
        lock.release()

    def test_a_process_that_was_killed_is_not_in_the_way(self, tmp_path):
        with start(TAKE, tmp_path) as process:
            assert process.stdout.readline() == "taken\n"
            try:
                with refused("in-use"):
                    Lock(tmp_path)
            finally:
                process.send_signal(signal.SIGKILL)
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == process.pid
        lock = Lock(tmp_path)
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
        lock.release()


class TestNoFile:
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "run").mkdir()
        return tmp_path / "run"

    def refuse(self, folder):
        before = os.lstat(folder / LOCK)
        with refused("lock-odd"):
            Lock(folder)
        assert os.path.samestat(before, os.lstat(folder / LOCK))

    def test_a_link_is_refused_and_what_it_leads_to_is_untouched(self, folder, tmp_path):
        (tmp_path / "precious").write_text("precious")
        for target in (tmp_path / "precious", tmp_path / "nowhere", folder):
            (folder / LOCK).symlink_to(target)
            self.refuse(folder)
            (folder / LOCK).unlink()
        assert (tmp_path / "precious").read_text() == "precious"
        assert not (tmp_path / "nowhere").exists()

    def test_a_folder_is_refused(self, folder):
        (folder / LOCK).mkdir()
        self.refuse(folder)

    def test_a_pipe_is_refused_without_waiting_for_it(self, folder):
        os.mkfifo(folder / LOCK)
        self.refuse(folder)

    def test_no_folder_at_all(self, tmp_path):
        with refused("write-failed"):
            Lock(tmp_path / "nowhere")


class TestRace:
    def test_of_threads(self, tmp_path):
        inside, most, taken = [], 0, 0
        guard = threading.Lock()

        def race(me):
            nonlocal most, taken
            for _ in range(300):
                try:
                    lock = Lock(tmp_path)
                except PrenError:
                    continue
                with guard:
                    inside.append(me)
                    most, taken = max(most, len(inside)), taken + 1
                with guard:
                    inside.remove(me)
                lock.release()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(race, range(4)))
        assert most == 1
        assert taken >= 10
        assert list(tmp_path.iterdir()) == []

    def test_of_processes(self, tmp_path):
        (tmp_path / "run").mkdir()
        racers = [start(RACE, tmp_path / "run", tmp_path / "witness") for _ in range(2)]
        for racer in racers:
            racer.stdin.write("go\n")
            racer.stdin.flush()
        counts = [int(racer.communicate(timeout=200)[0]) for racer in racers]
        assert [racer.returncode for racer in racers] == [0, 0]
        assert min(counts) > 0
        assert list((tmp_path / "run").iterdir()) == []


@pytest.fixture
def results(outcome):
    """What a run came to, without the checksums: they cover its times too."""
    return lambda folder: {k: v for k, v in outcome(folder).items() if not k.endswith("manifest.json")}


class TestRuns:
    def test_a_second_run_into_the_same_folder_is_refused_and_changes_nothing(
        self, data, configure, fingerprint, results, tmp_path
    ):
        config, out = configure(data()), tmp_path / "run"
        run_folder(config, tmp_path / "whole")
        refused = []

        def intrude(done, method):
            before = fingerprint(out)
            for resume in (False, True):
                with pytest.raises(PrenError) as error:
                    run_folder(config, out, resume=resume)
                refused.append(str(error.value))
            assert fingerprint(out) == before

        run_folder(config, out, command="pren fit first", on_round=intrude)
        assert len(refused) == 8
        assert all("already has a run" in message for message in refused[::2])
        assert all(f"in use by process {os.getpid()}" in message for message in refused[1::2])
        assert all("(pren fit first)" in message for message in refused[1::2])
        assert results(out) == results(tmp_path / "whole")

    def test_a_resumed_run_holds_its_folder_too(self, data, configure, interrupted, tmp_path):
        config, out = configure(data()), tmp_path / "run"
        interrupted(config, out, 1)
        assert not (out / LOCK).exists()

        def intrude(done, method):
            with refused("in-use"):
                run_folder(config, out, resume=True)

        run_folder(config, out, resume=True, on_round=intrude)
        assert not (out / LOCK).exists()

    def test_those_who_read_are_let_in(self, data, configure, tmp_path):
        path, out, seen = data(), tmp_path / "run", []

        def look(done, method):
            run = RunFolder.open(out)
            assert run.model().get_params() == method.get_params()
            seen.append(load_state(out).to_dict()["rounds_done"])

        run_folder(configure(path), out, on_round=look)
        assert seen == [0, 1, 2, 3]

    def test_a_link_in_place_of_the_lock_is_refused_by_a_run(self, data, configure, interrupted, tmp_path):
        config, out = configure(data()), tmp_path / "run"
        interrupted(config, out, 1)
        (tmp_path / "precious").write_text("precious")
        (out / LOCK).symlink_to(tmp_path / "precious")
        with refused("link-outside .lock"):
            run_folder(config, out, resume=True)
        assert (tmp_path / "precious").read_text() == "precious"
