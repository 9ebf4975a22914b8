"""Photographs that are decoded once and kept."""

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import refused

from pren.images import decoded
from pren.images.decoded import DecodedImages, decoded_once
from pren.images.files import ImageFiles
from pren.images.preprocessing import plain
from pren.problem.inputs import ArrayInputs


@pytest.fixture
def files(tmp_path):
    """Five pictures, and a file that is none."""
    rng = np.random.default_rng(0)
    names = [f"{place}.png" for place in range(5)]
    for name in names:
        Image.fromarray(rng.integers(0, 256, (6, 7, 3), dtype=np.uint8)).save(tmp_path / name)
    (tmp_path / "bad.png").write_bytes(b"no image")
    return ImageFiles(tmp_path, [*names, "bad.png"], plain((3, 4, 5)))


def test_they_are_the_files_bit_by_bit_and_each_is_decoded_once(files, monkeypatch):
    read, all_reads = ImageFiles.read, []
    monkeypatch.setattr(ImageFiles, "read", lambda self, place: all_reads.append(place) or read(self, place))
    kept = decoded_once(files)
    assert isinstance(kept, DecodedImages)
    assert (len(kept), kept.sample_shape) == (6, (3, 4, 5))
    for places in ([3, 1], [1, 3, 0, 1], [4, 4], [], [0, 1, 3, 4]):
        found = kept[np.array(places, dtype=np.int64)]
        again = files[np.array(places, dtype=np.int64)]
        assert torch.equal(found, again)
        found.zero_()  # changes no other reading
    every = [place for place in all_reads if all_reads.count(place)]
    wanted = [3, 1, 1, 3, 0, 1, 4, 4, 0, 1, 3, 4]  # of the files themselves
    assert len(every) == len(wanted) + len({0, 1, 3, 4})
    assert kept.digest() == files.digest()


def test_a_file_that_cannot_be_read_is_named_each_time(files):
    kept = decoded_once(files)
    for _ in range(2):
        with refused("input-unreadable bad.png"):
            kept[np.array([0, 5])]


def test_more_than_fits_is_decoded_each_time(files, monkeypatch):
    monkeypatch.setattr(decoded, "KEPT", 6 * 3 * 4 * 5 - 1)
    assert decoded_once(files) is files
    arrays = ArrayInputs(np.zeros((2, 3)))
    assert decoded_once(arrays) is arrays
