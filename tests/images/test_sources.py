"""Lists and shards: whatever is in them, every image is found, in order, and nothing else is read."""

import io
import os
import tarfile

import pytest
from PIL import Image
from refusals import refused

from pren.images.preprocessing import plain
from pren.images.sources import open_pictures
from pren.images.tars import list_tar


def png(level):
    content = io.BytesIO()
    Image.new("L", (3, 3), level).save(content, "PNG")
    return content.getvalue()


def member(name, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.fixture
def shard(tmp_path):
    """Write a .tar file with these members; images by their level, others as they are."""

    def write(*members, name="shard.tar", form=tarfile.PAX_FORMAT):
        with tarfile.open(tmp_path / name, "w", format=form) as archive:
            for info, content in members:
                info = tarfile.TarInfo(info) if isinstance(info, str) else info
                content = png(content) if isinstance(content, int) else content
                info.size = 0 if content is None else len(content)
                archive.addfile(info, None if content is None else io.BytesIO(content))
        return tmp_path / name

    return write


def levels(images, column=None):
    """The names of pictures, the level of each, and what is wrong with the others."""
    names, files = open_pictures(images, column)
    readings = [files.prepared(plain((1, 2, 2))).read(place) for place in range(len(files))]
    return dict(zip(names, [r.error or int(r.levels[0, 0, 0]) for r in readings], strict=True))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_shard(shard, form):
    long = f"{'deep/' * 15}2.png"
    path = shard(("b.png", 1), ("b.json", b"{}"), ("a/", None), ("é.PNG", 3), (long, 2), ("a.cls", b"1"), form=form)
    assert levels(path) == {"b.png": 1, "é.PNG": 3, long: 2}
    assert levels([path, path.with_name("shard.tar")]).keys() == {f"{path}/{n}" for n in ("b.png", "é.PNG", long)}


def test_a_name_twice(shard):
    names, files = open_pictures(shard(("a.png", 1), ("a.png", 2)))
    assert names == ["a.png", "a.png"]
    assert files.prepared(plain((1, 2, 2)))[[0, 1]][:, 0, 0, 0].mul(255).round().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("hostile", "fault"),
    [
        (member("/etc/a.png"), "its name leads out"),
        (member("../a.png"), "its name leads out"),
        (member("b/../../a.png"), "its name leads out"),
        (member("a.png", tarfile.SYMTYPE, "/etc/passwd"), "not an ordinary file"),
        (member("a.png", tarfile.LNKTYPE, "good.png"), "not an ordinary file"),
        (member("a.png", tarfile.CHRTYPE), "not an ordinary file"),
        (member("a.png", tarfile.FIFOTYPE), "not an ordinary file"),
    ],
)
def test_a_hostile_member_is_a_row_with_an_error(shard, hostile, fault):
    found = levels(shard((hostile, None), ("good.png", 7)))
    assert fault in found[hostile.name]
    assert found["good.png"] == 7


def test_damaged_members(shard):
    found = levels(shard(("empty.png", b""), ("bad.png", b"rubbish"), ("good.png", 7)))
    assert "the file is empty" in found["empty.png"]
    assert "cannot identify it" in found["bad.png"]
    assert found["good.png"] == 7


def test_a_member_that_claims_too_much(shard, monkeypatch):
    monkeypatch.setattr("pren.images.tars.MOST_BYTES", 1000)
    found = levels(shard(("large.png", bytes(2000)), ("good.png", 7)))
    assert "more than 1000" in found["large.png"]
    assert found["good.png"] == 7


def test_half_a_shard_is_refused(shard):
    whole = shard(("a.png", 1), ("b.png", os.urandom(2000))).read_bytes()
    for cut in (100, 700, 1100, 1500, 3000):
        path = shard(("a.png", 1), name="half.tar")
        path.write_bytes(whole[:cut])
        with refused("tar-unreadable"):
            list_tar(path)


