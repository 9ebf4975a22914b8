"""Data files, configurations and run folders small enough to fit in a moment."""

import csv
import hashlib
import json
import logging
import os

import numpy as np
import pytest
from run_folders import run_folder

from pren.store.config import RunConfig

SMALL = {
    "heads": 4,
    "dim": 4,
    "rounds": 3,
    "initial_batches": 10,
    "batches": 3,
    "batch_size": 8,
    "hidden": [8],
    "lr": 3e-2,
    "rho": 0.5,
}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """Nobody pulls the plug here, so files need not be on the disk before the next line."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(autouse=True)
def no_log_on_the_terminal():
    """Some tests call the command line, which sends the log there, also for those that follow."""
    yield
    logging.getLogger("pren").handlers.clear()


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, told apart from the one that stops the tests."""


@pytest.fixture
def data(arrays, tmp_path):
    """Write a data file and return its path; keywords replace arrays, None leaves them out."""

    def write(form="features", setting="zsl", file="data.npz", **replaced):
        content = {**arrays(form, setting), **replaced}
        np.savez(tmp_path / file, **{key: value for key, value in content.items() if value is not None})
        return str(tmp_path / file)

    return write


@pytest.fixture(scope="session")
def configure():
    """A configuration of a small run."""

    def build(data, method="pren", setting="zsl", **params):
        small = {} if method == "eszsl" else SMALL
        return RunConfig(data=str(data), method=method, setting=setting, params={**small, **params})

    return build


@pytest.fixture(scope="session")
def stop_after():
    """What to give `train` as `on_round` to interrupt it after some round."""

    def build(number):
        def on_round(done, method):
            if done.number == number:
                raise Interrupted

        return on_round

    return build


@pytest.fixture(scope="session")
def interrupted(stop_after):
    """Train until Ctrl-C after some round."""

    def run(config, out, number, **options):
        with pytest.raises(Interrupted):
            run_folder(config, out, on_round=stop_after(number), **options)

    return run


@pytest.fixture(scope="session")
def table():
    """The rows of a CSV file, with the header."""

    def read(path):
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.reader(file))

    return read


@pytest.fixture(scope="session")
def outcome():
    """Everything in a run folder that the same seed must give again: names and bytes, but no times and no paths."""

    def read(folder):
        found = {}
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_dir():
                found[name] = None
            elif path.name == "state.json":
                found[name] = json.loads(path.read_text())["history"]
            else:
                differs = path.name in ("config.yaml", "timings.csv", "manifest.json")  # times, and their checksums
                found[name] = "present" if differs else path.read_bytes()
        return found

    return read


@pytest.fixture(scope="session")
def fingerprint():
    """Every file of a folder with its bytes and times, to see that nothing was touched."""

    def read(folder):
        return {
            str(path.relative_to(folder)): (
                path.stat().st_mtime_ns,
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None,
            )
            for path in sorted(folder.rglob("*"))
        }

    return read
