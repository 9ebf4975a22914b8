"""Engines: OpenVINO gives torch's features, keeps them apart, tells nobody, and is never needed."""

import socket
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from refusals import refused
from torch import nn

from pren.foundation.extras import how_to_install
from pren.images import engines, precision
from pren.images.cache import FeatureCache
from pren.images.engines import (
    LIKENESS,
    LIKENESS_OF_HALF,
    PER_THREAD,
    OpenVINOEngine,
    choose_engine,
    cosine,
    has_bfloat16,
    nearest,
)
from pren.images.extraction import Extractor, FrozenBackbone, extract
from pren.images.photographs import recorded_backbone
from pren.images.side_by_side import SideBySide

pytestmark = pytest.mark.slow

TINY = "test_resnet"
SHAPE = (3, 32, 32)
CPU = torch.device("cpu")
real = pytest.mark.skipif(
    find_spec("openvino") is None, reason=f"OpenVINO is not installed: {how_to_install('photos')}"
)


@pytest.fixture(scope="module")
def fast(weights):
    """The tiny network in OpenVINO."""
    return FrozenBackbone.load(Extractor(backbone=TINY, weights=str(weights), engine="openvino"))


@pytest.fixture
def missing(monkeypatch):
    """A machine without OpenVINO."""
    monkeypatch.setitem(sys.modules, "openvino", None)
    monkeypatch.setattr(engines, "find_spec", lambda module: None)


def levels(count, shape=SHAPE, seed=0):
    chance = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, *shape), generator=chance, dtype=torch.uint8)


def network(*layers):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        built = nn.Sequential(*(layer() for layer in layers))
    return built.eval().requires_grad_(False)


@real
def test_every_image_has_the_features_of_torch(fast, tiny):
    count = 11
    images = levels(count, tiny.preprocessing.sample_shape)
    ours = fast(images, CPU)
    assert ours.shape == (count, *tiny.shape)
    with torch.inference_mode():
        for image, features in zip(images, ours, strict=True):
            theirs = tiny.network(image[None].float() / 255).numpy()[0]
            assert cosine(features, theirs) >= LIKENESS
            assert np.allclose(features, theirs, rtol=1e-3, atol=1e-4)
    assert np.ptp(ours, axis=0).max() > 0.01  # or all would be alike
    assert fast(images[:0], CPU).shape == (0, *tiny.shape)


@real
def test_transformers_and_mirror_images_have_the_features_of_torch():
    for options in ({"backbone": "test_vit"}, {"backbone": "test_efficientnet", "mirrored": True}):
        torches, ours = (
            FrozenBackbone.load(Extractor(weights="random", engine=engine, **options))
            for engine in ("torch", "openvino")
        )
        images = levels(3, ours.preprocessing.sample_shape)
        assert ours.facts == {**torches.facts, "engine": "openvino"}
        for a, b in zip(ours(images, CPU), torches(images, CPU), strict=True):
            assert cosine(a, b) >= LIKENESS


@real
def test_it_computes_in_float32_with_the_threads_of_this_process_and_pins_none(fast):
    before, made = torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            engine = OpenVINOEngine(fast.network, fast.preprocessing.sample_shape, fast.shape, TINY)
            assert engine.at_once == PER_THREAD * threads
            made.append(engine(levels(3, fast.preprocessing.sample_shape)))
        finally:
            torch.set_num_threads(before)
        compiled = engine._requests[0].get_compiled_model()
        assert str(compiled.get_property("INFERENCE_PRECISION_HINT")) == "<Type: 'float32'>"
        assert compiled.get_property("ENABLE_CPU_PINNING") is False
        for what in ("NUM_STREAMS", "INFERENCE_NUM_THREADS"):
            assert compiled.get_property(what) == threads
    assert np.array_equal(*made)  # one thread or two


@real
def test_features_do_not_depend_on_what_is_extracted_with_them(fast):
    images = levels(5, fast.preprocessing.sample_shape)
    together = fast(images, CPU)
    assert np.array_equal(together, np.concatenate([fast(image[None], CPU) for image in images]))


