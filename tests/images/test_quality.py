"""How much time to spend: which backbones, and how long they take."""

import logging
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from lightning_fabric import Fabric
from safetensors.torch import load_file

from pren.images import duration, quality
from pren.images import weights as weights_module
from pren.images.duration import announce, in_words, seconds_for_one
from pren.images.quality import LARGE, Chosen, choose, with_usual
from pren.images.side_by_side import FeatureStore, SideBySide
from pren.images.weights import fetch

LITE = [f"tf_efficientnet_lite{size}" for size in range(3)]
CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("installed", "large", "wanted"),
    [
        (LITE, False, {"fast": (LITE[0], False), "good": ("+".join(LITE), False), "best": ("+".join(LITE), True)}),
        (
            LITE[1:],
            True,
            {"fast": (LITE[1], False), "good": (LARGE, False), "best": (LARGE, True)},
        ),
        ([], False, {"fast": (LARGE, False), "good": (LARGE, False), "best": (LARGE, True)}),
    ],
)
def test_backbones_at_hand(monkeypatch, installed, large, wanted):
    monkeypatch.setattr(quality, "package_of", lambda name: name if name in installed else None)
    monkeypatch.setattr(quality, "obtain", lambda name: "" if large and name == LARGE else "no connection")
    assert {each: choose(each) for each in wanted} == {each: Chosen(*names) for each, names in wanted.items()}


def test_a_folder_of_weights_needs_no_hub(monkeypatch, tmp_path, no_hub):
    monkeypatch.setattr(quality, "package_of", lambda name: name)
    assert LARGE not in choose("good", str(tmp_path)).backbone
    (tmp_path / f"{LARGE}.safetensors").touch()
    assert choose("good", str(tmp_path)).backbone == LARGE


@pytest.fixture
def hub(monkeypatch, tmp_path, weights, no_hub):
    """A hub on this machine that has the tiny network's weights; returns what it was asked for."""
    asked, content = [], weights.read_bytes()

    class Answers(BaseHTTPRequestHandler):
        def do_HEAD(self):
            asked.append(self.path)
            self.send_response(200)
            for name, value in (("ETag", '"1"'), ("X-Repo-Commit", 40 * "a"), ("Content-Length", str(len(content)))):
                self.send_header(name, value)
            self.end_headers()

        def do_GET(self):
            self.do_HEAD()
            self.wfile.write(content)

        def log_message(self, *given):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setattr(quality, "LARGE", "test_resnet")
        yield asked
        server.shutdown()


@pytest.mark.slow
def test_a_hub_in_reach_gives_its_weights_once_and_is_not_asked_again(hub, monkeypatch, weights):
    monkeypatch.setattr(quality, "package_of", lambda name: name)
    chosen = choose("good")
    assert chosen == Chosen("test_resnet")
    assert any(path.endswith("/model.safetensors") for path in hub)
    hub.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert choose("good") == chosen, "it is in the hub's cache on this machine"
    tensors = fetch("test_resnet")
    assert all(torch.equal(value, tensors[name]) for name, value in load_file(weights).items())
    assert not hub


def test_without_a_hub_all_installed_ones_are_taken_and_the_reason_is_said(no_hub, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "pren")
    monkeypatch.setattr(quality, "package_of", lambda name: name)
    for offline in (False, True):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        assert choose("good") == Chosen("+".join(LITE))
    reasons = ["http://127.0.0.1", "HF_HUB_OFFLINE"]
    assert [reason in line and LARGE in line for reason, line in zip(reasons, caplog.messages, strict=True)] == [
        True
    ] * 2


def test_a_hub_that_answers_with_an_error_is_no_hub(no_hub, monkeypatch):
    monkeypatch.setattr(weights_module, "_check_hub", lambda: None)  # a proxy that is there and reaches nothing

    def fails(*given, **options):
        raise OSError("403 Forbidden\nby the proxy")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", fails)
    monkeypatch.setattr(quality, "package_of", lambda name: name)
    assert choose("good") == Chosen("+".join(LITE))


def test_the_usual_backbones_are_for_photographs_of_ones_own(monkeypatch, tmp_path):
    monkeypatch.setattr(quality, "choose", lambda chosen, weights: Chosen(f"{chosen} of {weights}"))
    good, there = f"good of {tmp_path}", {"weights": str(tmp_path)}
    for said, own, wanted in (
        ({}, True, {"backbone": "good of None", "mirrored": False}),
        ({"mirrored": True}, True, {"backbone": "good of None", "mirrored": True}),
        (there, True, {**there, "backbone": good, "mirrored": False}),
        ({}, False, {}),  # a benchmark: the same with a hub and without
        ({"backbone": "mine"}, True, {"backbone": "mine"}),
        ({"weights": "random"}, True, {"weights": "random"}),
        ({"weights": "one.safetensors"}, True, {"weights": "one.safetensors"}),
        ({"until": "1"}, True, {"until": "1"}),
        ({"finetune": {}}, True, {"finetune": {}}),
    ):
        assert with_usual(said, own) == wanted


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
    caplog.clear()
    two = SideBySide((tiny, replace(tiny, facts={**tiny.facts, "mirrored": True})))
    announce(FeatureStore(tmp_path / "cache", two), [files], CPU)
    assert "8 minutes" in caplog.text, "several backbones, one after the other"
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
