"""Mutated folders in the form of xlsa17: MATLAB files and lists of classes."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray
from scipy.io import savemat

from campaigns.fuzz.command import changes, pren, snapshot
from campaigns.fuzz.mutations import BYTE_EDITS, ByteEdit
from campaigns.fuzz.templates import Workshop

FILES = ("att_splits.mat", "res101.mat", "allclasses.txt", "trainvalclasses.txt")
PER_CLASS = 4
CLASSES = [f"{letter} class" for letter in "fedcba"]  # the last two are unseen


@dataclass(frozen=True)
class Benchmark:
    """Which file is changed, and how.

    Attributes:
        file: One of `FILES`.
        edits: What is done to its bytes.
        compressed: Whether MATLAB's files are compressed: then most edits do not get far.
    """

    file: str
    edits: tuple[ByteEdit, ...]
    compressed: bool


CASES: SearchStrategy[Benchmark] = st.builds(
    Benchmark,
    st.sampled_from(FILES[:2]) | st.sampled_from(FILES[:2]) | st.sampled_from(FILES),
    st.lists(BYTE_EDITS, min_size=1, max_size=3).map(tuple),
    st.sampled_from([False, False, True]),
)


def check(workshop: Workshop, case: Benchmark) -> str:
    """Fit on the damaged benchmark."""
    folder = workshop.fresh() / "x"
    folder.mkdir()
    for name, content in _files(case.compressed).items():
        for edit in case.edits if name == case.file else ():
            content = edit.apply(content)
        (folder / name).write_bytes(content)
    before = snapshot(folder)
    result = pren("fit", "xlsa17", "--root", "x", "--method", "eszsl", "--rehearsals", "0", "--out", "run", "--json")
    changed = changes(before, snapshot(folder))
    assert not changed, f"input files have changed: {changed}"
    return result.outcome


@cache
def _files(compressed: bool) -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(1, 7), PER_CLASS))
    seen, unseen = (np.flatnonzero(mask) + 1 for mask in (labels <= 4, labels > 4))
    attributes = rng.random((5, 6))
    contents = {
        "att_splits.mat": {
            "att": attributes / np.linalg.norm(attributes, axis=0),
            "allclasses_names": _cell(CLASSES),
            "trainval_loc": seen[4:, None].astype(np.uint16),
            "test_seen_loc": seen[:4, None].astype(np.uint16),
            "test_unseen_loc": unseen[:, None].astype(np.uint16),
        },
        "res101.mat": {
            "features": rng.normal(size=(4, len(labels))).astype(np.float32),
            "labels": labels[:, None].astype(np.uint16),
            "image_files": _cell([f"/x/{CLASSES[label - 1]}/{place}.jpg" for place, label in enumerate(labels)]),
        },
    }
    lists = {"allclasses.txt": CLASSES, "trainvalclasses.txt": CLASSES[:4]}
    return {name: _mat(content, compressed) for name, content in contents.items()} | {
        name: "\n".join(names).encode() for name, names in lists.items()
    }


def _mat(content: dict[str, Any], compressed: bool) -> bytes:
    file = io.BytesIO()
    savemat(file, content, do_compression=compressed)
    return file.getvalue()


def _cell(values: list[str]) -> NDArray[Any]:
    """A column of text, as MATLAB keeps it."""
    result = np.empty((len(values), 1), dtype=object)
    result[:, 0] = values
    return result
