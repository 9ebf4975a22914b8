"""Features on disk: whatever happens to the process or the file, what is read is what was written."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pren.images.cache import BLOCK, FACTS_FILE, ROWS_FILE, FeatureCache, cache_folder

WIDTH = 5
RECORD = 32 + 4 + 2 * WIDTH


def key(number):
    return hashlib.sha256(str(number).encode()).digest()


def features(*numbers):
    return np.stack([np.random.default_rng(number).normal(size=WIDTH) for number in numbers]).astype(np.float32)


@pytest.fixture
def cache(tmp_path):
    return FeatureCache(tmp_path, {"backbone": "x"}, (WIDTH,))


def add(cache, *numbers):
    cache.append([key(number) for number in numbers], features(*numbers))


def check(cache, *numbers):
    """Exactly these are there, as they were written but for half precision."""
    rows = cache.rows()
    assert rows.keys() == {key(number) for number in numbers}
    inputs = cache.inputs(np.array([rows[key(number)] for number in numbers], dtype=np.int64))
    assert inputs.sample_shape == (WIDTH,)
    assert len(inputs) == len(numbers)
    if numbers:
        read = inputs[np.arange(len(numbers))].numpy()
        assert read.dtype == np.float32
        assert (read == features(*numbers).astype(np.float16)).all()


def test_what_is_appended_is_there(cache, tmp_path):
    check(cache)
    add(cache, 1, 2, 3)
    add(cache, 4)
    cache.append([], np.empty((0, WIDTH), dtype=np.float32))
    check(cache, 1, 2, 3, 4)
    check(FeatureCache(tmp_path, {"backbone": "x"}, (WIDTH,)), 3, 1, 4, 2)
    assert (cache.folder / ROWS_FILE).stat().st_size == 4 * RECORD


def test_more_than_a_block(tmp_path):
    cache = FeatureCache(tmp_path, {}, (1,))
    count = BLOCK + 3
    cache.append([key(number) for number in range(count)], np.arange(count, dtype=np.float32)[:, None] / 8)
    rows = cache.rows()
    assert [rows[key(number)] for number in (0, BLOCK - 1, BLOCK, count - 1)] == [0, BLOCK - 1, BLOCK, count - 1]
    assert len(rows) == count


@given(keys=st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=5, unique=True))
def test_any_keys(tmp_path_factory, keys):
    cache = FeatureCache(tmp_path_factory.mktemp("cache"), {}, (1,))
    cache.append([*keys, bytes(32)], np.ones((len(keys) + 1, 1), dtype=np.float32))
    assert cache.rows().keys() == {*keys, bytes(32)}  # zeros at the end of a key count


def test_other_facts_are_another_folder(tmp_path):
    cache, other = (FeatureCache(tmp_path, {"weights": text}, (WIDTH,)) for text in "ab")
    add(cache, 1)
    check(other)
    assert json.loads((other.folder / FACTS_FILE).read_text()) == {"weights": "b"}
    same = FeatureCache(tmp_path, dict(reversed({"a": 1, "b": 2}.items())), (WIDTH,))
    assert same.folder == FeatureCache(tmp_path, {"a": 1, "b": 2}, (WIDTH,)).folder


@pytest.mark.parametrize("value", [65600.0, -1e9, np.inf, np.nan])
def test_what_half_precision_cannot_hold_is_refused(cache, value):
    add(cache, 1)
    wrong = features(2, 3)
    wrong[1, 2] = value
    with refused("features-too-large"):
        cache.append([key(2), key(3)], wrong)
    check(cache, 1)


def test_the_digest_is_of_values_and_their_order(cache):
    add(cache, 1, 2, 3)
    digests = [cache.inputs(np.array(rows)).digest() for rows in ([0, 1], [1, 0], [0, 2], [0], [0, 1, 2])]
    assert len(set(digests)) == 5
    add(cache, 9, 1)
    assert cache.inputs(np.array([0, 1])).digest() == digests[0]
    assert cache.inputs(np.array([4, 1])).digest() == digests[0]


# --- damage


@pytest.mark.parametrize("cut", [1, RECORD // 2, RECORD - 1])
def test_half_a_record_at_the_end_is_dropped_and_overwritten(cache, cut):
    add(cache, 1, 2, 3)
    path = cache.folder / ROWS_FILE
    os.truncate(path, path.stat().st_size - cut)
    check(cache, 1, 2)
    add(cache, 4)
    check(cache, 1, 2, 4)
    assert path.stat().st_size == 3 * RECORD


@given(place=st.integers(0, 3 * RECORD - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_makes_one_record_unknown(tmp_path_factory, place, bit):
    cache = FeatureCache(tmp_path_factory.mktemp("cache"), {}, (WIDTH,))
    add(cache, 1, 2, 3)
    path = cache.folder / ROWS_FILE
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)
    damaged = 1 + place // RECORD
    check(cache, *({1, 2, 3} - {damaged}))
    add(cache, damaged)
    check(cache, 1, 2, 3)


def test_of_two_records_of_an_image_the_first_counts(cache):
    add(cache, 1, 2)
    before = cache.rows()
    cache.append([key(2), key(1)], features(8, 9))  # as another process may have computed them
    assert cache.rows() == before


@pytest.mark.parametrize("written", [0, RECORD // 2, RECORD, RECORD + 3])
def test_a_full_disk_leaves_whole_records(cache, monkeypatch, written):
    add(cache, 1)
    write = os.write

    def full(file, content):
        if not room:
            raise OSError(28, "No space left on device")
        return write(file, content[: room.pop()])

    room = [written] if written else []
    with monkeypatch.context() as context:
        context.setattr(os, "write", full)
        with refused("write-failed"):
            add(cache, 2, 3)
    there = (1, 2) if written >= RECORD else (1,)
    check(cache, *there)
    add(cache, 4, 5)
    check(cache, *there, 4, 5)


def test_a_write_that_takes_little_at_a_time_is_gone_on_with(cache, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:7]))
    add(cache, 1, 2, 3)
    check(cache, 1, 2, 3)


# --- what is in the way


@pytest.mark.timeout(30)
@pytest.mark.parametrize("what", ["folder", "link", "dead link", "pipe"])
def test_something_else_in_place_of_the_rows(cache, tmp_path, what):
    path = cache.folder / ROWS_FILE
    path.unlink(missing_ok=True)
    target = tmp_path / "elsewhere"
    if what == "folder":
        path.mkdir()
        (path / ("long name" * 20)).touch()
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
        if what == "link":
            target.write_bytes(bytes(3 * RECORD))
    with refused("file-odd"):
        cache.rows()
    if what != "pipe":
        with refused("write-failed"):
            add(cache, 1)
    assert not target.exists() or target.read_bytes() == bytes(3 * RECORD)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_rows_that_may_not_be_read(cache):
    add(cache, 1)
    (cache.folder / ROWS_FILE).chmod(0)
    with refused("read-failed"):
        cache.rows()


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with refused("write-failed"):
            FeatureCache(folder, {}, (WIDTH,))


def test_where_caches_are(tmp_path, monkeypatch):
    monkeypatch.setenv("PREN_CACHE", str(tmp_path / "a"))
    assert cache_folder() == tmp_path / "a"
    assert cache_folder(tmp_path / "b") == tmp_path / "b"
    monkeypatch.delenv("PREN_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "pren"


# --- several processes

WRITER = """
import hashlib, os, sys, time
import numpy as np
from pren.images.cache import FeatureCache
folder, number = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for facts in range(30):
    FeatureCache(folder, {"facts": facts}, 5)
cache = FeatureCache(folder, {}, 5)
for place in range(100):
    names = [f"{number} {place} {each}" for each in range(3)]
    cache.append([hashlib.sha256(name.encode()).digest() for name in names], np.full((3, 5), number, dtype=np.float32))
"""


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing(tmp_path):
    # They also begin at once: all of them make the same folders.
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    errors = [writer.communicate(timeout=200)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], errors
    cache = FeatureCache(tmp_path, {}, 5)
    rows = cache.rows()
    assert len(rows) == 600
    for number in range(2):
        mine = [rows[key(f"{number} {place} {each}")] for place in range(100) for each in range(3)]
        assert (cache.inputs(np.array(mine))[np.arange(300)].numpy() == number).all()
    assert len(list(tmp_path.glob(f"*/{FACTS_FILE}"))) == 31
    assert not list(tmp_path.glob("*/.writing*"))


def test_a_selection_is_of_rows(cache):
    add(cache, 1, 2, 3)
    inputs = cache.inputs(np.array([2, 0, 1]))
    chosen = inputs.select(np.array([1, 0]))
    assert chosen[np.arange(2)].equal(inputs[np.array([1, 0])])
    assert chosen.digest() == cache.inputs(np.array([0, 2])).digest()
