"""The crash campaign in short, and that it would notice what it looks for."""

import json
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import httpx
import pytest
import yaml
from safetensors.numpy import load_file, save_file

from campaigns.crash.campaign import Outcome, campaign, make_references, summary
from campaigns.crash.comparison import differences
from campaigns.crash.forks import ENVIRONMENT, INSIDE, Forked
from campaigns.crash.jobs import JOBS, ORDER, same_results
from campaigns.crash.moments import FEWEST, MOST, draw_moments
from campaigns.crash.phases import (
    BEFORE,
    CHECKPOINT,
    COMPUTING,
    FINISHED,
    PUBLISHING,
    REMOVING,
    RESULTS,
    START,
    phase,
    snapshot,
)
from campaigns.crash.processes import Case
from campaigns.crash.reference import hash_models
from campaigns.crash.strikes import Struck, Yard, strike_run, strikes_summary
from campaigns.crash.talks import HEARD, heard, review
from pren.foundation.files import WRITING

pytestmark = pytest.mark.slow

SMALL = {"heads": 4, "dim": 4, "hidden": [16], "initial_batches": 1, "batches": 1, "batch_size": 16}
SHORT = {**SMALL, "heads": 12, "hidden": [128, 128], "rounds": 6, "initial_batches": 10, "batches": 10}


@pytest.mark.slow
def test_killed_runs_end_like_one_that_nobody_interrupted(tmp_path):
    (reference,) = make_references([Case("numbers-features", "gzsl", SHORT)], tmp_path, jobs=1)
    assert len(reference.models) == len(set(reference.models)) == 7
    # The first run of this seed is killed in a checkpoint, while files are published and at the end; if one moment
    # comes too late, two kills are enough.
    outcomes = list(campaign([reference], tmp_path, kills=2, seed=1684, jobs=1))
    assert [outcome.lost for outcome in outcomes] == [None] * len(outcomes)
    assert sum(len(outcome.phases) for outcome in outcomes) >= 2
    assert not list(tmp_path.glob("run-*"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("crash") / "run"
    hash_models(Case("numbers-features", "zsl", {**SMALL, "rounds": 2}), run)
    return run


@pytest.fixture
def other(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "other")


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def change_csv(path):
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1].replace(lines[-1][-2], "x"), ""]))


