"""What the heads cost beside the backbone: multiply-adds counted on the real modules, and seconds measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from pren.core.ensemble import Ensemble
from pren.core.projection import LabelEmbeddings
from pren.experiments.reproduction.sheets import Sheet
from pren.vision.backbones import create_backbone

BACKBONE, SIDE, WIDTH = "resnet34", 224, 512
HIDDEN, H, CLASSES = (512, 512), 70, 200
IMAGES, REPEATS = 8, 3


def multiply_adds(network: nn.Module, images: Tensor) -> int:
    """Of one image, in convolutions and products with weights; normalisation and activations are not counted."""
    counted = 0

    def count(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
        nonlocal counted
        weight = getattr(module, "weight", None)
        if isinstance(module, nn.Conv2d) and weight is not None:
            counted += weight.numel() * out.shape[-1] * out.shape[-2]
        elif isinstance(weight, Tensor) and weight.ndim in (2, 3):  # of one head, or of all of them
            counted += weight.numel()

    hooks = [module.register_forward_hook(count) for module in network.modules()]
    with torch.inference_mode():
        network(images)
    for hook in hooks:
        hook.remove()
    return counted


def complexity() -> Sheet:
    """K = 1 against K = 50 heads on ResNet-34."""
    backbone, _ = create_backbone(BACKBONE, (3, SIDE, SIDE), seed=0)
    backbone.eval()
    pixels, features = torch.zeros(IMAGES, 3, SIDE, SIDE), torch.zeros(IMAGES, WIDTH)
    base, base_seconds = multiply_adds(backbone, pixels), _seconds(partial(backbone, pixels))
    rows = [[BACKBONE, f"{base / 1e9:.2f} G", "3.6 G", f"{1000 * base_seconds / IMAGES:.1f} ms", ""]]
    for K, printed in ((1, "0.8 M"), (50, "0.04 G")):
        heads = _heads(K)
        adds, seconds = multiply_adds(heads, features), _seconds(partial(heads, features))
        share = f"{100 * adds / base:.2f} %"
        title = f"{K} head{'s' if K > 1 else ''}"
        rows.append([title, f"{adds / 1e6:.2f} M", printed, f"{1000 * seconds / IMAGES:.2f} ms", share])
    notes = [
        f"Multiply-adds and milliseconds for one image (batches of {IMAGES}, {torch.get_num_threads()} threads, the "
        f"best of {REPEATS}). Heads of {HIDDEN} units, h = {H}.",
        "The paper counts the 3.6 G of the backbone as multiply-adds are usually counted, and a head as 0.8 M.",
    ]
    header = ["", "multiply-adds, here", "paper", "time, here", "of the backbone's"]
    return Sheet("complexity", "What heads cost", header, rows, notes)


def _heads(K: int) -> Ensemble:
    rng = np.random.default_rng(0)
    labels = LabelEmbeddings(rng.normal(size=(K, H, CLASSES)), np.ones((K, CLASSES), dtype=bool))
    return Ensemble(WIDTH, HIDDEN, labels, True, rng).eval()


def _seconds(work: Callable[[], object]) -> float:
    """The shortest of a few."""
    times = []
    with torch.inference_mode():
        for _ in range(REPEATS + 1):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return min(times[1:])
