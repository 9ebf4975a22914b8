"""Several real processes over gloo: what they tell each other, and that they train what one process trains."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

TEAM = Path(__file__).with_name("team.py")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def run(processes, *tasks):
    """Do tasks in several processes and return how each of them ended."""
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "NODE_RANK": "0", "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, TEAM, str(processes), *tasks],
            env={**os.environ, **shared, "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(processes)
    ]
    try:
        said = [process.communicate(timeout=200)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    return [process.returncode for process in running], "\n".join(said)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [3])  # heads and images do not divide evenly; two would cost as much again
def test_a_team_does_what_one_does(processes):
    codes, said = run(processes, "tell", "divide", "fit", "resume", "photographs", "fail")
    assert codes == [0] * processes, said
