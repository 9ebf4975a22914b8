"""How commands end where the machine has no more: no room for output, no reader, no memory, and early interrupts."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from threading import Thread

import pytest

from pren.cli.ending import explained

pytestmark = pytest.mark.slow
LIST = [sys.executable, "-m", "pren.cli", "list", "datasets"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")  # noqa: PTH110
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_standard_output_on_a_full_disk(more):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run([*LIST, *more], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Error [output]: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("more", [[], ["--json"], ["--help"]])
def test_a_pipe_that_nobody_reads(more):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*LIST, *more], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_too_little_memory_to_load_what_is_needed():
    """At this limit OpenBLAS hangs, and at lower ones libraries fail, each in its own way."""

    def little():
        resource.setrlimit(resource.RLIMIT_AS, (1_024_000_000,) * 2)

    command = [sys.executable, "-m", "pren.cli", "fit", "numbers-features"]
    done = subprocess.run(command, preexec_fn=little, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Error [memory]: ")
    assert len(done.stderr.splitlines()) == 1
    help_ = subprocess.run([*command, "--help"], preexec_fn=little, capture_output=True, text=True, check=False)
    assert help_.returncode == 0


@pytest.mark.parametrize("own", ["4", ""])
def test_too_few_threads(monkeypatch, bad, good, own):
    """OpenBLAS would end the process as Ctrl-C does. (A root user has no such limit.)"""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", own)
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    running, begin = [], Thread.start

    def start(thread):
        if len(running) == 2:
            raise RuntimeError("can't start new thread")
        begin(thread)
        running.append(thread)

    monkeypatch.setattr(Thread, "start", start)
    assert bad("list", "methods").says("threads 2 6 OPENBLAS_NUM_THREADS")
    assert not any(thread.is_alive() for thread in running)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    good("list", "methods")


def test_an_interrupt_while_modules_are_imported():
    """The command says nothing, whenever the interrupt comes after the first line of ours."""
    for wait in (0.0, 0.1):
        process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.argv[0] = 'pren'; import pren.cli; print(flush=True); {SLOW}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        assert process.communicate() == ("", "")
        assert process.returncode == 130


SLOW = "import time; time.sleep(20)"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (RuntimeError("can't start new thread"), 2, "[threads]"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), 2, "[threads]"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "[output]"),
        (OSError(errno.ENOSPC, "No space left on device", "file"), 2, "[file]: file: No space"),
        (ImportError("libx.so: failed to map segment from shared object"), 2, "[memory]"),
        (MemoryError("x"), 2, "[memory]: There is not enough memory (x)"),
        (BrokenPipeError(), 141, ""),
        (RuntimeError("a defect of ours"), None, ""),
        (ImportError("No module named x"), None, ""),
    ],
)
def test_one_message(error, code, said, capsys):
    assert explained(error) == code
    assert said in capsys.readouterr().err