def test_a_shard_damaged_in_the_middle_is_refused(shard):
    path = shard(("a.png", 1), ("b.png", 2), ("c.png", 3), form=tarfile.USTAR_FORMAT)
    content = bytearray(path.read_bytes())
    content[1024 + 148 : 1024 + 156] = b"garbage!"  # the checksum of the second header
    path.write_bytes(content)
    with refused("tar-unreadable"):
        list_tar(path)


def test_a_size_below_nothing_is_refused(shard):
    path = shard(("a.png", 1), ("b.png", 2), form=tarfile.GNU_FORMAT)
    content = bytearray(path.read_bytes())
    content[124:136] = b"\xff" * 11 + b"\x00"  # -256 bytes
    content[148:156] = b" " * 8
    content[148:156] = b"%06o\0 " % sum(content[:512])
    path.write_bytes(content)
    with refused("tar-unreadable"):
        list_tar(path)


def test_what_is_no_shard(tmp_path, shard):
    with tarfile.open(tmp_path / "packed.tar", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.png"))
    (tmp_path / "rubbish.tar").write_bytes(os.urandom(5000))
    (tmp_path / "nothing.tar").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe.tar")
    for name, refusal in {
        "packed.tar": "tar-unreadable",
        "rubbish.tar": "tar-unreadable",
        "nothing.tar": "tar-unreadable",
        "pipe.tar": "file-odd",
    }.items():
        with refused(refusal):
            open_pictures(tmp_path / name)
    with refused("no-photographs"):
        open_pictures(shard(("a.txt", b"no image")))


def test_a_shard_that_changes_meanwhile(shard):
    path = shard(("a.png", os.urandom(2000)))
    _, files = open_pictures(path)
    looks = files.looks()
    path.write_bytes(path.read_bytes()[:1000])
    assert "it ends after" in files.read(0).error
    assert files.looks() != looks


@pytest.fixture
def listed(tmp_path):
    (tmp_path / "photographs").mkdir()
    for number in (1, 2):
        (tmp_path / "photographs" / f"{number}, é.png").write_bytes(png(number))
    return tmp_path


def test_a_list(listed):
    (listed / "list.txt").write_bytes("photographs/2, é.png\r\n\nphotographs/no.png\nphotographs/1, é.png".encode())
    found = levels(listed / "list.txt")
    assert list(found) == ["photographs/2, é.png", "photographs/no.png", "photographs/1, é.png"]
    assert (found["photographs/2, é.png"], found["photographs/1, é.png"]) == (2, 1)
    assert "No such file" in found["photographs/no.png"]


def test_a_column_of_a_table(listed):
    path = f"{listed}/photographs/2, é.png"
    (listed / "list.csv").write_text(f'\ufeffnumber,the file\n1,"photographs/1, é.png"\n2,"{path}"\n3,\n')
    assert levels(listed / "list.csv", "the file") == {"photographs/1, é.png": 1, path: 2}
    for column in (None, "file"):
        with refused("column-unknown"):
            open_pictures(listed / "list.csv", column)


@pytest.mark.parametrize(
    ("name", "content", "refusal"),
    [
        ("a.txt", b"", "list-empty"),
        ("a.txt", b"a\0b", "list-binary"),
        ("a.txt", b"Dear diary,\n\ntoday I saw three birds.\n", "list-no-files a.txt 2 diary"),
        ("a.csv", b"file\nx.png\n", "list-no-files a.csv 1 x.png"),
        ("a.csv", b"file\n\xff\n", "list-unreadable"),
        ("a.csv", b'file\n"a', "list-unreadable"),
        ("a.csv", b"file\n", "list-empty"),
        ("a.csv", b"", "column-unknown"),
    ],
)
def test_what_is_no_list(tmp_path, name, content, refusal):
    (tmp_path / name).write_bytes(content)
    with refused(refusal):
        open_pictures(tmp_path / name, "file")


def test_looks_change_with_the_files(listed):
    _, files = open_pictures(listed / "photographs")
    looks = files.looks()
    assert open_pictures(listed / "photographs")[1].looks() == looks
    os.utime(listed / "photographs" / "1, é.png", ns=(1, 1))
    assert files.looks() != looks
    looks = files.looks()
    (listed / "photographs" / "1, é.png").unlink()
    assert files.looks() != looks
