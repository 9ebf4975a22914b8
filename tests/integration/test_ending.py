"""How commands end where the machine has no more: no room for output, no reader, no memory, and early interrupts."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time

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


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_pipe_that_nobody_reads(more):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*LIST, *more], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_too_little_memory_to_load_what_is_needed(arrays, tmp_path):
    def little():
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

    command = [sys.executable, "-m", "pren.cli", "fit", "numbers-features", "--method=eszsl", "--rehearsals=0"]
    done = subprocess.run(
        [*command, f"--out={tmp_path / 'run'}"], preexec_fn=little, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Error [memory]: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_while_modules_are_imported():
    """The command says nothing, whenever the interrupt comes after the first line of ours."""
    for wait in (0.0, 0.1):
        process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.argv[0] = 'pren'; import pren.cli; print(flush=True); {SLOW}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Where the tests run in the background of a shell, they and their children would ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
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
