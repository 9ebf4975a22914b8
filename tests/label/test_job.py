"""Any number of images: the table is the same however often the work was interrupted."""

import errno
import json
import resource
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from pren.foundation.errors import PrenError
from pren.foundation.files import WRITING, write_bytes
from pren.foundation.lock import Lock
from pren.label import job, parts
from pren.label.formats import WRITERS
from pren.label.job import Wanted, label
from pren.label.parts import parts_folder, was_finished
from pren.label.predictor import Predictor

pytestmark = pytest.mark.slow


class Killed(BaseException):
    pass


def test_in_parts_it_is_the_same_as_at_once(write, features, monkeypatch):
    told = []
    first, done = write(features, on_progress=lambda *numbers: told.append(numbers))
    monkeypatch.setattr(job, "ROWS", 100)
    second, again = write(features, "again.csv")
    assert first.read_bytes() == second.read_bytes()
    assert done == again
    assert (done.inputs, done.ranks, done.unreadable, done.unsure) == (23, 4, 0, 0)
    assert told == [(5, 5, 23), (10, 10, 23), (15, 15, 23), (20, 20, 23), (23, 23, 23)]
    assert not parts_folder(first).exists()


@pytest.mark.parametrize("count", [0, 1, 5, 10])
def test_whole_parts_and_none(write, features, count):
    out, done = write(features[:count])
    assert len(out.read_text().splitlines()) == 1 + count
    assert done.inputs == count


