"""A folder per class: every photograph once, whatever it and its class are called."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pren.images.files import ImageFiles
from pren.label.predictions import Row
from pren.label.sorting import UNSURE, Sorter, folder_names, safe_name
from pren.problem.inputs import ArrayInputs

HOSTILE = (
    "../../etc",
    "/etc/passwd",
    "..",
    ".",
    "",
    "a/b",
    "a\\b",
    "a\0b",
    "x" * 300,
    "é" * 200,
    "CON:",
    "A",
    "a",
    " a",
    UNSURE,
)


@given(st.lists(st.text(), unique=True))
def test_names_of_folders_stay_inside_and_apart(classes):
    names = folder_names(classes)
    safe = list(names.values())
    assert list(names) == classes
    assert len({name.casefold() for name in safe}) == len(safe)
    for name in safe:
        assert Path(name).name == name
        assert len(name.encode()) < 200
        assert name not in ("", ".", "..")


def test_the_table_keeps_its_place():
    """`--sort-into` writes labels.csv beside the folders of classes, and its parts as long as it works."""
    taken = {"labels.csv", "labels.csv.parts", UNSURE}
    names = folder_names(["labels.csv", "Labels.CSV", "labels.csv.parts", "_UNSURE"])
    assert not taken & {name.casefold() for name in names.values()}


def test_ordinary_names_stay():
    assert folder_names(["001.Black footed Albatross", "Größe (2)"]) == {
        "001.Black footed Albatross": "001.Black footed Albatross",
        "Größe (2)": "Größe (2)",
    }
    assert safe_name("a/b") != safe_name("a_b") == "a_b"


@pytest.fixture
def taken(tmp_path):
    """Some photographs; their content is what counts here."""
    for name in ("x/1.jpg", "y/1.jpg", "z/1.jpg", "2.jpg"):
        (tmp_path / "from" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "from" / name).write_bytes(name.encode())
    return ["x/1.jpg", "y/1.jpg", "z/1.jpg", "2.jpg"]


@pytest.fixture
def put(tmp_path):
    def sort(items, labels, how="link", classes=("a", "b", *HOSTILE)):
        files = ImageFiles(tmp_path / "from", items)
        names = [item if isinstance(item, str) else f"{place}.jpg" for place, item in enumerate(items)]
        rows = [Row(name, () if label is None else ((label, 1.0),)) for name, label in zip(names, labels, strict=True)]
        list(Sorter(tmp_path / "to", files, list(dict.fromkeys(classes)), how).watch([rows[:1], rows[1:]]))
        return {
            path.relative_to(tmp_path / "to").as_posix(): path.read_bytes().decode()
            for path in sorted((tmp_path / "to").rglob("*"))
            if path.is_file()
        }

    return sort


@pytest.mark.parametrize("how", ["link", "symlink", "copy"])
def test_every_way(put, taken, tmp_path, how):
    expected = {"a/1.jpg": "x/1.jpg", "a/1-1.jpg": "y/1.jpg", "b/1.jpg": "z/1.jpg", f"{UNSURE}/2.jpg": "2.jpg"}
    assert put(taken, ["a", "a", "b", None], how) == expected
    assert put(taken, ["a", "a", "b", None], how) == expected  # again, and nothing twice
    first, original = tmp_path / "to" / "a" / "1.jpg", tmp_path / "from" / "x" / "1.jpg"
    assert first.is_symlink() == (how == "symlink")
    assert (first.stat().st_ino == original.stat().st_ino) == (how != "copy")


def test_links_that_cannot_be_are_copies(put, taken, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(18, "another disk")))
    assert put(taken[:1], ["a"]) == {"a/1.jpg": "x/1.jpg"}
    assert (tmp_path / "to/a/1.jpg").stat().st_nlink == 1


def test_what_is_in_memory_is_written(put):
    assert put([b"one", b"two"], ["a", "a"]) == {"a/0.jpg": "one", "a/1.jpg": "two"}


def test_nothing_is_overwritten(put, taken, tmp_path):
    (tmp_path / "to" / "a").mkdir(parents=True)
    (tmp_path / "to" / "a" / "1.jpg").write_bytes(b"precious")
    (tmp_path / "to" / "a" / "2.jpg").symlink_to("nowhere")
    found = put(taken, ["a", "b", "b", "a"])
    assert (found["a/1.jpg"], found["a/1-0.jpg"], found["a/2-3.jpg"]) == ("precious", "x/1.jpg", "2.jpg")
    assert (tmp_path / "to" / "a" / "2.jpg").is_symlink()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_classes(put, taken, tmp_path, name):
    found = put(taken[:1], [name])
    assert list(found.values()) == ["x/1.jpg"]
    assert {path.name for path in tmp_path.iterdir()} == {"from", "to"}
    assert len(next(iter(found)).split("/")) == 2


def test_unreadable_ones_stay(tmp_path):
    files = ImageFiles(tmp_path, ["no.jpg"])
    row = Row("no.jpg", error="cannot be read")
    list(Sorter(tmp_path / "to", files, ["a"], "link").watch([[row]]))
    assert not (tmp_path / "to").exists()


def test_features_cannot_be_sorted(tmp_path, features):
    with refused("no-photographs"):
        Sorter(tmp_path, ArrayInputs(features), ["a"], "link")


def test_a_file_in_the_way_of_a_folder(put, taken, tmp_path):
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "a").write_text("precious")
    with refused("write-failed"):
        put(taken, ["a"] * 4)
