"""``--threads``: how many threads a command and the processes it starts may have."""

import os
import subprocess
import sys

import pytest
import torch

from pren.foundation.children import THREAD_VARIABLES
from pren.research.workers import threads_each


@pytest.fixture
def limits(monkeypatch):
    """What torch and BLAS are limited to, with an environment that is put back."""
    seen = []
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "7")
    monkeypatch.setattr(torch, "set_num_threads", lambda number: seen.append(("torch", number)))
    monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda number: seen.append(("blas", number)))
    return seen


def test_this_process_and_its_children(good, data, limits):
    good("fit", data(), "--method", "eszsl", "--threads", "1", "--out", "run")
    assert limits == [("torch", 1), ("blas", 1)]
    assert {os.environ[name] for name in THREAD_VARIABLES} == {"1"}
    assert threads_each(1) == 1


def test_left_out(good, data, limits):
    good("fit", data(), "--method", "eszsl", "--out", "run")
    assert limits == []
    assert os.environ[THREAD_VARIABLES[0]] == "7"


@pytest.mark.parametrize("verb", ["fit", "tune", "compare", "extract", "demo", "evaluate", "suggest"])
def test_every_verb_that_computes_has_it(good, pren, verb):
    assert "--threads" in good(verb, "--help").out
    assert pren(verb, "--threads", "0").code == 2


@pytest.mark.slow
def test_what_becomes_of_it():
    script = """
import torch
from pren.cli.options import use_threads
from threadpoolctl import threadpool_info
import numpy, scipy.linalg
use_threads(3)
print(torch.get_num_threads(), *{pool["num_threads"] for pool in threadpool_info()})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "3"]
