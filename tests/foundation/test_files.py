"""Writing that can be interrupted at any moment."""

import csv
import errno
import io
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refused
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from pren.foundation.files import (
    WRITING,
    _machine,
    check_links,
    copy,
    from_cell,
    new_folder,
    no_formula,
    write_bytes,
    write_csv,
    write_json,
    write_tensors,
)

KINDS = (torch.complex64, torch.float64, torch.float32, torch.float16, torch.bfloat16)
KINDS += (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


@pytest.fixture
def full_disk(monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class TestWriteBytes:
    def test_content_is_there_and_nothing_else(self, tmp_path):
        write_bytes(tmp_path / "a", b"one")
        write_bytes(tmp_path / "a", b"two")
        assert (tmp_path / "a").read_bytes() == b"two"
        assert names(tmp_path) == ["a"]

    def test_content_is_on_the_disk_before_it_has_its_name(self, tmp_path, monkeypatch):
        found = []
        monkeypatch.setattr(os, "fsync", lambda _: found.append((names(tmp_path), (tmp_path / "a").exists())))
        write_bytes(tmp_path / "a", b"one")
        ((unfinished,), there), last = found  # the content, and then the name
        assert unfinished.startswith(f"{WRITING}a.")
        assert (there, last) == (False, (["a"], True))

    def test_a_full_disk_leaves_the_old_content(self, tmp_path, full_disk):
        (tmp_path / "a").write_bytes(b"old")
        with refused("write-failed"):
            write_bytes(tmp_path / "a", b"new")
        assert (tmp_path / "a").read_bytes() == b"old"
        assert names(tmp_path) == ["a"]

    def test_several_write_the_same_file(self, tmp_path):
        """As two runs do that share a cache: no write fails, and what is there is whole."""

        def write(number):
            for _ in range(25):
                write_bytes(tmp_path / "a", bytes([number]) * 100_000)
                write_tensors(tmp_path / "x.safetensors", {"a": torch.full((50,), float(number))})

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(write, range(4)))
        assert set((tmp_path / "a").read_bytes()) <= {0, 1, 2, 3}
        assert len(set((tmp_path / "a").read_bytes())) == 1
        assert len(set(load_file(tmp_path / "x.safetensors")["a"].tolist())) == 1
        assert names(tmp_path) == ["a", "x.safetensors"]

    def test_what_others_are_writing_stays_and_what_the_dead_have_left_goes(self, tmp_path):
        gone = subprocess.Popen(["true"])
        gone.wait()
        machine = _machine()
        dead, alive = (f"{WRITING}a.{machine}-{number}-00000000" for number in (gone.pid, os.getppid()))
        elsewhere, other = f"{WRITING}a.000000-{gone.pid}-00000000", f"{WRITING}a.b"
        for name in (dead, f"{dead}.folder", alive, elsewhere, other):
            (tmp_path / name).write_text("half a fi")
        write_bytes(tmp_path / "a", b"new")
        assert names(tmp_path) == sorted([alive, elsewhere, other, "a"])

    def test_names_as_long_as_a_name_can_be(self, tmp_path):
        for name in ("a" * 255, "ä" * 127):
            write_bytes(tmp_path / name, b"new")
        assert len(names(tmp_path)) == 2

    def test_a_leftover_is_written_over(self, tmp_path):
        (tmp_path / f"{WRITING}a").write_bytes(b"much longer than what comes now")
        write_bytes(tmp_path / "a", b"new")
        assert (tmp_path / "a").read_bytes() == b"new"
        assert names(tmp_path) == ["a"]

    def test_places_that_cannot_be_written_to(self, tmp_path):
        (tmp_path / "file").write_bytes(b"here before")
        (tmp_path / "folder").mkdir()
        for path in ("nowhere/a", "file/a", "folder", "x" * 300):
            with refused("write-failed"):
                write_bytes(tmp_path / path, b"new")
        assert (tmp_path / "file").read_bytes() == b"here before"
        assert names(tmp_path) == ["file", "folder"]


class TestTables:
    # What a file can hold: no halves of surrogate pairs. csv.reader of Python 3.10 does not take NUL.
    @given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, max_size=4))
    @example(["\r"])
    def test_any_text_comes_back(self, tmp_path_factory, cells):
        path = tmp_path_factory.mktemp("table") / "a.csv"
        rows = [["0", *cells], ["1", *reversed(cells)]]
        write_csv(path, ["image"] * (len(cells) + 1), rows)
        with path.open(newline="", encoding="utf-8") as file:
            header, *written = csv.reader(file)
        assert header == ["image"] * (len(cells) + 1)
        assert [[from_cell(cell) for cell in row] for row in written] == rows

    @pytest.mark.parametrize(
        "name", ["=1+1", "=cmd|'calc'!A0", "@SUM(A1)", "-1+2", "+1", "\t=1", "\r=1", "\n=1", "＝1"]
    )
    @pytest.mark.parametrize("before", ["", "'", "''"])
    def test_no_formula_stands_in_a_table(self, tmp_path, name, before):
        write_csv(tmp_path / "a.csv", ["class", "score"], [[f"{before}{name}", -1.5]])
        with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
            cell, score = list(csv.reader(file))[1]
        assert cell == f"'{before}{name}"
        assert from_cell(cell) == f"{before}{name}"
        assert score == "-1.5"

    @pytest.mark.parametrize("name", ["'", "''", "'a", "a=1", "1-2", " =1", "'a'=1", ""])
    def test_other_text_stays_as_it_is(self, name):
        assert no_formula(name) == from_cell(name) == name

    @pytest.mark.parametrize(
        "name", ["a\rb", "a\nb", "a\r\nb", "a,b", '"a"', "'a'", " a ", "a\tb", "\x1b[31m", "\u2028"]
    )
    def test_hostile_names_come_back(self, tmp_path, name):
        write_csv(tmp_path / "a.csv", ["image", "class"], [[0, name], [1, "other"]])
        text = (tmp_path / "a.csv").read_bytes().decode()
        assert list(csv.reader(io.StringIO(text, newline=""))) == [["image", "class"], ["0", name], ["1", "other"]]

    def test_json_is_for_people_and_machines(self, tmp_path):
        content = {"b": [1, 0.1, None], "a": "ä\x1b\n"}
        write_json(tmp_path / "a.json", content)
        text = (tmp_path / "a.json").read_text(encoding="utf-8")
        assert json.loads(text) == content
        assert text.endswith("}\n")
        assert "\x1b" not in text
        assert len(text.splitlines()) > 2


