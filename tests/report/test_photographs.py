"""Pictures in a page: small, few, and none where there are none."""

import base64
import io
import re

import numpy as np
from PIL import Image

from pren.images.files import ImageFiles
from pren.problem.inputs import ArrayInputs
from pren.report import photographs
from pren.report.photographs import SIDE, SMALL_SIDE, Photographs


def opened(picture):
    kind, content = re.fullmatch(r"data:image/(\w+);base64,(.+)", picture.uri).groups()
    return kind, Image.open(io.BytesIO(base64.b64decode(content)))


def save(folder, name="a.png", size=(300, 100)):
    pixels = np.random.default_rng(0).integers(0, 255, (*size[::-1], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / name)


def test_files_become_small_squares(tmp_path):
    save(tmp_path)
    kind, image = opened(Photographs(ImageFiles(tmp_path, ["a.png"])).thumbnail(0))
    assert (kind, image.size) == ("jpeg", (SIDE, SIDE))
    assert opened(Photographs(ImageFiles(tmp_path, ["a.png"]), 1000).thumbnail(0))[1].size == (
        SMALL_SIDE,
        SMALL_SIDE,
    )


def test_small_arrays_are_shown_pixel_by_pixel():
    array = np.random.default_rng(0).random((2, 1, 16, 32)).astype(np.float32)
    kind, image = opened(Photographs(ArrayInputs(array)).thumbnail(1))
    assert kind == "png"
    np.testing.assert_array_equal(np.asarray(image), np.rint(array[1, 0] * 255).astype(np.uint8))


def test_large_arrays_become_small():
    made = Photographs(ArrayInputs(np.zeros((1, 3, 200, 300), dtype=np.float32))).thumbnail(0)
    assert opened(made)[1].size == (SIDE, SIDE * 2 // 3)


def test_features_have_no_pictures():
    assert not Photographs(ArrayInputs(np.zeros((1, 7)))).there
    assert not Photographs(None).there
    assert Photographs(None).thumbnail(0) is None


def test_a_file_that_is_gone_or_damaged_is_left_out(tmp_path):
    (tmp_path / "b.png").write_bytes(b"no image")
    found = Photographs(ImageFiles(tmp_path, ["a.png", "b.png"]))
    assert (found.thumbnail(0), found.thumbnail(1)) == (None, None)
    assert (found.shown, found.left_out) == (0, 2)


def test_there_is_an_end(tmp_path, monkeypatch):
    save(tmp_path)
    one = len(Photographs(ImageFiles(tmp_path, ["a.png"])).thumbnail(0).uri)
    monkeypatch.setattr(photographs, "MOST_BYTES", 3 * one)
    found = Photographs(ImageFiles(tmp_path, ["a.png"]))
    assert sum(found.thumbnail(0) is not None for _ in range(10)) == 3
    assert found.left_out == 7
