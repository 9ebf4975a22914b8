"""Exported models: ONNX against torch, and what the heads cost beside a backbone.

Weights are random, and so are the images, which makes no difference here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.ensembles import Size, batched
from benchmarks.tables import Table
from benchmarks.timing import Settings, interleave
from pren.core.voting import Network
from pren.foundation.extras import need
from pren.images.extraction import BATCH, BATCH_ON_CPU, Extractor, FrozenBackbone
from pren.label.export.files import as_bytes
from pren.label.export.program import Program, Whole
from pren.methods.formulas import Flat, Gaussians
from pren.methods.preparation.whitening import Whitened

BACKBONES: tuple[str, ...] = ("resnet34", "tf_efficientnet_lite0")
DIRECTIONS = 100  # of whitened features
ROUNDS = 5


def run(settings: Settings) -> list[Table]:
    """Two tables."""
    names, rounds, size = BACKBONES, ROUNDS, Size()
    if settings.quick:
        names, rounds, size = ("test_resnet",), 1, Size(4, 16, (8,), 6, 10)
    formats = Table(
        f"A whole model, {BATCH_ON_CPU} photographs at a time",
        ["backbone and method", "torch: images/s", "ONNX: images/s", "ONNX / torch"],
        notes=[f"Medians of {rounds} turns, each of the two with as many threads as torch."],
    )
    shares = Table(
        f"The share of {size.heads} heads, {BATCH} photographs",
        ["backbone", "backbone: s", "heads and votes: s", "share of the heads"],
        notes=[f"Medians of {rounds} turns. The backbone takes {BATCH_ON_CPU} at a time, which is fastest on a CPU."],
    )
    for name in names:
        frozen = FrozenBackbone.load(Extractor(backbone=name, weights="random"))
        heads = Network(nn.Identity(), batched(Size(size.heads, frozen.shape[0], size.hidden, size.h, size.classes)))
        for method, scorer in {"PrEN-Pool": _pool(frozen.shape[0], size.classes), "PrEN": heads}.items():
            formats.rows.append((f"{name}, {method}", *_compared(frozen, scorer, settings, rounds)))
        shares.rows.append((name, *_share(frozen, heads, settings, rounds)))
    return [formats, shares]


def _pool(width: int, classes: int) -> nn.Module:
    """PrEN-Pool's scores of features, of made-up classes."""
    rng = np.random.default_rng(0)
    directions = min(DIRECTIONS, width)
    whitened = Whitened(centre=rng.standard_normal(width) / width, map=rng.standard_normal((width, directions)))
    means = rng.standard_normal((classes, directions))
    return nn.Sequential(Flat(), whitened, Gaussians(means=means, variance=np.ones(1), offsets=np.zeros(classes)))


def _images(frozen: FrozenBackbone, count: int) -> NDArray[np.uint8]:
    shape = (count, *frozen.preprocessing.sample_shape)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def _compared(frozen: FrozenBackbone, scorer: nn.Module, settings: Settings, rounds: int) -> tuple[str, str, str]:
    """Images/s of torch and of onnxruntime, and the ratio."""
    whole = Whole(True, frozen.network, scorer, None).eval().requires_grad_(False)
    images = _images(frozen, BATCH_ON_CPU)
    inputs = torch.from_numpy(images)
    program = Program(whole, "images", inputs, ("scores",), {"method": "benchmark"})
    onnx = _session(as_bytes(program, "onnx"))

    @torch.inference_mode()
    def in_torch() -> NDArray[np.float64]:
        scores: Tensor = whole(inputs)[0]
        return scores.numpy()

    if not np.allclose(in_torch(), onnx(images), atol=1e-2 * in_torch().std()):
        raise AssertionError("the two ways disagree")
    times = interleave({"torch": in_torch, "onnx": lambda: onnx(images)}, settings, rounds)
    torch_rate, onnx_rate = (len(images) / times[name].median for name in ("torch", "onnx"))
    return f"{torch_rate:.1f}", f"{onnx_rate:.1f}", f"{onnx_rate / torch_rate:.2f}"


def _session(content: bytes) -> Callable[[NDArray[np.uint8]], NDArray[np.float64]]:
    runtime = need("onnxruntime", "export")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(content, options)

    def scores(images: NDArray[np.uint8]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = session.run(None, {"images": images})[0]
        return found

    return scores


def _share(frozen: FrozenBackbone, heads: Network, settings: Settings, rounds: int) -> tuple[str, str, str]:
    """Seconds of the backbone and of the heads, and the share of the heads."""
    levels, device = torch.from_numpy(_images(frozen, BATCH)), torch.device("cpu")
    features = torch.from_numpy(frozen(levels, device))

    @torch.inference_mode()
    def in_heads() -> None:
        heads(features)

    times = interleave({"backbone": lambda: frozen(levels, device), "heads": in_heads}, settings, rounds)
    backbone, own = times["backbone"].median, times["heads"].median
    return f"{backbone:.2f}", f"{own:.3f}", f"{own / (own + backbone):.1%}"
