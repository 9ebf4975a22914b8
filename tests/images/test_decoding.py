"""Image files of every kind, whole and damaged."""

import io
import os
import struct
import threading
import zlib
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image, ImageOps
from refusals import refused

from pren.foundation.errors import PrenError
from pren.images import decoding
from pren.images import files as images
from pren.images.decoding import FORMATS, decode, read_image_file, without_warnings
from pren.images.photographs import unreadable_files
from pren.images.preprocessing import Preprocessing, plain
from pren.images.torchvision_operators import import_timm

H, W = 20, 30
COLOUR, GREY = plain((3, H, W)), plain((1, H, W))


def smooth(height=H, width=W):
    """A picture (height, width, 3) that is different in every corner, and survives compression."""
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    return (np.stack([255 * x, 255 * y, 200 * (1 - x) * (1 - y)], axis=2)).astype(np.uint8)


def encode(image, form="PNG", **options):
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def read(content, wanted=COLOUR):
    with without_warnings():
        return decode(content, Path("some/picture"), wanted)


def differs(levels, pixels):
    """How far (C, H, W) levels are from (H, W, C) pixels, on average."""
    return np.abs(levels.transpose(1, 2, 0).astype(float) - pixels).mean()


# --- what is no picture


def chunk(content):
    return struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))