def change_json(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def change_step(path):
    tensors = load_file(path)
    tensors["adam.0.step"] -= 1
    save_file(tensors, path)


@pytest.mark.parametrize(
    ("name", "damage", "told"),
    [
        ("model.safetensors", lambda path: flip(path, -1), "differ"),
        ("checkpoint/round-0002/model.safetensors", lambda path: flip(path, -1), "differ"),
        ("checkpoint/round-0002/training.safetensors", lambda path: flip(path, -1), "differ"),
        ("checkpoint/round-0002/training.safetensors", change_step, "adam.0.step differ"),
        ("checkpoint/round-0002/training.safetensors", lambda path: path.write_bytes(b""), "cannot be read"),
        ("checkpoint/round-0002/state.json", lambda path: change_json(path, lambda c: c["history"].pop()), "history"),
        (
            "checkpoint/round-0002/state.json",
            lambda path: change_json(path, lambda c: c["pseudo_labels"][0].reverse()),
            "pseudo_labels",
        ),
        ("checkpoint/round-0002/state.json", lambda path: change_json(path, lambda c: c.pop("timings")), "timings"),
        ("history.csv", change_csv, "line 4"),
        ("pseudo_labels.csv", change_csv, "line"),
        ("predictions.csv", change_csv, "line 601"),
        ("metrics.json", lambda path: change_json(path, lambda c: c.update(top1=2.0)), "line"),
        ("config.yaml", lambda path: path.write_text(path.read_text().replace("heads: 4", "heads: 5")), "params"),
    ],
)
def test_whatever_differs_is_told(finished, other, name, damage, told):
    damage(other / name)
    (only,) = differences(finished, other)[:1]
    assert only.startswith(f"{name}: ")
    assert told in only
    assert all(line.startswith(name) for line in differences(finished, other))


@pytest.mark.parametrize("name", ["metrics.json", "timings.csv", "checkpoint/round-0002/training.safetensors"])
def test_what_is_missing_or_too_much_is_told(finished, other, name):
    (other / name).rename(other / f"{WRITING}left")
    assert differences(finished, other) == [f"{name} is missing", f"{WRITING}left should not be there"]


def test_times_and_process_facts_do_not_count(finished, other):
    assert differences(finished, other) == []
    (other / "timings.csv").write_text("other seconds")
    change_json(other / "checkpoint/round-0002/state.json", lambda content: content.update(timings=[1.0, 2.0, 3.0]))
    config = yaml.safe_load((other / "config.yaml").read_text())
    (other / "config.yaml").write_text(yaml.safe_dump({**config, "record": {"started": "never"}}))
    (other / ".lock").touch()
    (other / "checkpoint/round-0002/manifest.json").write_text("{}")
    assert differences(finished, other) == []


@pytest.mark.parametrize(("label", "told"), [("a", []), ("b", ["report.html: line 2 is '<p>b' and not '<p>a'"])])
def test_a_report_may_differ_in_its_folder_and_its_time_alone(tmp_path, label, told):
    for name, shown, started in (("one", "a", "2026-01-02T03:04:05"), ("another", label, "2027-01-02T03:04:06")):
        (tmp_path / name / "out").mkdir(parents=True)
        page = f"{tmp_path / name}/out, kept in {tmp_path / name}/cache, started {started}+00:00<p>{shown}"
        (tmp_path / name / "out" / "report.html").write_text(page)
    assert differences(tmp_path / "one" / "out", tmp_path / "another" / "out") == told


@pytest.mark.slow
def test_a_forked_command_ends_as_any_other(tmp_path):
    refused = Forked(["show", "nowhere"], ENVIRONMENT, tmp_path / "log", tmp_path)
    assert refused.wait() == refused.poll() == 2
    assert (tmp_path / "log").read_text() == (
        "Error [not-a-run]: nowhere is not a run folder: it has no config.yaml. 'pren fit' makes one.\n"
    )
    killed = Forked(["show", "nowhere"], ENVIRONMENT, tmp_path / "log", tmp_path)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL


def test_moments_depend_on_seed_and_number_only():
    runs = [draw_moments(3, number) for number in range(200)]
    assert runs == [draw_moments(3, number) for number in range(200)]
    assert all(one != another for one, another in pairwise(runs))
    assert runs[:5] != [draw_moments(4, number) for number in range(5)]
    assert {len(draws) for draws in runs} == set(range(FEWEST, MOST + 1))
    kinds = Counter(draw.kind for draws in runs for draw in draws)
    assert min(kinds.values()) > 40
    for draws in runs:
        late = [draw.kind == "end" for draw in draws]
        assert late == sorted(late)


class TestPhases:
    @pytest.fixture
    def at(self, tmp_path):
        """What a process was doing that found some files in its folder and has made some more."""

        def judge(found, made, *, spoke=True):
            self.make(tmp_path, found)
            before = snapshot(tmp_path)
            self.make(tmp_path, made)
            return phase(before, snapshot(tmp_path), 9, spoke=spoke)

        return judge

    @staticmethod
    def make(folder, names):
        for name in names.split():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    @pytest.mark.parametrize(
        ("found", "made", "expected"),
        [
            ("", "", BEFORE),
            ("", ".writing-config.yaml", BEFORE),
            ("", "config.yaml", COMPUTING),
            ("config.yaml checkpoint/.writing-round-0000/a", "", COMPUTING),
            ("config.yaml", "checkpoint/.writing-round-0000/a", CHECKPOINT),
            ("config.yaml checkpoint/round-0003/a", "checkpoint/.writing-round-0004/a", CHECKPOINT),
            ("config.yaml checkpoint/round-0003/a", "checkpoint/round-0004/a", PUBLISHING),
            ("config.yaml", "checkpoint/round-0000/a .writing-history.csv", PUBLISHING),
            ("config.yaml checkpoint/round-0003/a", "checkpoint/round-0004/a checkpoint/round-0004/b", REMOVING),
            ("config.yaml checkpoint/round-0003/a checkpoint/round-0004/a", "", COMPUTING),
            ("config.yaml", "checkpoint/round-0009/a", RESULTS),
            ("config.yaml checkpoint/round-0009/a", ".writing-metrics.json", RESULTS),
            ("config.yaml checkpoint/round-0009/a", "predictions.csv", RESULTS),
            ("config.yaml checkpoint/round-0009/a", "predictions.csv manifest.json", FINISHED),
        ],
    )
    def test_they_are_told_apart(self, at, found, made, expected):
        assert at(found, made) == expected

    def test_a_process_that_has_not_yet_said_anything_is_starting(self, at):
        assert at("config.yaml checkpoint/round-0003/a checkpoint/.writing-round-0004/a", "", spoke=False) == START


def test_the_summary_counts():
    case = Case("numbers", "zsl", {"rounds": 1})
    fine = Outcome(0, case, draw_moments(0, 0), [START, RESULTS])
    lost = Outcome(1, case, draw_moments(0, 1), [RESULTS], "resuming failed")
    table = dict(line.rsplit(maxsplit=1) for line in summary([fine, lost], 12.3).splitlines())
    assert table["kills"] == "3"
    assert table[f"  {RESULTS}"] == "2"
    assert table["draws that came too late"] == str(len(fine.draws) - 2)
    assert (table["runs"], table["lost"], table["seconds"]) == ("2", "1", "12")
    assert fine.line().endswith("2 kills (1 start-up, 1 writing the results)  ok")
    assert lost.line().endswith("LOST: resuming failed")


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    return Yard(tmp_path_factory.mktemp("yard"))


class TestStrikes:
    WRITE = "import os, pathlib\nos.mkdir('out')\npath = pathlib.Path('out/a')\npath.write_text('1')\n" + (
        "path.rename('out/b')\npathlib.Path('out/c').unlink(missing_ok=True)\nopen('elsewhere', 'w').close()\n"
        "file = os.open('out/b', os.O_WRONLY)\nos.write(file, b'12345678')\n"
    )

    def run(self, folder, at=0, when="before", code=WRITE):
        environment = {
            "PYTHONPATH": str(INSIDE),
            "PREN_STRIKE_COUNT": str(folder / "count"),
            "PREN_STRIKE_WITHIN": str(folder / "out"),
            "PREN_STRIKE_AT": str(at),
            "PREN_STRIKE_WHEN": when,
        }
        return subprocess.run([sys.executable, "-c", code], env=environment, cwd=folder, check=False).returncode

    def test_calls_that_change_files_are_counted(self, tmp_path):
        assert self.run(tmp_path) == 0
        assert (tmp_path / "count").stat().st_size == 4  # mkdir, rename, unlink and write, but for elsewhere

    @pytest.mark.parametrize(
        ("at", "when", "struck", "left"),
        [
            (1, "before", "before mkdir .", None),
            (2, "before", "before rename a", {"a": "1"}),
            (2, "after", "after rename a", {"b": "1"}),
            (3, "after", "after unlink c", {"b": "1"}),
            (4, "after", "in the middle of write b", {"b": "1234"}),
        ],
    )
    def test_a_strike_hits_what_it_is_aimed_at(self, tmp_path, at, when, struck, left):
        assert self.run(tmp_path, at, when) == -signal.SIGKILL
        assert (tmp_path / "count.struck").read_text() == struck
        out = tmp_path / "out"
        assert ({path.name: path.read_text() for path in out.iterdir()} if out.exists() else None) == left

    def test_a_strike_hits_an_answer_over_the_network(self, tmp_path):
        with socket.create_server(("127.0.0.1", 0)) as server:
            send = f"import socket\nsocket.create_connection({server.getsockname()!r}).send(b'12345678')"
            assert self.run(tmp_path, 1, "after", send) == -signal.SIGKILL
            with server.accept()[0] as found:
                assert found.recv(9) == b"1234"
        assert (tmp_path / "count.struck").read_text() == "in the middle of send answer"

    @pytest.mark.parametrize(("kept", "told"), [(3, "3 answers"), (1, "1 are kept"), (4, "4 are kept")])
    def test_an_answer_that_was_acknowledged_and_is_gone_is_told(self, tmp_path, kept, told):
        def answer(request):
            return httpx.Response(200, json={"position": kept, "learned": True, "forecast": {"now": None}})

        (tmp_path / HEARD).write_text("1\n2\n")
        with httpx.Client(transport=httpx.MockTransport(answer), base_url="http://here") as client:
            assert told in review(client, tmp_path) + f"{len(heard(tmp_path))} answers"

    def test_every_job_has_its_turn_soon(self):
        assert set(ORDER) == set(JOBS)
        assert len(ORDER) <= 2 * len(JOBS)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["fit, continued", "review", "predict, sorted"])
    def test_a_struck_command_ends_like_one_that_nobody_struck(self, yard, name):
        job = next(number for number, job in enumerate(ORDER) if job.name == name)
        outcome = strike_run(yard, job, seed=0)
        assert outcome.lost is None
        assert outcome.strikes

    def test_what_differs_between_experiments_is_told(self, tmp_path):
        for name, figure in (("a", 1), ("b", 1), ("c", 2)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "cell.json").write_text(json.dumps({"top1": figure, "fit_seconds": name}))
            (tmp_path / name / "table.csv").write_text(f"top1,fit_seconds\n{figure},{name}\n")
        assert same_results(tmp_path / "a", tmp_path / "b") == []
        assert same_results(tmp_path / "a", tmp_path / "c") == ["cell.json differs", "table.csv differs"]
        (tmp_path / "b" / f"{WRITING}x").touch()
        assert same_results(tmp_path / "a", tmp_path / "b") == [f"{WRITING}x is there in one only"]

    def test_the_summary_counts(self):
        table = strikes_summary(
            [Struck("fit", 0, ["before fsync a", "before fsync b"], 1), Struck("tune", 1, [], 0, "x")]
        )
        rows = dict(line.rsplit(maxsplit=1) for line in table.splitlines())
        assert (rows["kills at moments of writing"], rows["  before fsync"], rows["  in fit"], rows["lost"]) == tuple(
            "2221"
        )
