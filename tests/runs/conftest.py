"""Data files, configurations and run folders small enough to fit in a moment."""

import csv
import hashlib
import json

import numpy as np
import pytest

from pren.runs.config import RunConfig
from pren.runs.train import train

SMALL = {"heads": 3, "rounds": 3, "initial_batches": 4, "batches": 3, "batch_size": 8, "hidden": [8], "lr": 1e-2}


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, told apart from the one that stops the tests."""


@pytest.fixture(scope="session")
def arrays():
    """The arrays of a data file: classes do not stand in the order of their names, and the answers are known."""

    def build(form="features", setting="zsl", seed=0):
        rng = np.random.default_rng(seed)
        shape = (5,) if form == "features" else (1, 8, 12)
        labels = np.repeat(np.arange(4), 6)
        answers = rng.permutation(np.repeat(np.arange(4 if setting == "zsl" else 0, 8), 5))
        centres = rng.normal(size=(8, *shape))
        features, pool = (
            (centres[which] + 0.3 * rng.normal(size=(len(which), *shape))).astype(np.float32)
            for which in (labels, answers)
        )
        names = np.array([f"{letter} class" for letter in "hgfedcba"])
        return {
            "features": features,
            "labels": labels,
            "signatures": rng.random((8, 6)),
            "pool": pool,
            "class_names": names,
            "answers": answers,
        }

    return build


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
            train(config, out, on_round=stop_after(number), **options)

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
                found[name] = path.read_bytes() if path.name not in ("config.yaml", "timings.csv") else "present"
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
