"""``pren export``: a file that is used without pren, and what can go wrong."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import ExifTags, Image

from pren.images.weights import PACKAGES
from pren.label.predictor import Predictor
from pren.store.manifest import MANIFEST

pytestmark = pytest.mark.slow
runtime = pytest.importorskip("onnxruntime", reason="the extra export is not installed")
pytest.importorskip("onnxscript", reason="the extra export is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "export.md"
EXAMPLE = re.findall(r"^```python\n(.*?)^```\n", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)[0]
WITHOUT_PREN = "import sys; sys.modules['pren'] = None; sys.argv = sys.argv[1:]; exec(sys.argv[0])"
CANDIDATES = [os.environ.get("PREN_DATA"), Path(__file__).parents[2].parent / "shared" / "data"]
BIRDS = next(
    (Path(root, "CUB_200_2011/images") for root in CANDIDATES if root and Path(root, "CUB_200_2011/images").is_dir()),
    None,
)
LITE = "tf_efficientnet_lite0"


def run_example(*photographs):
    """The scores and the lines that the example on the page has, in a process that cannot import pren."""
    # With the scores of each first, which people do not want to see.
    program = EXAMPLE.replace("    print(path, ", "    print(*scores[0]); print(path, ")
    command = [sys.executable, "-c", WITHOUT_PREN, program, *map(str, photographs)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return np.array(lines[::2], dtype=float), lines[1::2]


def assert_the_example_agrees(photographs):
    """The same classes and confidence as the library's, and scores within a thousandth of their spread."""
    predictor = Predictor.load("run")
    found = predictor.label(photographs, top=1)
    of_page, lines = run_example(*photographs)
    assert [(path, name) for path, name, *_ in lines] == [
        (str(path), label) for path, label in zip(photographs, found.labels, strict=True)
    ]
    if predictor.trust is not None:
        assert np.allclose([float(line[2]) for line in lines], found.confidence, atol=1e-3)
    session = runtime.InferenceSession("birds.onnx")
    levels = np.stack([predictor.open(path).inputs[[0]].numpy()[0] for path in map(str, photographs)])
    scores = session.run(["scores"], {"images": np.rint(levels * 255).astype(np.uint8)})[0]
    expected = predictor.scores(photographs)
    assert np.abs(scores - expected).max() < 1e-3 * expected.std()
    assert np.abs(of_page - expected).max() < 1e-3 * expected.std(), "the page decodes as the model does"


def large_photographs(folder):
    """JPEGs that are decoded at a half or less, with details that this blurs; one lies on its side."""
    rng = np.random.default_rng(5)
    for number, (width, height) in enumerate([(900, 700), (1600, 1200), (640, 2000)]):
        y, x = np.mgrid[:height, :width]
        stripes = 127 + 120 * np.sin(x / (2.0 + number)) * np.cos(y / 3.0)
        pixels = np.stack([stripes, 0.5 * stripes, rng.integers(0, 256, (height, width))], axis=2)
        turned = Image.Exif()
        turned[ExifTags.Base.Orientation] = 6 if number == 1 else 1
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"large-{number}.jpg", quality=92, exif=turned)


def assert_a_program_agrees(photographs, tolerance):
    """A program of torch, which is made sooner than a file of ONNX, gives the library's scores."""
    predictor = Predictor.load("run")
    levels = np.stack([predictor.open(path).inputs[[0]].numpy()[0] for path in map(str, photographs)])
    scores, *_ = torch.export.load("birds.pt2").module()(torch.from_numpy(np.rint(255 * levels).astype(np.uint8)))
    expected = predictor.scores(photographs)
    assert np.abs(scores.numpy() - expected).max() < tolerance * expected.std()


