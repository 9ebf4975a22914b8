"""Image files in, image files out."""

import hashlib
import os

import numpy as np
import pytest
from PIL import Image
from refusals import refused

from pren.data.numbers import load_numbers
from pren.images.files import ImageFiles, ImageFolder, save_images
from pren.images.folders import EXTENSIONS
from pren.images.preprocessing import plain
from pren.problem.inputs import ArrayInputs, Inputs


def draw(path, colour=(200, 100, 50), size=(8, 6)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)
    return path


def test_images_are_found_everywhere_below_and_sorted_by_path(tmp_path):
    for name in ("b.png", "a/z.jpg", "a/b/c.BMP", "C.webp", "d.tif", "d.tiff", "e.gif", "f.jpeg"):
        draw(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "folder.png").mkdir()
    inputs = ImageFolder(tmp_path, plain((3, 6, 8)))
    assert isinstance(inputs, Inputs)
    assert inputs.names == ["C.webp", "a/b/c.BMP", "a/z.jpg", "b.png", "d.tif", "d.tiff", "e.gif", "f.jpeg"]
    assert inputs[np.arange(len(inputs))].shape == (8, 3, 6, 8)
    assert {name[name.rindex(".") :].lower() for name in inputs.names} == set(EXTENSIONS)


def test_colours_and_grey_are_scaled_to_1(tmp_path):
    draw(tmp_path / "a.png", (255, 51, 0))
    colour = ImageFolder(tmp_path, plain((3, 6, 8)))[np.array([0])]
    assert colour[0, :, 2, 3].tolist() == pytest.approx([1, 0.2, 0])
    grey = ImageFolder(tmp_path, plain((1, 6, 8)))[np.array([0])]
    assert grey.shape == (1, 1, 6, 8)
    assert grey.mean().item() == pytest.approx(0.299 + 0.2 * 0.587, abs=0.003)


def test_rows_columns_and_order_are_kept(tmp_path):
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    Image.fromarray(pixels).save(tmp_path / "b.png")
    draw(tmp_path / "a.png", (0, 0, 0), (3, 2))
    images = ImageFolder(tmp_path, plain((3, 2, 3)))[np.array([1, 0, 1])]
    assert (images[0] * 255).round().permute(1, 2, 0).numpy().tolist() == pixels.tolist()
    assert images[1].max() == 0
    assert images[2].equal(images[0])
    assert ImageFolder(tmp_path, plain((3, 2, 3)))[np.array([], dtype=np.int64)].shape == (0, 3, 2, 3)


def test_other_sizes_are_brought_to_the_one_asked_for(tmp_path):
    half = np.zeros((10, 20), dtype=np.uint8)
    half[:, 10:] = 255
    Image.fromarray(half).save(tmp_path / "a.png")
    image = ImageFolder(tmp_path, plain((1, 5, 8)))[np.array([0])][0, 0]
    assert image.shape == (5, 8)
    assert image[:, :3].max() < 0.1
    assert image[:, 5:].min() > 0.9


def test_16_bits_are_scaled_not_cut_off(tmp_path):
    Image.fromarray(np.array([[0, 32768, 65535]], dtype=np.uint16)).save(tmp_path / "a.png")
    image = ImageFolder(tmp_path, plain((1, 1, 3)))[np.array([0])]
    assert image.flatten().tolist() == pytest.approx([0, 0.5, 1], abs=0.01)


def test_values_without_a_range_are_refused(tmp_path):
    Image.fromarray(np.array([[0, 3.5]], dtype=np.float32)).save(tmp_path / "a.tif")
    with refused("input-unreadable"):
        ImageFolder(tmp_path, plain((1, 1, 2)))[np.array([0])]


