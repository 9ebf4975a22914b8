"""Cells in processes of their own, which need not compute: any command that takes a folder will do.

One that computes is in tests/integration/test_photographs.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pren.research import worker, workers
from pren.research.cells import data_hashes, make_task
from pren.research.store import Store
from pren.research.workers import run_tasks, threads_each

REAL = subprocess.Popen


@pytest.fixture
def tasks(config):
    def build(*regs):
        made = []
        for reg in regs:
            wanted = config(params={"feature_reg": reg})
            made.append(make_task(wanted, data_hashes(*wanted.load_data()), None))
        return made

    return build


@pytest.fixture
def script(monkeypatch):
    """Let the processes run some Python instead; `sys.argv[1]` is their folder."""
    started = []

    def replace(text):
        def start(command, **options):
            process = REAL([sys.executable, "-S", "-c", text, command[-1]], **options)
            started.append(process)
            return process

        monkeypatch.setattr(workers.subprocess, "Popen", start)
        return started

    return replace


def run(tasks, folder, jobs=1):
    done = []
    run_tasks(tasks, folder, jobs, lambda task, result: done.append((task, result)))
    return done


WELL = "import sys, os, pathlib; pathlib.Path(sys.argv[1], 'result.json').write_text('{\"fit_seconds\": 1.5}')"


def test_a_defect_keeps_its_traceback(tasks, monkeypatch, tmp_path):
    """A worker whose method raises what no method may."""

    def compute(task):
        raise TypeError("fit() lacks an argument")

    def here(command, **options):
        worker.main(Path(command[-1]))
        return REAL([sys.executable, "-S", "-c", ""], **options)

    monkeypatch.setattr(worker, "compute", compute)
    monkeypatch.setattr(worker, "end_with_parent", lambda _: None)
    monkeypatch.setattr(worker.sys, "stdin", SimpleNamespace(fileno=lambda: 0))
    monkeypatch.setattr(workers.subprocess, "Popen", here)
    (task,) = tasks(1.0)
    ((_, result),) = run([task], tmp_path)
    assert result.error.startswith(
        "TypeError: fit() lacks an argument. This is a defect of pren or of the method: see "
    )
    assert result.traceback[0].startswith("Traceback")
    assert result.traceback[-1] == "TypeError: fit() lacks an argument"
    Store(tmp_path).put(task.cell, result)
    kept = json.loads((tmp_path / result.error.split()[-1]).read_text())
    assert kept["result"]["traceback"] == result.traceback


def test_what_a_process_said_before_it_died_is_kept(tasks, script, tmp_path):
    script("print(*range(300), sep='\\n'); import sys; print('x' * 5000, file=sys.stderr); raise SystemExit('no luck')")
    ((_, result),) = run(tasks(1.0), tmp_path)
    assert result.traceback == ["x" * 1000, "no luck"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL (perhaps the system ran out of memory)"),
        ("raise SystemExit('no luck')", "ended with code 1: no luck"),
        ("raise SystemExit(3)", "ended with code 3"),
        ("pass", "left no result"),
        (WELL.replace("1.5", "[]"), "left no result"),
    ],
)
def test_a_process_that_dies_costs_its_cell_only(tasks, script, text, reason, tmp_path):
    script(text)
    ((_, result),) = run(tasks(1.0), tmp_path)
    assert reason in result.error


def test_several_at_a_time(tasks, script, tmp_path):
    """Each of two waits for the other to have started, which only works side by side."""
    started = script(
        "import sys, time, pathlib; f = pathlib.Path(sys.argv[1])\n"
        "while len(list(f.parent.glob('.writing-*'))) < 2: time.sleep(0.01)\n"
        "f.joinpath('here').touch()\n"
        "while len(list(f.parent.glob('.writing-*/here'))) < 2 and len(list(f.parent.glob('.writing-*'))) > 1: pass\n"
        + WELL
    )
    done = run(tasks(1.0, 2.0), tmp_path, jobs=2)
    assert [result.error for _, result in done] == [None, None]
    assert len(started) == 2


def test_one_after_the_other(tasks, script, tmp_path):
    script(
        "import sys, pathlib; f = pathlib.Path(sys.argv[1])\n"
        "if len(list(f.parent.glob('.writing-*'))) > 1: raise SystemExit('not alone')\n" + WELL
    )
    done = run(tasks(1.0, 2.0, 3.0), tmp_path, jobs=1)
    assert [(task.cell.params["feature_reg"], result.error) for task, result in done] == [
        (1.0, None),
        (2.0, None),
        (3.0, None),
    ]


def test_on_the_way_out_no_process_is_left(tasks, script, tmp_path):
    started = script(
        "import sys, time\nif sys.argv[1].endswith('x'): pass\n"
        "import pathlib; f = pathlib.Path(sys.argv[1])\n"
        "first = '\"feature_reg\": 1.0' in f.joinpath('task.json').read_text()\n"
        "time.sleep(0 if first else 600)\n" + WELL
    )

    def interrupt(task, result):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks(tasks(1.0, 2.0, 3.0, 4.0), tmp_path, 2, interrupt)  # some of which were never started
    assert len(started) < 4
    assert all(process.poll() is not None for process in started)
    assert not list(tmp_path.glob(".writing-*"))


@pytest.mark.parametrize(
    ("cores", "allowed", "jobs", "each"),
    [(8, None, 2, 4), (8, "4", 2, 4), (8, "3", 2, 3), (2, None, 5, 1), (8, "x", 3, 2)],
)
def test_threads_are_shared_fairly(monkeypatch, cores, allowed, jobs, each):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(cores), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if allowed is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", allowed)
    assert threads_each(jobs) == each


def test_processes_are_told_their_share(tasks, script, monkeypatch, tmp_path):
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(8), raising=False)
    script("import os; raise SystemExit(' '.join(os.environ[n] for n in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS')))")
    ((_, result),) = run(tasks(1.0), tmp_path, jobs=2)
    assert result.error.endswith("4 4")
