"""The command line in this process, with data small enough to fit in a moment."""

import logging
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from pren.cli import __main__ as command_line

SMALL = (
    "--method=pren",
    "--set=heads=4",
    "--set=dim=4",
    "--set=rounds=2",
    "--set=initial_batches=6",
    "--set=batches=2",
    "--set=batch_size=8",
    "--set=hidden=[8]",
    "--set=lr=3e-2",
)


COLOURS = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "yellow": (1, 1, 0), "violet": (1, 0, 1)}
SEEN = ("red", "green", "blue")
MORE = {"cyan": (0, 1, 1), "white": (1, 1, 1)}


class Result(NamedTuple):
    """What became of a command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Told:
    """The one message of a command that was refused."""

    code: str
    message: str

    def says(self, expected):
        """Whether it has a code and, after blanks in `expected`, names facts: files, numbers, options."""
        code, *facts = expected.split()
        return self.code == code and bool(self.message.strip()) and all(fact in self.message for fact in facts)


@pytest.fixture(scope="session")
def small():
    """The arguments that make `pren fit` quick."""
    return SMALL


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """A folder of its own to stand in, a wide window without colours, and no waiting for the disk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr("pren.cli.fit.keep_all_memory", lambda: True)  # which is for the whole process
    monkeypatch.setenv("COLUMNS", "250")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    yield
    logging.getLogger("pren").handlers.clear()  # the command line sends the log to the terminal


@pytest.fixture
def pren(monkeypatch, capsys):
    """Run ``pren`` with arguments, in this process."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pren", *map(str, arguments)])
        capsys.readouterr()
        try:
            command_line.main()
            code = 0
        except SystemExit as exit_:
            code = exit_.code or 0
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def good(pren):
    """Run a command that must succeed."""

    def run(*arguments):
        result = pren(*arguments)
        assert result.code == 0, result.err
        return result

    return run


@pytest.fixture
def bad(pren):
    """Run a command that must fail in the way that users can mend, and return what it told."""

    def run(*arguments):
        result = pren(*arguments)
        lines = result.err.splitlines()
        messages = [line for line in lines if line.startswith("Error")]
        assert result.code == 2
        assert result.out == ""
        assert len(messages) == 1
        assert lines[-1] == messages[0]
        assert "Traceback" not in result.err
        code, message = re.fullmatch(r"Error(?: \[([a-z0-9-]+)\])?: (.*)", messages[0]).groups()
        return Told(code or "usage", message)

    return run


@pytest.fixture
def data(arrays, tmp_path):
    """Write a data file and return its name; keywords replace arrays, None leaves them out."""

    def write(form="features", setting="zsl", file="data.npz", **replaced):
        content = {**arrays(form, setting), **replaced}
        np.savez(tmp_path / file, **{key: value for key, value in content.items() if value is not None})
        return file

    return write


@pytest.fixture
def contents(tmp_path):
    """Every file there is, with its bytes and its time, to see that nothing was lost or touched."""

    def read(*without):
        return {
            path.relative_to(tmp_path).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
            if path.is_file()
            else None
            for path in sorted(tmp_path.rglob("*"))
            if path.name not in without
        }

    return read


def photograph(path, colour, rng):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = 200 * np.array((COLOURS | MORE)[colour]) + rng.integers(0, 50, (9, 12, 3))
    Image.fromarray(pixels.astype(np.uint8)).save(path)


@pytest.fixture
def mydata():
    """Three seen colours, two unseen ones; the names of the pool's files say nothing."""
    rng = np.random.default_rng(0)
    folder = Path("mydata")
    for colour in SEEN:
        for number in range(2):
            photograph(folder / "images" / colour / f"{number}.png", colour, rng)
    answers = {}
    for number in range(6):
        name = f"{'new/' * (number % 2)}{number}.png"
        answers[name] = "yellow" if number < 3 else "violet"
        photograph(folder / "unlabelled" / name, answers[name], rng)
    rows = [f"{name},{r},{g},{b}\n" for name, (r, g, b) in COLOURS.items()]
    (folder / "signatures.csv").write_text("class,red,green,blue\n" + "".join(rows))
    (folder / "answers.csv").write_text("file,class\n" + "".join(f"{k},{v}\n" for k, v in answers.items()))
    return folder


@pytest.fixture
def backbone(tiny_weights):
    """The arguments that name a tiny network and its weights, in a file that is given by a relative path."""
    shutil.copy(tiny_weights, "tiny.safetensors")
    return "--backbone", "test_resnet", "--weights", "tiny.safetensors"


@pytest.fixture
def manydata(mydata):
    """The same with two more seen colours: enough to draw validation folds from."""
    rng = np.random.default_rng(1)
    for name, (r, g, b) in MORE.items():
        for number in range(2):
            photograph(mydata / "images" / name / f"{number}.png", name, rng)
        with (mydata / "signatures.csv").open("a") as file:
            file.write(f"{name},{r},{g},{b}\n")
    return mydata


@pytest.fixture
def root(arrays):
    """A made-up CUB, with both splits and one fold, in the folder xlsa17."""
    content = arrays()
    labels = np.concatenate([content["labels"], content["answers"]])
    numbers = np.arange(1, len(labels) + 1)
    seen = numbers[: len(content["labels"])]
    names = np.empty((8, 1), dtype=object)
    names[:, 0] = content["class_names"]
    splits = {
        "att": content["signatures"].T,
        "allclasses_names": names,
        "trainval_loc": seen[seen % 5 != 0],
        "test_seen_loc": seen[seen % 5 == 0],
        "test_unseen_loc": numbers[len(seen) :],
    }
    for kind in ("data", "standard_split"):
        folder = Path("xlsa17", kind, "CUB")
        folder.mkdir(parents=True)
        savemat(folder / "att_splits.mat", splits)
        for file, classes in {
            "trainvalclasses": names[:5],
            "testclasses": names[5:],
            "trainclasses1": names[:3],
            "valclasses1": names[3:5],
        }.items():
            (folder / f"{file}.txt").write_text("\n".join(classes.ravel()))
    features = np.concatenate([content["features"], content["pool"]]).T
    savemat("xlsa17/data/CUB/mine.mat", {"features": features, "labels": labels + 1})
    return "."