class TestNewFolder:
    def test_it_appears_when_it_is_complete(self, tmp_path):
        with new_folder(tmp_path / "a") as writing:
            (writing / "x").write_text("1")
            assert not (tmp_path / "a").exists()
        assert names(tmp_path) == ["a"]
        assert names(tmp_path / "a") == ["x"]

    def test_it_does_not_appear_if_it_is_not(self, tmp_path):
        def write():
            with new_folder(tmp_path / "a") as writing:
                (writing / "x").write_text("1")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write()
        assert not (tmp_path / "a").exists()

    def test_a_leftover_is_cleared_away(self, tmp_path):
        (tmp_path / f"{WRITING}a" / "deep").mkdir(parents=True)
        (tmp_path / f"{WRITING}a" / "old").write_text("1")
        with new_folder(tmp_path / "a") as writing:
            (writing / "x").write_text("1")
        assert names(tmp_path / "a") == ["x"]

    def test_a_full_disk_is_explained(self, tmp_path, full_disk):
        with refused("write-failed"), new_folder(tmp_path / "a") as writing:
            (writing / "x").write_text("1")
        assert not (tmp_path / "a").exists()


class TestCopy:
    def test_it_replaces_what_was_there(self, tmp_path):
        (tmp_path / "source").write_text("new")
        (tmp_path / "a").write_text("old")
        copy(tmp_path / "source", tmp_path / "a")
        assert (tmp_path / "a").read_text() == "new"
        assert names(tmp_path) == ["a", "source"]

    def test_damage_to_one_leaves_the_other(self, tmp_path):
        (tmp_path / "source").write_text("new")
        copy(tmp_path / "source", tmp_path / "a")
        (tmp_path / "source").write_text("newer")
        assert (tmp_path / "a").read_text() == "new"

    def test_no_source(self, tmp_path):
        (tmp_path / "a").write_text("old")
        with refused("write-failed"):
            copy(tmp_path / "nowhere", tmp_path / "a")
        assert (tmp_path / "a").read_text() == "old"