@real
def test_bfloat16_is_like_float32_and_another_engine(fast, weights):
    if not has_bfloat16():
        pytest.skip("this CPU has no bfloat16")
    half = FrozenBackbone.load(Extractor(backbone=TINY, weights=str(weights), engine="openvino-bfloat16"))
    assert half.facts == {**fast.facts, "engine": "openvino-bfloat16"}
    images = levels(9, fast.preprocessing.sample_shape)
    exact, rough = fast(images, CPU), half(images, CPU)
    assert LIKENESS_OF_HALF <= cosine(exact, rough) < 1
    compiled = half.engine._requests[0].get_compiled_model()
    assert str(compiled.get_property("INFERENCE_PRECISION_HINT")) == "<Type: 'bfloat16'>"


DIES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
OTHERS = """
import sys
sys.path[:] = sys.argv[2:]
import numpy as np
folder = sys.argv[1]
images = np.load(folder + "/images.npy")
np.save(folder + "/features.npy", np.arange(len(images) * 4, dtype=np.float32).reshape(-1, 4))
"""


@real
@pytest.mark.parametrize(("program", "why"), [(DIES, "ends"), (OTHERS, "cosine")])
def test_a_cpu_that_fails_in_bfloat16_is_refused_before_it_is_used(monkeypatch, program, why):
    monkeypatch.setattr(precision, "TRIAL_OF_OPENVINO", program)
    engine = OpenVINOEngine(nn.Flatten(), (1, 2, 2), (4,), "mine", half=True)
    assert engine(levels(0, (1, 2, 2))).shape == (0, 4), "nothing to try it on"
    with refused(f"precision-cpu mine {why} --engine openvino"):
        engine(levels(3, (1, 2, 2)))
    assert engine._requests is None, "it is tried again, not used"


@real
def test_a_cpu_without_bfloat16(monkeypatch):
    monkeypatch.setattr(engines, "has_bfloat16", lambda: False)
    with refused("precision-cpu --engine openvino"):
        Extractor(backbone=TINY, engine="openvino-bfloat16").resolved()
    assert nearest("openvino-bfloat16") == "openvino", "of a model that another machine has made"


@real
def test_nothing_is_told_over_the_network(monkeypatch, fast):
    def call(*given):
        raise AssertionError("OpenVINO calls out")

    monkeypatch.setattr(socket.socket, "connect", call)
    monkeypatch.setattr(socket, "create_connection", call)
    monkeypatch.setitem(sys.modules, "openvino_telemetry", None)  # its use would be an error
    OpenVINOEngine(fast.network, fast.preprocessing.sample_shape, fast.shape, TINY)(
        levels(1, fast.preprocessing.sample_shape)
    )


SIGNALLED = """
import gc, os, signal, sys
import torch
from torch import nn
from pren.images.engines import OpenVINOEngine
signal.signal(signal.SIGUSR1, lambda *given: print("alive"))
networks = [OpenVINOEngine(nn.Flatten(), (1, 2, 2), (4,), "flat") for _ in range(2)]
for network in networks:
    print(network(torch.ones(1, 1, 2, 2)).shape)
while networks:
    del network, networks[0]
    gc.collect()
    network = None
    os.kill(os.getpid(), signal.SIGUSR1)
"""


@real
@pytest.mark.slow
def test_signals_reach_the_process_when_networks_come_and_go():
    done = subprocess.run([sys.executable, "-c", SIGNALLED], capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["(1, 4)"] * 2 + ["alive"] * 2)


class Moody(nn.Module):
    """A network whose way depends on the image; a translation only knows one of its ways."""

    def forward(self, images):
        sides = images.mean(dim=(2, 3))
        return sides if sides.sum() < 0.1 else sides * torch.tensor([1.0, 2.0, -3.0])


class Unknown(nn.Module):
    """A network that OpenVINO cannot translate."""

    def forward(self, images):
        return torch.linalg.eigvalsh(images[:, 0] + images[:, 0].transpose(1, 2))


