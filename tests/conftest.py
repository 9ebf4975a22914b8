"""What several rooms share: a profile for hypothesis, problems small enough to fit in a moment, comparisons without
processes."""

import json
import os
import shutil
import socket
from importlib import resources
from importlib.util import find_spec

import numpy as np
import pytest
from huggingface_hub import constants
from hypothesis import settings
from PIL import Image

from pren.core.ensemble import Ensemble
from pren.core.projection import LabelEmbeddings
from pren.foundation.errors import PrenError
from pren.foundation.extras import how_to_install
from pren.images import engines, weights
from pren.images.precision import check_bfloat16
from pren.methods.base import Method
from pren.problem import Problem
from pren.research import computing
from pren.research.cells import Result, compute

settings.register_profile("pren", deadline=None)  # the machine may be busy, and timings are not tested here
settings.register_profile("quick", deadline=None, max_examples=20)  # for `make check`
settings.load_profile("pren")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Let a report cross between processes, whatever is in it.

    Library code logs hostile names as they are, and a worker of pytest-xdist that has to send a lone surrogate dies.
    """
    report = yield
    report.sections = [(name, _sendable(text)) for name, text in report.sections]
    if report.failed and (said := str(report.longrepr)) != _sendable(said):
        report.longrepr = _sendable(said)
    return report


def _sendable(text):
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@pytest.fixture(scope="session")
def make_problem():
    """Build a problem with features or images; its classes do not stand in the order of their names."""

    def build(
        *, n_seen=4, n_unseen=4, m=6, shape=(5,), per_class=6, pool_per_class=5, setting="zsl", seed=0, order=None
    ):
        rng = np.random.default_rng(seed)
        L = n_seen + n_unseen
        names = np.array([f"{'zyxwvutsrqponmlkjihgfedcba'[i % 26]}{i}" for i in range(L)])
        signatures = rng.random((L, m))
        centres = rng.normal(size=(L, *shape))
        labels = np.repeat(np.arange(n_seen), per_class)
        in_pool = np.repeat(np.arange(0 if setting == "gzsl" else n_seen, L), pool_per_class)
        rng.shuffle(in_pool)
        train, pool = (
            (centres[which] + 0.3 * rng.normal(size=(len(which), *shape))).astype(np.float32)
            for which in (labels, in_pool)
        )
        order = np.arange(L) if order is None else order  # of the rows of the class table
        backbone = "small-cnn" if len(shape) > 1 else None
        return Problem.from_arrays(
            train, names[labels], signatures[order], pool, names[order], setting=setting, backbone=backbone
        )

    return build


@pytest.fixture(scope="session")
def whole():
    """All inputs as one array."""

    def read(inputs):
        return inputs[np.arange(len(inputs))].numpy()

    return read


@pytest.fixture(scope="session")
def make_ensemble():
    """Build heads over given subsets (K, L), with Gaussian label embeddings unless some are given."""

    def build(subsets, vectors=None, *, h=3, in_features=4, hidden=(8, 5), output_relu=True, seed=0, **options):
        rng = np.random.default_rng(seed)
        subsets = np.asarray(subsets, dtype=bool)
        if vectors is None:
            vectors = rng.normal(size=(len(subsets), h, subsets.shape[1]))
        labels = LabelEmbeddings(np.asarray(vectors, dtype=np.float64), subsets)
        return Ensemble(in_features, hidden, labels, output_relu, rng, **options)

    return build


PAIRS = [(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0), (1, 0), (2, 1)]  # what stands left and right


@pytest.fixture(scope="session")
def arrays():
    """The arrays of a data file that can be learned: 5 seen classes, 3 unseen ones, whose answers are known.

    A class is a pair of textures, left and right. Classes do not stand in the order of their names.
    """

    def build(form="features", setting="zsl", seed=0):
        rng = np.random.default_rng(seed)
        labels = np.repeat(np.arange(5), 5)
        answers = rng.permutation(np.repeat(np.arange(5 if setting == "zsl" else 0, 8), 6))
        signatures = np.eye(3)[PAIRS].reshape(8, 6)
        y, x = np.mgrid[:8, :6]
        textures = np.stack([y % 2, x % 2, (x + y) // 2 % 2])
        images = np.concatenate(
            [textures[[left for left, _ in PAIRS]], textures[[right for _, right in PAIRS]]], axis=2
        )
        centres = 2 * signatures if form == "features" else images[:, None]
        features, pool = (
            (centres[which] + 0.3 * rng.normal(size=(len(which), *centres.shape[1:]))).astype(np.float32)
            for which in (labels, answers)
        )
        return {
            "features": features,
            "labels": labels,
            "signatures": signatures + 0.1 * rng.random((8, 6)),
            "pool": pool,
            "class_names": np.array([f"{letter} class" for letter in "hgfedcba"]),
            "answers": answers,
        }

    return build


@pytest.fixture(autouse=True, scope="session")
def kept(tmp_path_factory):
    """Features and encoded texts that nobody says where to keep."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def plain_engine():
    """torch runs frozen backbones, unless a test asks for another engine: results are the same without the extra."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "is_accelerated", lambda: True)
        yield


@pytest.fixture(autouse=True, scope="session")
def few_rehearsals():
    """Enough to foretell with: most tests look at something else. Processes of their own rehearse as often as users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Method, "rehearsals", 3)
        yield