@pytest.mark.parametrize("moment", range(7))
def test_killed_at_any_writing_it_goes_on(write, features, monkeypatch, tmp_path, moment):
    """Each part is written once, the manifest and the table too."""
    whole, _ = write(features, "whole.csv")
    wrote = []

    def dying(path, content):
        if len(wrote) == moment:
            raise Killed
        wrote.append(path.name)
        write_bytes(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(parts, "write_bytes", dying)
        patch.setattr(job, "replacing", lambda path: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            write(features)
    told = []
    out, _ = write(features, on_progress=lambda done, now, total: told.append((done, now)))
    assert out.read_bytes() == whole.read_bytes()
    assert (told or [(23, 0)])[-1] == (23, 23 - min(5 * len(wrote), 23))  # nothing twice
    assert not parts_folder(out).exists()


@pytest.fixture
def interrupted(write, features, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setattr(job, "_join", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            write(features)
    return parts_folder(tmp_path / "out.csv")


@pytest.mark.parametrize(
    ("change", "wanted", "other"),
    [
        (lambda features: features + 1, {}, "source"),
        (lambda features: features[:-1], {}, "inputs, source"),
        (lambda features: features, {"top": 2}, "top"),
        (lambda features: features, {"among": "all"}, "among, top"),
    ],
)
def test_parts_of_another_table_are_refused(write, features, interrupted, change, wanted, other):
    before = sorted(path.name for path in interrupted.iterdir())
    with refused("parts-other"):
        write(change(features), **wanted)
    assert sorted(path.name for path in interrupted.iterdir()) == before


def test_parts_of_another_model_are_refused(write, features, interrupted, run, make_problem):
    from pren.methods.rivals.eszsl import ESZSL

    ESZSL(gamma=1.0).fit(make_problem(seed=1)).save(run)
    with refused("parts-other"):
        write(features)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b"[" * 5000])
def test_a_manifest_that_is_none(write, features, interrupted, content):
    (interrupted / "manifest.json").write_bytes(content)
    with refused("parts-other"):
        write(features)


@pytest.mark.parametrize("content", [b'{"input": "0"}\n', b"{\n", b"\xff\n", b"3\n"])
def test_a_damaged_part_is_named(write, features, interrupted, content):
    (interrupted / "0000001.jsonl").write_bytes(content)
    with refused("damaged"):
        write(features)
    (interrupted / "0000001.jsonl").unlink()
    assert write(features)[1].inputs == 23


def test_a_part_that_is_short_is_named(write, features, interrupted):
    lines = (interrupted / "0000001.jsonl").read_text().splitlines(keepends=True)
    (interrupted / "0000001.jsonl").write_text("".join(lines[:-1]))
    with refused("damaged"):
        write(features)


def test_killed_when_the_table_has_its_name(write, features, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setattr(parts.Parts, "remove", lambda _: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            write(features)
    out = tmp_path / "out.csv"
    assert len(out.read_text().splitlines()) == 24
    assert parts_folder(out).exists()
    assert was_finished(out)
    assert not parts_folder(out).exists()
    assert not was_finished(out)


@pytest.mark.parametrize("moment", range(8))
def test_killed_while_the_parts_are_removed(write, features, monkeypatch, tmp_path, moment):
    """Five parts, the manifest, what says that the table is whole, and then the folder."""
    out, gone = tmp_path / "out.csv", []

    def dying(remove):
        def removed(path):
            if len(gone) == moment:
                raise Killed
            gone.append(path)
            remove(path)

        return removed

    with monkeypatch.context() as patch:
        patch.setattr(parts.Parts, "remove", lambda _: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            write(features)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", dying(Path.unlink))
        patch.setattr(Path, "rmdir", dying(Path.rmdir))
        with pytest.raises(Killed):
            was_finished(out)
    assert len(gone) == moment
    assert was_finished(out)
    assert not parts_folder(out).exists()


def test_an_empty_folder_is_no_table(tmp_path):
    parts_folder(tmp_path / "out.csv").mkdir()
    assert not was_finished(tmp_path / "out.csv")


def test_a_table_of_somebody_else_is_not_finished(write, features, interrupted, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("precious")
    (interrupted / "finished.json").write_text("[1, 2, 3]")
    assert not was_finished(out)
    assert len(list(interrupted.glob("*.jsonl"))) == 5


def test_a_folder_of_somebody_else_stays(write, features, tmp_path):
    folder = parts_folder(tmp_path / "out.csv")
    folder.mkdir()
    (folder / "precious.txt").write_text("mine")
    with refused("out-taken"):
        write(features)
    assert [path.name for path in folder.iterdir()] == ["precious.txt"]


def test_what_somebody_has_put_among_the_parts_stays(write, features, interrupted):
    (interrupted / "precious.txt").write_text("mine")
    write(features)
    assert [path.name for path in interrupted.iterdir()] == ["precious.txt"]


def test_two_at_one_table(write, features, tmp_path):
    folder = parts_folder(tmp_path / "out.csv")
    folder.mkdir()
    lock = Lock(folder, "pren predict of another")
    with refused("in-use"):
        write(features)
    lock.release()
    write(features)


def test_a_full_disk(write, features, monkeypatch, tmp_path):
    whole, _ = write(features, "whole.csv")

    def full(path, ranks, batches):
        path.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setitem(job.WRITERS, "csv", full)
        with refused("write-failed"):
            write(features)
    assert not (tmp_path / "out.csv").exists()
    assert write(features)[0].read_bytes() == whole.read_bytes()


@pytest.fixture
def small_files():
    """Let this process write files of at most so many bytes, from now until the end of the test."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("form", sorted(WRITERS))
def test_a_disk_that_is_full_while_the_table_is_written(write, features, monkeypatch, tmp_path, form, small_files):
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    many = np.tile(features, (40, 1))
    monkeypatch.setattr(job, "ROWS", 100)
    whole, _ = write(many, "whole", form)
    with monkeypatch.context() as patch:
        patch.setattr(job, "_join", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            write(many, "out", form)
    kept = {path.name: path.read_bytes() for path in parts_folder(tmp_path / "out").glob("*.jsonl")}
    small_files(whole.stat().st_size // 2)
    with refused("write-failed"):
        write(many, "out", form)
    small_files(resource.RLIM_INFINITY)
    assert not [path for path in tmp_path.iterdir() if path.name in ("out", f"{WRITING}out")]
    assert {path.name: path.read_bytes() for path in parts_folder(tmp_path / "out").glob("*.jsonl")} == kept
    told = []
    out, _ = write(many, "out", form, on_progress=lambda *numbers: told.append(numbers))
    assert out.read_bytes() == whole.read_bytes()
    assert not told, "no row is computed again"


def test_json_lines_have_every_figure(write, run, features):
    out, _ = write(features, "out.jsonl", "jsonl", top=2)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    found = Predictor.load(run).label(features, 2)
    assert rows == [row.to_json() for row in found.rows()]
    assert [row["input"] for row in rows] == list(found.inputs)
    assert [[best["class"] for best in row["classes"]] for row in rows] == found.table.named(found.classes).tolist()
    assert np.array_equal([[best["score"] for best in row["classes"]] for row in rows], found.scores)
    assert all(row["confidence"] is row["familiarity"] is row["error"] is None for row in rows)


def test_what_fails_at_once_leaves_nothing(write, features, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    with refused("inputs-shape"):
        write(features[:, :4])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({*before, "model"})


def test_wanted_is_checked_before_anything_is_made(run, features, tmp_path):
    predictor = Predictor.load(run)
    with refused("no-rehearsals"):
        label(predictor, run, predictor.open(features), tmp_path / "a.csv", "csv", Wanted(min_accuracy=0.9))
    assert not parts_folder(tmp_path / "a.csv").exists()


def test_waiting_ends_when_all_parts_are_there_or_something_went_wrong(tmp_path, monkeypatch):
    store = parts.Parts(tmp_path / "out.csv", {})
    store.make_folder()
    store.claim()
    rested = []

    def another_works(seconds):
        rested.append(seconds)
        store.write(len(rested), [])

    monkeypatch.setattr(parts.time, "sleep", another_works)
    store.write(0, [])
    store.wait(3)
    assert len(rested) == 2
    with refused("planted"), store.telling_others():
        raise PrenError("planted", "the disk is full")
    store.wait(100)
    assert len(rested) == 2
    store.claim()  # as the next call does
    monkeypatch.setattr(parts, "LONG", 0.0)
    store.wait(100)
    assert len(rested) == 2
