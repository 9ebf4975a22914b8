"""How much time to spend: which backbones, and how long they take."""

import logging

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric

from pren.images import duration, quality
from pren.images.duration import announce, in_words, seconds_for_one
from pren.images.quality import LARGE, Chosen, choose
from pren.images.side_by_side import FeatureStore, SideBySide

LITE = [f"tf_efficientnet_lite{size}" for size in range(3)]
CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("installed", "large", "wanted"),
    [
        (LITE, False, {"fast": (LITE[0], False), "good": ("+".join(LITE), False), "best": ("+".join(LITE), True)}),
        (
            LITE[1:],
            True,
            {"fast": (LITE[1], False), "good": (LARGE, False), "best": (f"{LARGE}+{LITE[1]}+{LITE[2]}", False)},
        ),
        ([], False, {"fast": (LARGE, False), "good": (LARGE, False), "best": (LARGE, False)}),
    ],
)
def test_backbones_at_hand(monkeypatch, installed, large, wanted):
    monkeypatch.setattr(quality, "package_of", lambda name: name if name in installed else None)
    monkeypatch.setattr(quality, "can_fetch", lambda name: large and name == LARGE)
    assert {each: choose(each) for each in wanted} == {each: Chosen(*names) for each, names in wanted.items()}


def test_a_folder_of_weights_needs_no_hub(monkeypatch, tmp_path, no_hub):
    monkeypatch.setattr(quality, "package_of", lambda name: name)
    assert LARGE not in choose("good", str(tmp_path)).backbone
    (tmp_path / f"{LARGE}.safetensors").touch()
    assert choose("good", str(tmp_path)).backbone == LARGE


def test_the_time_for_a_photograph(tmp_path, draw_files, tiny):
    ticks = iter([0.0, 3.0, 10.0, 14.0])  # three files are read in 3 s, a batch is computed in 4 s
    files = draw_files(tmp_path / "images", 3)
    taken = seconds_for_one(tiny, files, CPU, lambda: next(ticks))
    assert taken == pytest.approx(1 / torch.get_num_threads() + 4 / tiny.at_once(CPU))
    assert not list(ticks)


def test_a_trial_is_of_the_photographs(tmp_path, draw_files, tiny, monkeypatch):
    """An engine may check itself on the first images, and black ones tell nothing."""
    files, seen = draw_files(tmp_path / "images", 3), []
    monkeypatch.setattr(type(tiny), "__call__", lambda self, images, device: seen.append(images))
    seconds_for_one(tiny, files, CPU)
    images = files.prepared(tiny.preprocessing)
    for place, image in enumerate(seen[0]):
        assert np.array_equal(image.numpy(), images.read(place % 3).levels)
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"")
    seconds_for_one(tiny, type(files)(tmp_path, ["broken.png"]), CPU)
    assert seen[2].shape == seen[0].shape


def test_what_takes_long_is_said_beforehand(tmp_path, draw_files, tiny, monkeypatch, caplog):
    monkeypatch.setattr(duration, "WORTH_A_TRIAL", 3)
    monkeypatch.setattr(duration, "seconds_for_one", lambda frozen, files, device: 60.0)
    caplog.set_level(logging.INFO, "pren")
    files = draw_files(tmp_path / "images", 4)
    store = FeatureStore(tmp_path / "cache", SideBySide((tiny,)))
    announce(store, [files.select(np.arange(2))], CPU)
    assert not caplog.messages, "two are soon done"
    announce(store, [files, files.select(np.arange(2))], CPU, processes=2)
    assert [all(word in line for word in ("6", "3 minutes")) for line in caplog.messages] == [True]
    store.extract(files, Fabric(accelerator="cpu", devices=1), workers=0)
    caplog.clear()
    announce(store, [files, files.select(np.arange(2))], CPU)
    assert not caplog.messages, "all are in the cache"


def test_durations_in_words():
    assert [in_words(seconds) for seconds in (0.2, 44, 89, 90, 1234)] == [
        "10 seconds",
        "40 seconds",
        "90 seconds",
        "2 minutes",
        "21 minutes",
    ]
