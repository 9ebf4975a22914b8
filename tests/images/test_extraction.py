"""From image files to features: the right ones, once each, whatever interrupts."""

import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from refusals import refused

from pren.images import extraction
from pren.images.cache import ROWS_FILE, FeatureCache
from pren.images.extraction import Extractor, FrozenBackbone, extract
from pren.images.files import ImageFiles

TINY = "test_resnet"


@pytest.fixture
def cache(tmp_path, tiny):
    return FeatureCache(tmp_path / "cache", tiny.facts, tiny.shape)


@pytest.fixture
def seen(tiny, monkeypatch):
    """How many images have gone through the network, batch by batch."""
    counts: list[int] = []
    hook = tiny.network.register_forward_hook(lambda module, images, features: counts.append(len(features)))
    monkeypatch.setattr(extraction, "BATCH_ON_CPU", 4)
    yield counts
    hook.remove()


@pytest.fixture
def run(tiny, cache, fabric):
    def extract_now(files, workers=0, **options):
        return extract(files, tiny, cache, fabric, workers, **options)

    return extract_now


def values(cache, done):
    return cache.inputs(done.rows)[np.arange(len(done.rows))]


@pytest.mark.usefixtures("seen")
def test_features_are_the_plain_networks(tmp_path, draw_files, run, cache, tiny):
    files = draw_files(tmp_path / "images", 6)
    done = run(files)
    assert (done.fresh, done.problems) == (6, [])
    with torch.inference_mode():
        plain = tiny.network(files.prepared(tiny.preprocessing)[np.arange(6)])
    assert torch.allclose(values(cache, done), plain, rtol=1e-3, atol=1e-4)
    assert plain.std(dim=0).max() > 0.01  # or all would be alike


def test_mirrored_features_are_the_mean_of_two_pictures(weights, tiny):
    mirrored = FrozenBackbone.load(Extractor(backbone=TINY, weights=str(weights), mirrored=True))
    levels = torch.randint(0, 256, (3, *tiny.preprocessing.sample_shape), generator=torch.Generator().manual_seed(0))
    turned = torch.from_numpy(np.ascontiguousarray(levels.numpy()[..., ::-1]))
    ours, theirs = tiny(levels, torch.device("cpu")), tiny(turned, torch.device("cpu"))
    made = mirrored(levels, torch.device("cpu"))
    assert np.allclose(made, (ours + theirs) / 2, rtol=1e-4, atol=1e-5)
    assert not np.allclose(made, ours, rtol=1e-2, atol=1e-3)
    assert np.allclose(mirrored(turned, torch.device("cpu")), made, rtol=1e-4, atol=1e-5), "left and right are alike"
    assert mirrored.facts == {**tiny.facts, "mirrored": True}  # a cache of its own
    assert (mirrored.shape, mirrored.preprocessing) == (tiny.shape, tiny.preprocessing)


@pytest.mark.parametrize("more", [{"until": "1"}, {"finetune": {}}])
def test_what_is_trained_is_not_mirrored(more):
    with pytest.raises(ValueError, match="mirrored"):
        Extractor.model_validate({"backbone": TINY, "mirrored": True, **more})


def test_nothing_is_extracted_twice(tmp_path, draw_files, run, seen):
    files = draw_files(tmp_path / "images", 6)
    first = run(files)
    assert seen == [4, 2]
    again = run(files)
    assert (again.fresh, seen) == (0, [4, 2])
    assert again.rows.tolist() == first.rows.tolist()
    more = run(draw_files(tmp_path / "images", 9))
    assert (more.fresh, sum(seen)) == (3, 9)
    assert more.rows[:6].tolist() == first.rows.tolist()


def test_files_are_known_by_their_content(tmp_path, draw_files, run, cache, seen):
    files = draw_files(tmp_path / "images", 3)
    first = values(cache, run(files))
    folder = tmp_path / "images"
    (folder / "001.png").rename(folder / "moved.png")
    shutil.copy(folder / "002.png", folder / "000.png")
    done = run(ImageFiles(folder, ["moved.png", "000.png", "002.png"]))
    assert (done.fresh, seen) == (0, [3])
    assert values(cache, done).equal(first[[1, 2, 2]])
    draw_files(folder, 1, start=99)
    shutil.copy(folder / "099.png", folder / "002.png")
    changed = run(ImageFiles(folder, ["002.png"]))
    assert changed.fresh == 1
    assert not values(cache, changed).equal(first[[2]])


def test_duplicates_are_extracted_once(tmp_path, draw_files, run, cache, seen):
    draw_files(tmp_path / "images", 3)
    # In one batch, and over several.
    names = ["000.png", "000.png", "001.png", "000.png", "001.png", "002.png", "000.png"]
    done = run(ImageFiles(tmp_path / "images", names))
    assert (done.fresh, seen) == (3, [2, 1])
    assert done.rows.tolist() == [0, 0, 1, 0, 1, 2, 0]
    assert len(cache.rows()) == 3