@real
@pytest.mark.parametrize("layer", [Moody, Unknown])
def test_a_network_that_it_cannot_run_is_refused_with_the_way_out(layer):
    engine = OpenVINOEngine(network(layer), SHAPE, (3,) if layer is Moody else (32,), "mine")
    with refused("engine-refused mine --engine torch"):
        engine(levels(1))


@real
def test_features_of_two_engines_are_never_mixed(tmp_path, draw_files, fabric, fast, tiny):
    assert fast.facts == {**tiny.facts, "engine": "openvino"}
    assert "engine" not in tiny.facts, "caches that were made before there were engines are torch's"
    files = draw_files(tmp_path / "images", 3)
    kept = [FeatureCache(tmp_path / "cache", each.facts, each.shape) for each in (tiny, fast)]
    assert kept[0].folder != kept[1].folder
    done = [extract(files, each, cache, fabric, workers=0) for each, cache in zip((tiny, fast), kept, strict=True)]
    assert [part.fresh for part in done] == [3, 3]
    theirs, ours = (cache.inputs(part.rows) for cache, part in zip(kept, done, strict=True))
    assert theirs.digest() != ours.digest()
    assert torch.allclose(theirs[np.arange(3)], ours[np.arange(3)], rtol=2e-3, atol=2e-3)


def test_networks_of_users_run_through_torch_unless_they_say_otherwise(monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda module: True)
    monkeypatch.setattr(engines, "is_accelerated", lambda: False)
    for name in ("small-cnn", f"{TINY}+small-cnn"):
        assert Extractor(backbone=name).own_engine() == "torch"


def test_openvino_runs_where_it_is_and_only_a_cpu_is(monkeypatch):
    for installed, accelerated, chosen in (
        (True, False, "openvino"),
        (True, True, "torch"),
        (False, False, "torch"),
    ):
        monkeypatch.setattr(engines, "find_spec", lambda module, there=installed: there or None)
        monkeypatch.setattr(engines, "is_accelerated", lambda there=accelerated: there)
        assert choose_engine(None) == chosen
        assert choose_engine("torch") == "torch"
        assert Extractor(backbone=TINY).resolved().engine == chosen
        assert Extractor(backbone=TINY, until="1").resolved().engine == "torch"


@pytest.mark.usefixtures("missing")
def test_asked_for_but_not_installed():
    with refused("extra-missing openvino photos"):
        choose_engine("openvino")


def test_what_is_trained_runs_through_torch():
    for more in ({"until": "1"}, {"finetune": {}}):
        for engine in ("openvino", "openvino-bfloat16"):
            with pytest.raises(ValueError, match="--engine"):
                Extractor.model_validate({"backbone": TINY, "engine": engine, **more})


@real
def test_a_model_keeps_its_engine_where_that_is_installed(monkeypatch, request, weights):
    asked = Extractor(backbone=TINY, weights=str(weights), engine="openvino")
    both = Extractor(backbone=f"{TINY}+test_efficientnet", weights="random", engine="openvino")
    for extractor in (asked, both):
        facts = SideBySide.load(extractor).facts
        later = extractor.model_copy(update={"engine": None}).model_dump(mode="json")
        record = {"asked": later, "facts": facts}
        assert recorded_backbone(record).facts == facts
        before = SideBySide.load(extractor.model_copy(update={"engine": "torch"})).facts
        assert recorded_backbone({**record, "facts": before}).facts == before
        with monkeypatch.context() as patch:
            patch.setattr(engines, "find_spec", lambda module: None)
            assert recorded_backbone(record).facts == before, "torch instead"


def test_the_cosine_of_arrays():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5)).astype(np.float32)
    plain = sum(x * y for x, y in zip(a, b, strict=True)) / np.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    assert cosine(a, b) == pytest.approx(plain, abs=1e-6)
    zeros = np.zeros(5, dtype=np.float32)
    assert (cosine(zeros, zeros), cosine(zeros, a)) == (1.0, 0.0)