class TestPhotographs:
    def test_the_example_on_the_page_needs_no_pren(self, good, manydata, tiny_weights):
        large_photographs(manydata / "unlabelled")
        good("fit", manydata, "--backbone=test_resnet", f"--weights={tiny_weights}", "--mirrored", "--out=run")
        report = json.loads(good("export", "run", "--out=birds.onnx", "--json").out)
        assert Predictor.load("run").trust is not None
        assert report["input"]["type"] == "uint8"
        assert report["preprocessing"]["geometry"] == "whole"
        assert_the_example_agrees(sorted(manydata.rglob("unlabelled/**/*.*g")))

    def test_a_backbone_that_is_trained_with_the_rest(self, good, mydata, small, tiny_weights):
        good("fit", mydata, *small, "--backbone=test_resnet", f"--weights={tiny_weights}", "--set=dim=2", "--out=run")
        assert "uint8 (N, 3, 160, 160)" in good("export", "run", "--format=torch", "--out=birds.pt2").out
        assert_a_program_agrees(sorted(mydata.rglob("unlabelled/**/*.png")), 1e-3)

    @pytest.mark.parametrize(
        "more", [("--finetune", "--finetune-epochs=1", "--finetune-strength=1"), ("--train-from=2",)]
    )
    def test_a_backbone_whose_last_stages_have_learned(self, good, manydata, small, tiny_weights, more):
        settings = ["--rehearsals=2"] if "--finetune" in more else [*small, "--set=dim=2"]
        good("fit", manydata, "--backbone=test_resnet", f"--weights={tiny_weights}", *more, *settings, "--out=run")
        assert "uint8 (N, 3, 160, 160)" in good("export", "run", "--format=torch", "--out=birds.pt2").out
        # What goes into a stage is kept in half precision, and an exported model does not stop there.
        assert_a_program_agrees(sorted(manydata.rglob("unlabelled/**/*.png")), 1e-2)

    @pytest.mark.skipif(BIRDS is None, reason="CUB's photographs are not here: name their folder in PREN_DATA")
    @pytest.mark.skipif(find_spec(PACKAGES[LITE].module) is None, reason="the offline weights are not installed")
    def test_real_photographs(self, good):
        classes = sorted(BIRDS.iterdir())[:7]
        for folder in classes:
            to = Path("birds", "images", folder.name) if folder in classes[:5] else Path("birds", "unlabelled")
            to.mkdir(parents=True, exist_ok=True)
            for file in sorted(folder.iterdir())[:5]:
                (to / file.name).write_bytes(file.read_bytes())
        rng = np.random.default_rng(0)
        rows = [",".join([folder.name, *map(str, rng.random(6))]) for folder in classes]
        Path("birds/signatures.csv").write_text("\n".join(["class,a,b,c,d,e,f", *rows, ""]))
        good("fit", "birds", f"--backbone={LITE}", "--out=run")
        good("export", "run", "--format=torch", "--out=birds.pt2")
        assert_a_program_agrees(sorted(Path("birds/unlabelled").iterdir()), 1e-3)

    def test_features_without_the_backbone(self, good, mydata, tiny_weights):
        good("fit", mydata, "--backbone=test_resnet", f"--weights={tiny_weights}", "--out=run")
        said = good("export", "run", "--from-features", "--format=torch", "--out=head.pt2").out
        assert re.search(r"takes float32 \(N, \d+\), any N", said)


def test_how_sure_a_label_has_to_be_is_told(good, data):
    good("fit", data(), "--method=eszsl", "--out=run")
    said = good("export", "run", "--format=torch", "--min-accuracy=0.1", "--out=model.pt2").out
    assert re.search(r"confidence of [\d.]+ or more, 10% should be right", said)


class TestBadInput:
    @pytest.fixture
    def run(self, good, data):
        """A run on features."""
        good("fit", data(), "--method=eszsl", "--out=run")
        return "run"

    def test_a_file_that_is_there_stays(self, bad, run):
        Path("model.onnx").write_text("mine")
        assert bad("export", run, "--out=model.onnx").says("out-taken model.onnx")
        assert Path("model.onnx").read_text() == "mine"

    def test_no_run(self, bad):
        Path("empty").mkdir()
        assert bad("export", "empty", "--out=model.onnx").says("not-a-run")
        assert bad("export", "nowhere", "--out=model.onnx").says("not-a-run")

    def test_a_run_that_is_not_finished(self, bad, run):
        Path(run, MANIFEST).unlink()
        assert bad("export", run, "--out=model.onnx").says("run-unfinished --resume")
        assert not Path("model.onnx").exists()

    def test_a_run_whose_model_is_gone(self, bad, run):
        Path(run, "model.safetensors").unlink()
        assert bad("export", run, "--out=model.onnx").says("damaged model.safetensors")

    def test_a_damaged_model(self, bad, run):
        path = Path(run, "model.safetensors")
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        assert bad("export", run, "--out=model.onnx").says("damaged model.safetensors")
        assert not Path("model.onnx").exists()

    def test_a_method_that_cannot(self, good, bad, data):
        good("fit", data(), "--method=uda", "--set=rounds=1", "--out=run")
        assert bad("export", "run", "--out=model.onnx").says("export-unsupported")

    def test_no_folder_to_write_to(self, bad, run):
        assert bad("export", run, "--format=torch", "--out=nowhere/model.pt2").says("write-failed")

    def test_without_the_extra(self, bad, run, monkeypatch):
        monkeypatch.setitem(sys.modules, "onnxscript", None)
        assert bad("export", run, "--out=model.onnx").says("extra-missing")

    def test_a_precision_that_nothing_reaches_or_nobody_knows(self, good, bad, data, run):
        assert bad("export", run, "--min-accuracy=2", "--out=model.onnx").says("option-value 0 1")
        good("fit", data(), "--method=eszsl", "--rehearsals=0", "--out=other")
        assert bad("export", "other", "--min-accuracy=0.9", "--out=model.onnx").says("no-rehearsals")

    def test_features_of_a_model_of_images(self, good, bad, data, small):
        good("fit", data("images"), *small, "--set=backbone=small-cnn", "--out=run")
        assert bad("export", "run", "--from-features", "--out=model.onnx").says("export-images")
