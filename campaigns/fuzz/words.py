"""Mutated tables and vectors of a folder of photographs, and hostile words for classes that are added to a run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray
from PIL import Image

from campaigns.fuzz.arrays import CHANGES
from campaigns.fuzz.command import changes, pren, snapshot
from campaigns.fuzz.mutations import BYTE_EDITS, LINE_EDITS, ByteEdit, LineEdit
from campaigns.fuzz.templates import Workshop
from pren.data.describe import ENCODERS

TABLES = {
    "signatures.csv": "class,red,green\nr,1,0\ng,0,1\nb,?,0.5\ny,1,\n",
    "descriptions.csv": "class,description\nr,it is red\nr,red\ng,it is green\nb,it is neither\ny,red and green\n",
    "classes.csv": "class\nr\ng\nb\ny\n",
    "answers.csv": "file,class\n0.png,b\n1.png,y\n",
}
VECTORS = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0.5, 1], [1, 1, 0]])
SOURCES = (
    *("attributes", "descriptions", "names", "vectors"),
    *("attributes,descriptions", "descriptions,names", "attributes,vectors", "vectors,names"),
)
QUICK = {"backbone": "small-cnn", "heads": 2, "dim": 1, "rounds": 1, "initial_batches": 1, "batches": 1, "hidden": [4]}
WORDS = st.text(max_size=12) | st.sampled_from(
    [
        "red=1",
        "red=1,green=0",
        "red=nan",
        "=1+1",
        "\0",
        "\ud800",
        "\x1b[31m",
        "../x",
        "/",
        ".",
        " ",
        "",
        "r",
        "x" * 300,
        "x" * 10_001,
    ]
)


@dataclass(frozen=True)
class Own:
    """A table of the folder, what happened to it, what classes are described by, and what is said of a new one."""

    file: str
    edits: tuple[ByteEdit | LineEdit, ...]
    sources: str
    weights: str | None
    added: tuple[str, str, str] | None  # a name, what follows --attributes, what follows --description
    change: str | None  # of the array of vectors, before its file is edited


CASES: SearchStrategy[Own] = st.builds(
    Own,
    st.sampled_from([*TABLES, "vectors.npy"]),
    st.lists(LINE_EDITS | BYTE_EDITS, max_size=2).map(tuple),
    st.sampled_from(SOURCES),
    st.none() | st.sampled_from(["[1,2]", "[0,1]", "[1e400,1]", "[]", "x", "[1,2,3]"]),
    st.none() | st.tuples(WORDS, WORDS, WORDS),
    st.none() | st.sampled_from(list(CHANGES)),
)


def check(workshop: Workshop, case: Own) -> str:
    """Fit to such a folder and, if that can be, add a class."""
    place = workshop.fresh()
    for name, colour in (("images/r/0", 200), ("images/g/0", 90), ("unlabelled/0", 10), ("unlabelled/1", 250)):
        path = place / "own" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (colour, 255 - colour, 0)).save(path)
    files = {file: text.encode() for file, text in TABLES.items()} | {"vectors.npy": _array(case.change)}
    for file, content in files.items():
        (place / "own" / file).write_bytes(_edited(content, case.edits if file == case.file else ()))
    weights = [] if case.weights is None else ["--option", f"signature_weights={case.weights}"]
    arguments = ["--signatures", case.sources, *weights, "--rehearsals", "0", "--out", "run"]
    quick = ["--method", "pren", *(f"--set={key}={value}" for key, value in QUICK.items())]
    before = snapshot(place / "own")
    with mock.patch.object(ENCODERS, "_entries", {"minilm": _letters}):
        result = pren("fit", "own", *quick, *arguments)
        if result.code == 0 and case.added is not None:
            name, numbers, words = case.added
            run = snapshot(place / "run")
            said = ("--attributes", numbers, "--description", words)
            result = pren("classes", "add", *said, "--out", "new", "--", "run", name)
            changed = changes(run, snapshot(place / "run"))
            assert not changed, f"the run has changed: {changed}"
            assert (result.code == 0) == Path("new").exists(), "a model without success, or the other way round"
    changed = changes(before, snapshot(place / "own"))
    assert not changed, f"the user's files have changed: {changed}"
    return result.outcome


def _array(change: str | None) -> bytes:
    """The vectors as a file."""
    file = io.BytesIO()
    np.save(file, VECTORS if change is None else CHANGES[change](VECTORS), allow_pickle=True)
    return file.getvalue()


def _edited(content: bytes, edits: Sequence[ByteEdit | LineEdit]) -> bytes:
    for edit in edits:
        if isinstance(edit, ByteEdit):
            content = edit.apply(content)
        else:
            content = edit.apply(content.decode(errors="surrogateescape")).encode(errors="surrogatepass")
    return content


def _letters(texts: Sequence[str]) -> NDArray[np.float64]:
    """How often some letters are in each text."""
    return np.array([[1 + text.count(letter) for letter in "regnit"] for text in texts], dtype=float)
