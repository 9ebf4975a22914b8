"""A saved model as people use it: every kind of input gives the same classes, one at a time or all at once."""

import io
import json
import os

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import refused
from safetensors.torch import save_file

import pren
from pren.images.extraction import Extractor
from pren.images.files import ImageFiles, ImageFolder
from pren.images.photographs import freeze
from pren.images.preprocessing import plain
from pren.images.torchvision_operators import import_timm
from pren.label import predictor as module
from pren.problem import UNKNOWN, ClassTable, Problem
from pren.problem.inputs import ArrayInputs

pytestmark = pytest.mark.slow

TINY = "test_resnet"
SMALL = {"heads": 3, "hidden": (8,), "rounds": 1, "initial_batches": 2, "batches": 2, "batch_size": 4}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Five labelled pictures, and a folder with a pool of four."""
    folder = tmp_path_factory.mktemp("pictures")
    for number in range(9):
        rng = np.random.default_rng(number)
        noise = rng.integers(0, rng.integers(30, 256, 3), (9, 12, 3), dtype=np.uint8)
        path = folder / ("train" if number < 5 else "pool") / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(noise).save(path)
    return folder


@pytest.fixture(scope="module")
def problem(pictures):
    classes = ClassTable.build("dcba", np.random.default_rng(0).random((4, 3)), np.array([True, True, False, False]))
    train = ImageFiles(pictures / "train", [f"{number}.png" for number in range(5)], plain((3, 8, 8)))
    return Problem(train, np.array([0, 1, 0, 1, 0]), ImageFolder(pictures / "pool", plain((3, 8, 8))), classes)


@pytest.fixture(scope="module", params=["frozen", "side by side", "end to end"])
def model(request, problem, tmp_path_factory):
    """The folder of a model that takes pictures, and its scores of the pool."""
    folder = tmp_path_factory.mktemp("model")
    if request.param == "frozen":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            save_file(import_timm().create_model(TINY).state_dict(), folder / "tiny.safetensors")
        extractor = Extractor(backbone=TINY, weights=str(folder / "tiny.safetensors"))
        problem, _ = freeze(problem, None, extractor, folder / "cache", workers=0)
        method = pren.ESZSL().fit(problem)
    elif request.param == "side by side":
        extractor = Extractor(backbone="test_byobnet+test_efficientnet", weights="random")
        problem, _ = freeze(problem, None, extractor, folder / "cache", workers=0)
        method = pren.ESZSL().fit(problem)
    else:
        method = pren.PrEN(backbone="small-cnn", **SMALL).fit(problem)
    method.save(folder)
    return folder, method.scores(problem.pool)


@pytest.fixture
def loaded(model, tmp_path):
    return pren.Predictor.load(model[0], cache=tmp_path / "cache")


def opened(path):
    return Image.open(io.BytesIO(path.read_bytes()))


def kinds(folder):
    """The pool in every form that people have it in."""
    files = sorted((folder / "pool").iterdir())
    return {
        "folder": folder / "pool",
        "text": str(folder / "pool"),
        "paths": files,
        "texts": [str(path) for path in files],
        "bytes": [path.read_bytes() for path in files],
        "bytearrays": [bytearray(path.read_bytes()) for path in files],
        "pillow": [opened(path) for path in files],
        "levels": [np.asarray(opened(path)) for path in files],
        "mixed": [files[0], files[1].read_bytes(), opened(files[2]), str(files[3])],
        "inputs": ImageFolder(folder / "pool"),
    }


@pytest.mark.parametrize("kind", ["folder", "text", "paths", "texts", "bytes", "bytearrays"])
def test_every_form_gives_the_same_scores(model, loaded, pictures, kind):
    given = kinds(pictures)[kind]
    assert np.allclose(loaded.scores(given), model[1], atol=2e-2)
    assert loaded.label(given).classes.tolist() == best(model[1]).tolist()


@pytest.mark.parametrize("kind", ["pillow", "levels", "mixed", "inputs"])
def test_pictures_that_are_open(model, loaded, pictures, kind):
    assert np.allclose(loaded.scores(kinds(pictures)[kind]), model[1], atol=2e-2)


def best(scores):
    """The unseen classes (rows 2 and 3), best first, by a plain loop."""
    return np.array([sorted((2, 3), key=lambda row, line=line: -line[row]) for line in scores])


@pytest.mark.parametrize("kind", ["paths", "bytes", "pillow", "levels"])
def test_one_at_a_time_gives_the_same_as_many(loaded, pictures, kind):
    many = kinds(pictures)[kind]
    together = loaded.scores(many)
    assert together.shape == (4, 4)
    for place, one in enumerate(kinds(pictures)[kind]):
        assert np.allclose(loaded.scores(one), together[[place]], atol=2e-2)
        assert loaded.predict(one).tolist() == [loaded.label(many).labels[place]]


def test_pieces_make_no_difference(loaded, pictures, monkeypatch):
    for kind in ("folder", "bytes", "inputs"):
        whole = loaded.scores(kinds(pictures)[kind])
        with monkeypatch.context() as patch:
            patch.setattr(module, "NUMBERS", 3)  # one at a time
            assert np.allclose(loaded.scores(kinds(pictures)[kind]), whole, atol=2e-2)


def test_images_in_an_array(loaded, model, pictures):
    inputs = ImageFolder(pictures / "pool", loaded._preprocessings[0])
    array = inputs[np.arange(4)]
    for given in (array, array.numpy()):
        assert np.allclose(loaded.scores(given), model[1], atol=2e-2)
    with refused("inputs-shape (3, 5,"):
        loaded.scores(np.zeros((2, 3, 5, 5)))


def test_backbones_of_several_sizes(problem, pictures, tmp_path):
    extractor = Extractor(backbone=f"{TINY}+tinynet_e", weights="random")
    features, _ = freeze(problem, None, extractor, tmp_path / "cache", workers=0)
    method = pren.ESZSL().fit(features)
    method.save(tmp_path)
    predictor = pren.Predictor.load(tmp_path, cache=tmp_path / "other")
    sizes = [wanted.sample_shape for wanted in predictor._preprocessings]
    assert len(set(sizes)) == 2
    for given in kinds(pictures).values():
        assert np.allclose(predictor.scores(given), method.scores(features.pool), atol=2e-2)
    good, bad = kinds(pictures)["bytes"][:2], b"no picture"
    found = predictor.label([good[0], bad, good[1]])
    assert [bool(error) for error in found.errors] == [False, True, False]
    assert np.allclose(found.scores[[0, 2]], predictor.label(good).scores, atol=2e-2)
    for size in sizes:  # an array has one size
        with refused("inputs-shape"):
            predictor.scores(np.zeros((2, *size)))


def test_only_files_are_cached(loaded, pictures, tmp_path):
    loaded.scores(kinds(pictures)["bytes"])
    assert not (tmp_path / "cache").exists()
    loaded.scores(kinds(pictures)["folder"])
    assert (tmp_path / "cache").exists() == (loaded.model.extractor_ is not None)


def test_what_cannot_be_read_has_an_error_and_costs_no_other(loaded, pictures, tmp_path):
    for given in (
        [tmp_path / "bad.jpg", pictures / "pool" / "5.png"],
        [b"no picture", (pictures / "pool" / "5.png").read_bytes()],
        [Image.new("F", (3, 3)), opened(pictures / "pool" / "5.png")],
        [bytearray(b"no picture"), pictures / "pool" / "5.png"],
    ):
        (tmp_path / "bad.jpg").write_bytes(b"no picture")
        found = loaded.label(given)
        assert [bool(error) for error in found.errors] == [True, False]
        assert "cannot be read as an image" in found.errors[0]
        assert found.classes[0].tolist() == [UNKNOWN, UNKNOWN]
        assert np.isnan(found.scores[0]).all()
        assert found.labels[0] == ""
        assert found.labels[1:].tolist() == loaded.predict(given[1]).tolist()
        with refused("input-unreadable"):
            loaded.scores(given)
    assert loaded.label(b"").labels.tolist() == [""]
    assert loaded.label(b"").errors[0].startswith("Photograph 0 cannot be read as an image (the file is empty)")


def test_inputs_that_cannot_be_read_have_an_error_too(loaded, pictures, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    (tmp_path / "good.png").write_bytes((pictures / "pool" / "5.png").read_bytes())
    found = loaded.label(ImageFolder(tmp_path))
    assert found.inputs == ("0", "1")
    assert [bool(error) for error in found.errors] == [True, False]
    assert found.labels.tolist() == ["", *loaded.predict(pictures / "pool" / "5.png")]


def test_nothing_gives_nothing(loaded):
    found = loaded.label([])
    assert len(found) == 0
    assert found.classes.shape == found.scores.shape == (0, 2)
    assert loaded.scores([]).shape == (0, 4)


def test_names(loaded, pictures):
    files = sorted((pictures / "pool").iterdir())
    assert loaded.label(pictures / "pool").inputs == tuple(path.name for path in files)
    assert loaded.label(files).inputs == tuple(map(str, files))
    assert loaded.label([pictures / "pool"]).inputs == tuple(map(str, files))
    assert loaded.label([path.read_bytes() for path in files]).inputs == ("0", "1", "2", "3")
    mixed = loaded.label([pictures / "pool", b"no picture"])
    assert mixed.inputs == (*map(str, files), "4")
    assert mixed.errors[4].startswith("Photograph 4 cannot be read")


@pytest.mark.skipif(os.uname().sysname == "Darwin", reason="macOS has only names in UTF-8")
def test_a_name_that_is_no_text(loaded, pictures, tmp_path):
    (tmp_path / os.fsdecode(b"\xff.png")).write_bytes((pictures / "pool" / "5.png").read_bytes())
    (name,) = loaded.label(tmp_path).inputs
    assert name.encode() == b"\\udcff.png"


def test_top_and_among(loaded, pictures):
    scores = loaded.scores(pictures / "pool")
    for among, rows in (("unseen", (2, 3)), ("seen", (0, 1)), ("all", range(4))):
        found = loaded.label(pictures / "pool", top=1, among=among)
        assert found.classes[:, 0].tolist() == [max(rows, key=lambda row, line=line: line[row]) for line in scores]
        assert found.labels.tolist() == ["dcba"[row] for row in found.classes[:, 0]]
        assert loaded.predict(pictures / "pool", among).tolist() == found.labels.tolist()
    with refused("unknown-name novel"):
        loaded.label(pictures / "pool", among="novel")
    with refused("option-value 0"):
        loaded.label(pictures / "pool", top=0)


def test_a_model_of_features_takes_features_only(pictures, tmp_path):
    rng = np.random.default_rng(0)
    features = rng.random((6, 5))
    problem = Problem.from_arrays(features, [0, 1] * 3, rng.random((4, 3)), features)
    method = pren.ESZSL().fit(problem)
    method.save(tmp_path / "model")
    loaded = pren.Predictor.load(tmp_path / "model")
    np.save(tmp_path / "new.npy", features)
    expected = method.scores(features)
    for given in (features, torch.from_numpy(features), features.tolist(), ArrayInputs(features), tmp_path / "new.npy"):
        assert np.array_equal(loaded.scores(given), expected)
    assert loaded.label(features).inputs == tuple("012345")
    with refused("features-needed"):
        loaded.label(pictures / "pool")
    with refused("inputs-shape (5,) (4,)"):
        loaded.label(np.empty((0, 4)))


def test_a_photograph_held_sideways_is_turned(loaded, pictures):
    upright = opened(pictures / "pool" / "5.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # turn right by 90 degrees to see it upright
    content = io.BytesIO()
    upright.transpose(Image.Transpose.ROTATE_90).save(content, "PNG", exif=exif)
    expected = loaded.scores(upright)
    assert np.allclose(loaded.scores(content.getvalue()), expected, atol=2e-2)
    assert np.allclose(loaded.scores(Image.open(content)), expected, atol=2e-2)


def test_no_file(loaded, tmp_path):
    with refused("file-missing nowhere.jpg"):
        loaded.label([tmp_path / "nowhere.jpg"])
    with refused("no-photographs"):
        loaded.label(tmp_path)
    with refused("not-a-run nowhere"):
        pren.Predictor.load(tmp_path / "nowhere")


def test_a_service_is_a_few_lines(loaded, pictures):
    """What somebody who writes one needs: the bytes of a request in, something to send back out."""

    def answer(request: bytes) -> str:
        found = loaded.label(request, top=2)
        if found.errors[0]:
            return json.dumps({"error": found.errors[0]})
        return json.dumps(next(found.rows()).to_json())

    reply = json.loads(
        answer((pictures / "pool" / sorted(p.name for p in (pictures / "pool").iterdir())[0]).read_bytes())
    )
    assert len(reply["classes"]) == 2
    assert reply["classes"][0]["score"] >= reply["classes"][1]["score"]
    assert "cannot be read" in json.loads(answer(b"not an image"))["error"]