def test_digest_follows_content_order_and_shape_but_not_names(tmp_path):
    draw(tmp_path / "a.png")
    first = ImageFolder(tmp_path, plain((3, 6, 8))).digest()
    assert first == ImageFolder(tmp_path, plain((3, 6, 8))).digest()
    assert first != ImageFolder(tmp_path, plain((1, 6, 8))).digest()
    draw(tmp_path / "a.png", (1, 2, 3))
    second = ImageFolder(tmp_path, plain((3, 6, 8))).digest()
    assert first != second
    (tmp_path / "a.png").rename(tmp_path / "b.png")
    assert second == ImageFolder(tmp_path, plain((3, 6, 8))).digest()
    draw(tmp_path / "a.png")
    both = ImageFolder(tmp_path, plain((3, 6, 8))).digest()
    assert both != ImageFiles(tmp_path, ["b.png", "a.png"], plain((3, 6, 8))).digest()


def test_missing_folder(tmp_path):
    with refused("file-missing"):
        ImageFolder(tmp_path / "nowhere", plain((3, 6, 8)))
    with refused("file-missing"):
        ImageFolder(draw(tmp_path / "a.png"), plain((3, 6, 8)))


def test_folder_without_images(tmp_path):
    (tmp_path / "notes.txt").write_text("no image")
    with refused("no-photographs"):
        ImageFolder(tmp_path, plain((3, 6, 8)))


@pytest.mark.parametrize("shape", [(512,), (2, 6, 8), (3, 0, 8)])
def test_shapes_that_images_cannot_have(tmp_path, shape):
    draw(tmp_path / "a.png")
    with refused("inputs-shape"):
        ImageFolder(tmp_path, plain(shape))


@pytest.mark.parametrize("content", [b"", b"no image", "truncated"])
def test_unreadable_images_are_named(tmp_path, content):
    draw(tmp_path / "a.png")
    if content == "truncated":
        noise = np.random.default_rng(0).integers(0, 256, (50, 50), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "bad.png")
        content = (tmp_path / "bad.png").read_bytes()[:1000]
    (tmp_path / "bad.png").write_bytes(content)
    inputs = ImageFolder(tmp_path, plain((3, 6, 8)))
    assert inputs[np.array([0])].shape == (1, 3, 6, 8)
    with refused("input-unreadable"):
        inputs[np.array([0, 1])]


def test_postscript_is_not_run(tmp_path):
    # Pillow knows this format by its content, whatever its name, and gives it to another program to run.
    Image.new("RGB", (8, 6)).save(tmp_path / "page.eps")
    (tmp_path / "page.eps").rename(tmp_path / "page.png")
    with refused("input-unreadable"):
        ImageFolder(tmp_path, plain((3, 6, 8)))[np.array([0])]


def test_links_that_lead_out_are_refused(tmp_path):
    secret = draw(tmp_path / "elsewhere" / "secret.png")
    folder = tmp_path / "folder"
    draw(folder / "a.png")
    (folder / "link.png").symlink_to(secret)
    with refused("file-odd"):
        ImageFolder(folder, plain((3, 6, 8)))
    (folder / "link.png").unlink()
    (folder / "more").symlink_to(secret.parent)
    with refused("file-odd"):
        ImageFolder(folder, plain((3, 6, 8)))


def test_links_inside_are_read_and_loops_come_to_an_end(tmp_path):
    draw(tmp_path / "folder" / "a.png")
    (tmp_path / "folder" / "b.png").symlink_to("a.png")
    (tmp_path / "folder" / "loop").symlink_to(tmp_path / "folder")
    (tmp_path / "other").symlink_to(tmp_path / "folder")  # the folder itself may be reached by a link
    inputs = ImageFolder(tmp_path / "other", plain((3, 6, 8)))
    assert inputs.names == ["a.png", "b.png"]
    assert inputs[np.array([0])].equal(inputs[np.array([1])])


@pytest.mark.timeout(20)
def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with refused("file-odd"):
        ImageFolder(tmp_path, plain((3, 6, 8)))
    (tmp_path / "pipe.png").unlink()
    (tmp_path / "circle.png").symlink_to("circle.png")
    with refused("file-odd"):
        ImageFolder(tmp_path, plain((3, 6, 8)))