class TestCheckLinks:
    def test_links_inside_are_let_through(self, tmp_path):
        (tmp_path / "file").touch()
        (tmp_path / "link").symlink_to("file")
        check_links(tmp_path)

    def test_links_that_lead_out_are_refused(self, tmp_path):
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "link").symlink_to(tmp_path)
        with refused("link-outside"):
            check_links(tmp_path / "folder")

    @pytest.mark.skipif(sys.version_info >= (3, 13), reason="there such a link resolves to itself, which is inside")
    def test_links_in_a_circle_are_refused(self, tmp_path):
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with refused("link-loop"):
            check_links(tmp_path)


class TestWriteTensors:
    """safetensors' own reader, which checks the form of a file, is the judge."""

    @given(
        st.dictionaries(
            st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8).filter("__metadata__".__ne__),
            st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 4), max_size=3)),
            max_size=5,
        ),
        st.none()
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",)), max_size=5), st.just("Ü"), max_size=2),
        st.integers(0, 99),
    )
    def test_what_is_written_is_read(self, tmp_path_factory, kinds, metadata, seed):
        generator = torch.Generator().manual_seed(seed)
        tensors = {
            name: torch.randint(0, 2, shape, generator=generator).to(kind) for name, (kind, shape) in kinds.items()
        }
        path = tmp_path_factory.mktemp("tensors") / "x.safetensors"
        write_tensors(path, tensors, metadata)
        back = load_file(path)
        assert back.keys() == tensors.keys()
        for name, value in tensors.items():
            assert back[name].dtype == value.dtype
            assert back[name].equal(value)
        with safe_open(path, framework="pt") as file:
            assert (file.metadata() or {}) == (metadata or {})

    def test_a_view_is_written_as_it_looks(self, tmp_path):
        whole = torch.arange(24.0).reshape(4, 6)
        one = torch.tensor([7]).as_strided((1,), (0,))
        write_tensors(tmp_path / "x.safetensors", {"part": whole.T[1:4], "again": whole[2], "one": one})
        back = load_file(tmp_path / "x.safetensors")
        assert back["part"].equal(whole.T[1:4])
        assert back["again"].equal(whole[2])
        assert back["one"].equal(one)

    def test_others_may_read_it_as_any_file(self, tmp_path):
        write_tensors(tmp_path / "x.safetensors", {"a": torch.zeros(3)})
        write_bytes(tmp_path / "plain", b"")
        assert (tmp_path / "x.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_what_is_unfinished_lies_in_a_folder_that_is_found(self, tmp_path, monkeypatch):
        seen = []

        def crash(tensors, path, metadata):
            seen.extend([path.name, *(part.name for part in tmp_path.iterdir())])
            raise SafetensorError("I/O error: No space left on device (os error 28)")

        monkeypatch.setattr("safetensors.torch.save_file", crash)
        (tmp_path / f"{WRITING}x.safetensors.folder").mkdir()
        (tmp_path / f"{WRITING}x.safetensors.folder" / ".tmpAbCdEf").write_text("left by a crash")
        with refused("write-failed"):
            write_tensors(tmp_path / "x.safetensors", {"a": torch.zeros(3)})
        written, folder = seen
        assert written == "x.safetensors"
        assert re.fullmatch(rf"{re.escape(WRITING)}x\.safetensors\..*\.folder", folder)
        assert names(tmp_path) == []