def png_that_claims(width, height):
    """A PNG of a few bytes whose header says it is large."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(header) + chunk(b"IDAT" + zlib.compress(b"nothing"))


NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 60, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"just some text\n", "cannot identify it as any of PNG, JPEG"),
        (b"\xff\xd8\xff\xe0 no more than a beginning", "."),
        (encode(NOISE)[:2000], "."),
        (encode(NOISE, "JPEG")[:2000], "truncated"),
        (encode(NOISE).replace(b"IDAT", b"IDAT\0", 1), "."),
        (png_that_claims(60_000, 60_000), "decompression bomb"),
        (png_that_claims(100, 100), "."),
        (encode(Image.fromarray(np.array([[0.0, 3.5]], dtype=np.float32)), "TIFF"), "which of its values is white"),
    ],
    ids=["empty", "text", "beginning", "cut PNG", "cut JPEG", "damaged", "bomb", "header only", "floats"],
)
@pytest.mark.parametrize("wanted", [COLOUR, COLOUR.model_copy(update={"geometry": "timm"})], ids=["whole", "timm"])
def test_what_is_no_picture_is_named(content, reason, wanted):
    with refused("input-unreadable"):
        read(content, wanted)


SEEDS = [
    encode(NOISE.resize((9, 7)), form, **options)
    for form, options in [
        ("PNG", {}),
        ("JPEG", {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0"}),
        ("GIF", {}),
        ("BMP", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("TIFF", {}),
        ("WEBP", {}),
    ]
]


def levels_or_a_reason(content):
    try:
        levels = read(content)
    except PrenError as error:
        assert str(error).startswith("some/picture cannot be read")  # noqa: PT017
    else:
        assert levels.shape == (3, H, W)
        assert levels.dtype == np.uint8


@given(content=st.binary(max_size=300))
def test_any_bytes_are_a_picture_or_explained(content):
    levels_or_a_reason(content)


@settings(max_examples=300)
@given(data=st.data())
def test_mutated_pictures_are_pictures_or_explained(data):
    content = bytearray(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    levels_or_a_reason(bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))]))


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    with refused("input-unreadable"):
        read_image_file(tmp_path / "nowhere.png")
    with refused("input-unreadable"):
        read_image_file(tmp_path)
    (tmp_path / "large.png").write_bytes(b"12345")
    assert read_image_file(tmp_path / "large.png") == b"12345"
    monkeypatch.setattr("pren.images.decoding.MOST_BYTES", 4)
    with refused("input-unreadable"):
        read_image_file(tmp_path / "large.png")


def test_a_file_of_a_gigabyte_is_not_read(tmp_path, monkeypatch):
    with (tmp_path / "x.jpg").open("wb") as file:
        file.write(b"\xff\xd8\xff\xe0\0\4ab")
        file.truncate(1 << 30)
    monkeypatch.setattr(Path, "open", Mock(side_effect=AssertionError("it was read")))
    with refused("input-unreadable"):
        read_image_file(tmp_path / "x.jpg")


def test_rubbish_is_not_read_byte_by_byte_to_its_end(monkeypatch):
    monkeypatch.setattr(decoding, "MOST_READS", 1000)
    for beginning in (b"\xff\xd8\xff\xe0\0\4ab", b"GIF89a\1\0\1\0\0\0\0"):
        with refused("input-unreadable"):
            read(beginning + bytes(10_000))


@pytest.mark.timeout(20)
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with refused("input-unreadable"):
        read_image_file(tmp_path / "pipe.png")


# --- kinds of pictures


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_read(form):
    assert differs(read(encode(Image.fromarray(smooth()), form)), smooth()) < 12  # GIF has 256 colours


def test_cmyk():
    pixels = smooth()
    assert differs(read(encode(Image.fromarray(pixels).convert("CMYK"), "JPEG", quality=95)), pixels) < 5


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
@pytest.mark.parametrize("wanted", [COLOUR, GREY])
def test_16_bits_of_grey(form, wanted):
    grey = (np.mgrid[0 : H * W] * 100).reshape(H, W).astype(np.uint16)
    levels = read(encode(Image.fromarray(grey), form), wanted)
    assert (levels == grey >> 8).all()


def test_1_bit():
    black = np.mgrid[0:H, 0:W].sum(axis=0) % 3 == 0
    levels = read(encode(Image.fromarray(black).convert("1")), GREY)
    assert (levels[0] == 255 * black).all()


def test_palette_without_transparency():
    picture = Image.fromarray(smooth()).quantize(16)
    assert (read(encode(picture)).transpose(1, 2, 0) == np.asarray(picture.convert("RGB"))).all()


def on_white(pixels, alpha):
    share = alpha[..., None] / 255
    return pixels * share + 255 * (1 - share)


HALF = np.repeat(np.linspace(0, 255, W).astype(np.uint8)[None], H, axis=0)


@pytest.mark.parametrize("form", ["PNG", "TIFF", "WEBP"])
def test_transparent_parts_are_white(form):
    picture = Image.fromarray(np.dstack([smooth(), HALF]))
    options = {"lossless": True, "exact": True} if form == "WEBP" else {}
    assert np.abs(read(encode(picture, form, **options)).transpose(1, 2, 0) - on_white(smooth(), HALF)).max() <= 1


def test_transparent_grey_is_white():
    grey = smooth()[..., 0]
    levels = read(encode(Image.merge("LA", [Image.fromarray(grey), Image.fromarray(HALF)])), GREY)
    assert np.abs(levels[0] - on_white(grey[..., None], HALF)[..., 0]).max() <= 1


@pytest.mark.parametrize("form", ["PNG", "GIF"])
def test_a_transparent_colour_of_a_palette_is_white(form):
    picture = Image.fromarray(np.arange(H * W, dtype=np.int64).reshape(H, W).astype(np.uint8) % 4, "P")
    picture.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120])
    levels = read(encode(picture, form, transparency=2)).transpose(1, 2, 0).reshape(-1, 3)
    assert levels[:4].tolist() == [[10, 20, 30], [40, 50, 60], [255, 255, 255], [100, 110, 120]]


def test_a_transparent_colour_without_a_palette_is_white():
    pixels = smooth()
    pixels[0, 0] = pixels[5, 5] = (1, 2, 3)
    levels = read(encode(Image.fromarray(pixels), transparency=(1, 2, 3)))
    pixels[0, 0] = pixels[5, 5] = 255
    assert (levels.transpose(1, 2, 0) == pixels).all()


def test_the_first_picture_of_an_animation():
    frames = [Image.new("RGB", (W, H), colour) for colour in ("red", "lime", "blue")]
    for form in ("GIF", "WEBP", "TIFF"):
        content = encode(frames[0], form, save_all=True, append_images=frames[1:])
        with Image.open(io.BytesIO(content)) as animation:
            assert animation.n_frames == 3
        assert differs(read(content), (255, 0, 0)) < 3


# --- EXIF

STORED = {  # how a camera held in each of the eight ways stores an upright picture
    1: lambda p: p,
    2: lambda p: p[:, ::-1],
    3: lambda p: p[::-1, ::-1],
    4: lambda p: p[::-1],
    5: lambda p: p.transpose(1, 0, 2),
    6: lambda p: np.rot90(p, 1),
    7: lambda p: np.rot90(p, 2).transpose(1, 0, 2),
    8: lambda p: np.rot90(p, -1),
}


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_pictures_are_turned_upright(orientation, form):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 95} if form in ("JPEG", "WEBP") else {}
    content = encode(Image.fromarray(np.ascontiguousarray(STORED[orientation](smooth()))), form, exif=exif, **options)
    assert differs(read(content), smooth()) < 3
    with Image.open(io.BytesIO(content)) as file:  # against Pillow's own way
        assert differs(read(content), np.asarray(ImageOps.exif_transpose(file).convert("RGB"))) < 3


def entry(tag, kind, count, value):
    return struct.pack("<HHII", tag, kind, count, value)


ROTATED = entry(0x0112, 3, 1, 6)


@pytest.mark.parametrize(
    ("exif", "turned"),
    [
        (b"garbage, not TIFF at all", False),
        (b"II*\0", False),
        (b"II*\0\x08\0\0\0\x09\0" + b"\xff" * 20, False),
        (b"II*\0\x08\0\0\0\x01\0" + entry(0x0112, 3, 1, 77) + bytes(4), False),
        (b"II*\0\x08\0\0\0\x01\0" + entry(0x0112, 2, 4, 0x00786973) + bytes(4), False),  # "six"
        (b"II*\0\x08\0\0\0\x01\0" + ROTATED + struct.pack("<I", 8), True),  # in a circle
        (b"II*\0\x08\0\0\0\x02\0" + ROTATED + entry(0x0100, 2, 1, 0xFFFF) + bytes(4), True),  # a width that is text
    ],
)
def test_odd_exif_is_no_reason_to_refuse_a_picture(exif, turned):
    stored = smooth(W, H) if turned else smooth()
    content = encode(Image.fromarray(stored), "JPEG", quality=95, exif=b"Exif\0\0" + exif)
    assert differs(read(content), np.rot90(stored, -1) if turned else stored) < 3


# --- sizes


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
def test_the_whole_picture_is_squeezed(interpolation):
    picture = NOISE.resize((77, 53))
    wanted = Preprocessing(sample_shape=(3, H, W), interpolation=interpolation)
    expected = np.asarray(picture.resize((W, H), Image.Resampling[interpolation.upper()]))
    assert (read(encode(picture), wanted).transpose(1, 2, 0) == expected).all()


@pytest.mark.parametrize("size", [(90, 61), (40, 200), (33, 33), (10, 12)])
@pytest.mark.parametrize(
    ("crop_pct", "crop_mode"), [(0.875, "center"), (1.0, "squash"), (0.9, "border"), (1.15, "center")]
)
def test_timms_geometry_is_timms(size, crop_pct, crop_mode):
    picture = NOISE.resize(size)
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    wanted = Preprocessing(
        sample_shape=(3, 32, 32),
        interpolation="bicubic",
        geometry="timm",
        crop_pct=crop_pct,
        crop_mode=crop_mode,
        mean=mean,
        std=std,
    )
    transform = import_timm().data.create_transform(
        (3, 32, 32), interpolation="bicubic", crop_pct=crop_pct, crop_mode=crop_mode, mean=mean, std=std
    )
    ours = (read(encode(picture), wanted) / 255 - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    assert np.allclose(ours, transform(picture).numpy(), atol=1e-5)


@pytest.mark.parametrize("geometry", ["whole", "timm"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_large_jpegs_are_decoded_small_without_harm(geometry, orientation, monkeypatch):
    rng = np.random.default_rng(0)
    pixels = np.asarray(Image.fromarray(rng.integers(0, 256, (40, 60, 3), dtype=np.uint8)).resize((1200, 800)))
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encode(Image.fromarray(pixels), "JPEG", quality=90, exif=exif)
    wanted = Preprocessing(sample_shape=(3, 32, 128), geometry=geometry, crop_pct=0.875)
    ours = read(content, wanted)
    asked = []
    monkeypatch.setattr("PIL.JpegImagePlugin.JpegImageFile.draft", lambda self, mode, size: asked.append(size))
    assert np.abs(ours.astype(int) - read(content, wanted)).mean() < 2.5
    assert asked == [(192, 192)]  # half as much again as the longer side: the picture may have to be turned


# --- memory


def modes():
    """Pictures of every kind that is brought to another mode."""
    rng, picture = np.random.default_rng(0), Image.fromarray(smooth(40, 50))
    alpha = Image.fromarray(rng.integers(0, 256, (40, 50), dtype=np.uint8))
    palette, see_through, sixteen = picture.quantize(16), picture.copy(), rng.integers(0, 1 << 16, (40, 50))
    see_through.putalpha(alpha)
    yield from ((mode, encode(picture.convert(mode))) for mode in ("RGB", "L", "1"))
    yield "RGBA", encode(see_through)
    yield "LA", encode(see_through.convert("LA"))
    yield "P", encode(palette)
    yield "P, one colour transparent", encode(palette, transparency=3)
    yield "RGB, one colour transparent", encode(picture, transparency=tuple(smooth(40, 50)[3, 4].tolist()))
    yield "I;16", encode(Image.fromarray(sixteen.astype(np.uint16)))
    yield "CMYK", encode(picture.convert("CMYK"), "TIFF")
    yield "turned", encode(see_through, exif=exif(6))


def exif(orientation):
    content = Image.Exif()
    content[ExifTags.Base.Orientation] = orientation
    return content


@pytest.mark.parametrize("wanted", [COLOUR, GREY], ids=["colour", "grey"])
@pytest.mark.parametrize("content", [pytest.param(content, id=name) for name, content in modes()])
def test_bands_of_a_large_picture_are_as_the_whole(monkeypatch, content, wanted):
    whole = read(content, wanted)
    monkeypatch.setattr(decoding, "BAND", 7 * 50)
    np.testing.assert_array_equal(read(content, wanted), whole)


@pytest.mark.parametrize(("limit", "together"), [("LARGE_PICTURE", 1), ("LARGE_FILE", 1), (None, 2)])
def test_large_pictures_take_turns(monkeypatch, tmp_path, limit, together):
    """Without a limit, both are there at once: else the other two would show nothing."""
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes(encode(Image.fromarray(smooth())))
    for module in (decoding, images):
        if limit is not None and hasattr(module, limit):
            monkeypatch.setattr(module, limit, 10)
    there, most = [], []
    meeting = threading.Barrier(2)

    def upright(image):
        there.append(image)
        most.append(len(there))
        with suppress(threading.BrokenBarrierError):
            meeting.wait(0.2)
        there.pop()
        return image

    monkeypatch.setattr(decoding, "_upright", upright)
    monkeypatch.setattr(images, "THREADS", 2)
    images.ImageFolder(tmp_path).decoded(range(2))
    assert max(most) == together


@pytest.mark.parametrize("broken", ["_flat", "_upright"])
def test_a_lack_of_memory_is_no_damage(monkeypatch, tmp_path, broken):
    (tmp_path / "healthy.png").write_bytes(encode(Image.fromarray(smooth())))
    monkeypatch.setattr(decoding, broken, Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError, match=r"healthy\.png"):
        unreadable_files(images.ImageFolder(tmp_path))