def test_bad_files_are_reported_and_passed_over(tmp_path, draw_files, run, cache, seen):
    draw_files(tmp_path / "images", 6)
    for number, content in [(1, b""), (4, b"no image"), (5, (tmp_path / "images" / "005.png").read_bytes()[:100])]:
        (tmp_path / "images" / f"{number:03d}.png").write_bytes(content)
    names = [f"{number:03d}.png" for number in range(6)] + ["nowhere.png"]
    done = run(ImageFiles(tmp_path / "images", names))
    assert [row >= 0 for row in done.rows] == [True, False, True, True, False, False, False]
    assert [place for place, _ in done.problems] == [1, 4, 5, 6]
    reasons = ["001.png .*the file is empty", "004.png .*cannot identify", "005.png", "nowhere.png .*No such file"]
    for (_, said), reason in zip(done.problems, reasons, strict=True):
        assert re.search(reason, said)
    assert sum(seen) == 3
    with refused("input-unreadable"):
        run(ImageFiles(tmp_path / "images", names), strict=True)
    alone = run(ImageFiles(tmp_path / "images", ["001.png"]))  # a whole batch of them
    assert alone.rows.tolist() == [-1]
    assert len(cache.rows()) == 3


@pytest.mark.usefixtures("seen")
def test_workers_change_nothing(tmp_path, draw_files, tiny, fabric):
    files = draw_files(tmp_path / "images", 9)
    (tmp_path / "images" / "003.png").write_bytes(b"")
    found = []
    for workers in (0, 2):
        cache = FeatureCache(tmp_path / f"cache {workers}", tiny.facts, tiny.shape)
        progress = []
        before = torch.get_rng_state()
        done = extract(files, tiny, cache, fabric, workers, on_progress=lambda *seen, to=progress: to.append(seen))
        assert torch.equal(before, torch.get_rng_state())
        found.append((done.rows.tolist(), done.problems, progress, (cache.folder / ROWS_FILE).read_bytes()))
    assert found[0] == found[1]
    assert found[0][2] == [(4, 3, 9), (8, 7, 9), (9, 8, 9)]


def test_an_interrupted_extraction_goes_on_where_it_stopped(tmp_path, draw_files, run, seen):
    files = draw_files(tmp_path / "images", 11)

    def interrupt(done, fresh, total):
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(files, on_progress=interrupt)
    assert seen == [4, 4]
    done = run(files)
    assert (done.fresh, seen) == (3, [4, 4, 3])
    assert done.rows.tolist() == list(range(11))


KILLED = """
import os, signal, sys
from pren.training.processes import single_process
from pren.images import extraction
from pren.images.cache import FeatureCache
from pren.images.files import ImageFolder
extraction.BATCH_ON_CPU = 4
asked = extraction.Extractor(backbone="test_resnet", weights=sys.argv[1], engine="torch")
frozen = extraction.FrozenBackbone.load(asked)
cache = FeatureCache(sys.argv[3], frozen.facts, frozen.shape)
def stop(done, fresh, total):
    if done == 8:
        with (cache.folder / "features.rows").open("ab") as file:
            file.write(b"half a record")
        os.kill(os.getpid(), signal.SIGKILL)
extraction.extract(ImageFolder(sys.argv[2]), frozen, cache, single_process("cpu"), workers=0, on_progress=stop)
"""


@pytest.mark.slow
def test_a_killed_extraction_goes_on_where_it_stopped(tmp_path, draw_files, run, cache, seen, weights):
    files = draw_files(tmp_path / "images", 11)
    command = [sys.executable, "-c", KILLED, weights, tmp_path / "images", cache.folder.parent]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=200, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    after = run(files)
    assert (after.fresh, sum(seen)) == (3, 3)
    assert after.rows.tolist() == list(range(11))


def test_a_damaged_record_is_extracted_again(tmp_path, draw_files, run, cache, seen):
    files = draw_files(tmp_path / "images", 3)
    before = values(cache, run(files))
    path = cache.folder / ROWS_FILE
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1  # of the record in the middle
    path.write_bytes(content)
    done = run(files)
    assert (done.fresh, seen) == (1, [3, 1])
    assert done.rows.tolist() == [0, 3, 2]
    assert torch.allclose(values(cache, done), before, atol=2e-3)


def test_features_that_vanish_are_explained(tmp_path, draw_files, run, cache):
    files = draw_files(tmp_path / "images", 3)
    with refused("cache-lost"):
        run(files, on_progress=lambda *_: (cache.folder / ROWS_FILE).unlink())


# --- what extracts


def test_facts_follow_weights_geometry_and_backbone(weights, tmp_path, tiny):
    again = FrozenBackbone.load(Extractor(backbone=TINY, weights=str(weights)))
    assert again.facts == tiny.facts
    shutil.copy(weights, tmp_path / "copy.safetensors")
    assert FrozenBackbone.load(Extractor(backbone=TINY, weights=str(tmp_path / "copy.safetensors"))).facts == tiny.facts
    timm = FrozenBackbone.load(Extractor(backbone=TINY, weights=str(weights), geometry="timm"))
    other = FrozenBackbone.load(Extractor(backbone=TINY, weights="random"))
    assert timm.facts["weights"] == tiny.facts["weights"]
    assert timm.facts["preprocessing"] != tiny.facts["preprocessing"]
    assert other.facts["weights"] != tiny.facts["weights"]
    assert not tiny.network.training
    assert not any(weight.requires_grad for weight in tiny.network.parameters())


def test_what_cannot_be_frozen():
    with refused("weights-missing"):
        FrozenBackbone.load(Extractor(backbone="small-cnn"))
    with refused("backbone-unknown"):
        FrozenBackbone.load(Extractor(backbone="zzz"))