@pytest.fixture(autouse=True, scope="session")
def offline():
    """No test asks the hub: what is chosen does not depend on a connection."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        yield


@pytest.fixture
def no_hub(monkeypatch, tmp_path):
    """A hub that refuses every connection, and whose client has left nothing on this machine."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(weights, "getproxies", dict)


@pytest.fixture
def bfloat16():
    """Skip on a CPU whose bfloat16 does not work."""
    try:
        check_bfloat16()
    except PrenError as error:
        pytest.skip(str(error))


@pytest.fixture
def here(monkeypatch):
    """Compute cells in this process; returns the methods and seeds that were computed, in order."""
    computed = []

    def run(tasks, folder, jobs, on_done):
        for task in tasks:
            computed.append((task.cell.method, task.cell.seed))
            try:
                result = compute(task)
            except PrenError as error:
                result = Result(error=str(error))
            on_done(task, result)

    monkeypatch.setattr(computing, "run_tasks", run)
    return computed


@pytest.fixture(scope="session")
def tiny_weights(tmp_path_factory):
    """A file with weights of one of timm's networks for tests, `test_resnet`."""
    import torch
    from safetensors.torch import save_file

    from pren.images.torchvision_operators import import_timm

    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        save_file(import_timm().create_model("test_resnet").state_dict(), path)
    return path


CLIP_TOWERS = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 16, "head_width": 8, "patch_size": 16},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 8, "heads": 1, "layers": 1},
}


@pytest.fixture
def tiny_clip(monkeypatch, tmp_path):
    """A model that open_clip knows as "tiny", and the file with its weights, which are random."""
    if find_spec("open_clip") is None:
        pytest.skip(f"open_clip is not installed: {how_to_install('clip')}")
    import torch
    from safetensors.torch import save_file

    from pren.images.clip import ClipName, import_open_clip

    factory = import_open_clip().factory
    monkeypatch.setattr(factory, "_MODEL_CONFIGS", {**factory._MODEL_CONFIGS, "tiny": CLIP_TOWERS})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = ClipName("tiny").build().eval()
    path = tmp_path / "tiny.safetensors"
    save_file(model.state_dict(), path)
    return model, path


@pytest.fixture
def photographs(tmp_path):
    """A folder of photographs: five seen colours with three pictures each, two unseen ones with answers."""
    folder, rng = tmp_path / "photographs", np.random.default_rng(0)
    colours = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1], [1, 1, 0], [1, 0, 1]])

    def draw(path, label):
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = 200 * colours[label] + rng.integers(0, 50, (9, 12, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(path)

    for label, name in enumerate("gfedc"):
        for number in range(3):
            draw(folder / "images" / name / f"{number}.png", label)
    answers = ["file,class"]
    for number in range(6):
        draw(folder / "unlabelled" / f"{number}.png", 5 + number % 2)
        answers.append(f"{number}.png,{'ba'[number % 2]}")
    table = [f"{name},{r},{g},{b}" for name, (r, g, b) in zip("gfedcba", colours, strict=True)]
    (folder / "signatures.csv").write_text("\n".join(["class,red,green,blue", *table, ""]))
    (folder / "answers.csv").write_text("\n".join([*answers, ""]))
    return folder


@pytest.fixture(scope="session")
def experiments(tmp_path_factory):
    """What a comparison and a study keep, with a method and a parameter that are hostile."""
    folder = tmp_path_factory.mktemp("experiments")
    (folder / "cells").mkdir()
    hashes = {"data": "d", "split": "s", "answers": "a"}
    for method, seed, top1 in (("eszsl", None, 0.5), ("sje", 0, 0.6), ("sje", 1, 0.7), ("sje", 2, None)):
        cell = {"method": method, "params": {}, "setting": "zsl", "hashes": hashes, "seed": seed, "version": "0"}
        error = "<script>window.hacked=1</script>" if top1 is None else None
        result = {"figures": {} if error else {"top1": top1, "macc": top1}, "fit_seconds": 1.0, "error": error}
        (folder / "cells" / f"{method}-{seed}.json").write_text(json.dumps({"cell": cell, "result": result}))
    (folder / "tuned").mkdir()
    trials = [{"params": {"reg": x, "way": "<i>"}, "value": x, "folds": [x, x]} for x in (0.2, 0.4, 0.3)]
    study = {
        "what": {"method": "eszsl", "setting": "zsl", "seed": 0},
        "trials": [*trials, {"params": {}, "error": "no"}],
    }
    (folder / "tuned" / "study.json").write_text(json.dumps(study))
    return folder


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser():
    """Chromium, driven by playwright; skipped where one of the two is missing.

    Not longer than a module: while playwright is there, no other test can run an event loop.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra browser is not installed: make browser")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no browser is installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, which a package carries; skipped where there is none."""
    pytest.importorskip("axe_playwright_python", reason="the extra browser is not installed: make browser")
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
