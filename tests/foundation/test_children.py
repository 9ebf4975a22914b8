"""Processes that end with the one that started them."""

import signal
import subprocess
import sys

from pren.foundation.children import ended_by

CHILD = """
import sys, time
from pren.foundation.children import end_with_parent
end_with_parent(sys.stdin.fileno())
print(flush=True)
time.sleep(600)
"""
PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE)
time.sleep(600)
"""


def test_a_child_ends_when_its_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE)
    try:
        assert parent.stdout.read(1) == b"\n"  # by the child, which is up
        parent.kill()
        parent.wait()
        assert parent.stdout.read() == b""  # which only comes to its end when the child, too, has closed it
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


def test_what_ended_a_process():
    assert ended_by(-signal.SIGTERM) == "SIGTERM"
    assert ended_by(-signal.SIGKILL) == "SIGKILL (perhaps the system ran out of memory)"
