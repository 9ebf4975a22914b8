"""The benchmarks run; what they measure is for `make bench`, not for a test."""

import json
import logging
import runpy
import subprocess
import sys
import warnings
from contextlib import redirect_stdout
from io import StringIO

import pytest

from benchmarks import million, processes, whole_run
from benchmarks.__main__ import BENCHMARKS, main

RUN, POPEN = subprocess.run, subprocess.Popen


def in_this_process(command, cwd=".", **_):
    """What ``python -m MODULE ARGUMENTS`` does and prints, without the seconds that a process needs to start."""
    interpreter, module_option, module, *arguments = map(str, command)
    assert (interpreter, module_option) == (sys.executable, "-m")
    printed = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # runpy's, of a module that is imported already
        patch.chdir(cwd)
        patch.setattr(sys, "argv", [module, *arguments])
        for keep in ("keep_memory", "keep_all_memory"):  # which are for the whole process
            patch.setattr(f"pren.foundation.allocation.{keep}", lambda: True)
        code = 0
        try:
            runpy.run_module(module, run_name="__main__")
        except SystemExit as ending:
            code = ending.code or 0
        finally:
            logging.getLogger("pren").handlers.clear()
    done = subprocess.CompletedProcess(command, code, printed.getvalue(), "")
    done.check_returncode()
    return done


def run(command, **how):
    """Modules run in this process, but for one of them; what is no module runs as it is."""
    is_module = list(command[:2]) == [sys.executable, "-m"] and "benchmarks.memory" not in command
    return (in_this_process if is_module else RUN)(command, **how)


def watched(command, **how):
    """The same for pren, and a process that can be looked at from outside for a moment."""
    if "pren.cli" not in command:
        return POPEN(command, **how)
    in_this_process(command, how["cwd"])
    return POPEN([sys.executable, "-S", "-c", "import time; time.sleep(0.2)"])


@pytest.fixture
def fewer_processes(monkeypatch):
    """One benchmark starts its process; what the others print, they print in this one."""
    seconds = processes._seconds_per_round
    monkeypatch.setattr(processes, "_seconds_per_round", lambda data, params, _, out: seconds(data, params, 1, out))
    monkeypatch.setattr(million.subprocess, "Popen", watched)
    monkeypatch.setattr(subprocess, "run", run)


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_processes")
@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_runs_and_writes_its_tables(name, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("before\n")
    main([name, "--quick", "--results", str(tmp_path), "--markdown", str(page)])
    content = json.loads((tmp_path / f"{name}.json").read_text())
    assert content["tables"]
    assert capsys.readouterr().out.strip()
    assert page.read_text().startswith("before\n")
    assert "| --- |" in page.read_text()


def test_an_unknown_benchmark_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "no benchmark named nonsense" in capsys.readouterr().err


def test_the_parts_of_a_run_are_the_whole(capsys):
    whole_run.main(["--data", "numbers-features", "--heads", "2", "--rounds", "1"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[4:] if line]
    shares = {part: float(share) for part, share in rows}
    assert sum(shares.values()) == pytest.approx(100, abs=0.5)
    assert all(shares[part] > 0 for part in ("matrix products of the heads", "Adam", "everything else"))