def test_a_folder_that_is_closed_to_us_is_named(tmp_path, monkeypatch):
    draw(tmp_path / "a.png")
    draw(tmp_path / "closed" / "b.png")
    real = os.scandir

    def scandir(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with refused("file-odd"):
        ImageFolder(tmp_path, plain((3, 6, 8)))


def test_saved_images_read_back_exactly(tmp_path):
    problem, _ = load_numbers(per_class=1, pool_per_class=1)
    chosen = np.array([7, 3, 11])
    paths = save_images(problem.pool, chosen, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["image-0000.png", "image-0001.png", "image-0002.png"]
    back = ImageFolder(tmp_path / "new" / "folder", plain((1, 16, 32)))
    assert back.names == [path.name for path in paths]
    assert back[np.arange(3)].equal(problem.pool[chosen])


def test_saving_colours_cuts_off_what_is_outside(tmp_path):
    array = np.random.default_rng(0).normal(0.5, 1, (2, 3, 4, 5))
    save_images(ArrayInputs(array), np.arange(2), tmp_path)
    back = ImageFolder(tmp_path, plain((3, 4, 5)))[np.arange(2)].numpy()
    assert np.abs(back - array.clip(0, 1)).max() <= 0.5 / 255 + 1e-6


def test_what_cannot_be_saved(tmp_path):
    with refused("inputs-shape"):
        save_images(ArrayInputs(np.zeros((2, 5))), np.arange(2), tmp_path)
    with refused("inputs-shape"):
        save_images(ArrayInputs(np.zeros((2, 2, 5, 5))), np.arange(2), tmp_path)
    (tmp_path / "file").write_text("")
    with refused("write-failed"):
        save_images(ArrayInputs(np.zeros((2, 1, 5, 5))), np.arange(2), tmp_path / "file")


def test_a_selection_is_of_files(tmp_path):
    for number in range(3):
        draw(tmp_path / f"{number}.png", (number, 2, 3))
    files = ImageFolder(tmp_path, plain((3, 6, 8)))
    chosen = files.select(np.array([2, 0]))
    assert chosen.photographs
    assert chosen.digest() == ImageFiles(tmp_path, ["2.png", "0.png"], plain((3, 6, 8))).digest()
    assert chosen.prepared(plain((1, 4, 4))).sample_shape == (1, 4, 4)


def test_what_is_known_is_not_decoded(tmp_path):
    content = draw(tmp_path / "a.png").read_bytes()
    files = ImageFiles(tmp_path, ["a.png", content, "nowhere.png"], plain((3, 6, 8)))
    key = hashlib.sha256(content).digest()
    for place in (0, 1):
        assert files.read(place).key == b""
        assert files.read(place, set()).key == files.read(place, {key}).key == key
        assert files.read(place, set()).levels.shape == (3, 6, 8)
        assert files.read(place, {key}).levels is None
    assert files.read(2, {key}).key == b""
    assert "No such file" in files.read(2, {key}).error
    assert not files.on_disk
    assert files.select(np.array([0, 2])).on_disk


def test_some_are_decoded_and_the_others_explained(tmp_path):
    draw(tmp_path / "a.png", (9, 2, 3))
    opened = Image.new("RGB", (3, 3), (5, 6, 7))
    files = ImageFiles(tmp_path, ["a.png", b"", opened, Image.new("F", (3, 3))], plain((3, 6, 8)))
    levels, errors = files.decoded(range(4))
    assert levels[:, :, 0, 0].tolist() == [[9, 2, 3], [5, 6, 7]]
    assert [bool(error) for error in errors] == [False, True, False, True]
    assert errors[1].startswith("Photograph 1 cannot be read as an image (the file is empty)")
    assert files.decoded([1])[0].shape == (0, 3, 6, 8)
