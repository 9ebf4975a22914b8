"""The cost of the heads beside the backbone: multiply-adds of the real modules, and measured seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from pren.core.ensemble import Ensemble
from pren.core.projection import LabelEmbeddings
from pren.images.backbones import create_backbone
from pren.research.reproduction.sheets import HERE, PAPER, Sheet

BACKBONE, SIDE, WIDTH = "resnet34", 224, 512
HIDDEN, H, CLASSES = (512, 512), 70, 200
IMAGES, REPEATS = 8, 3


def multiply_adds(network: nn.Module, images: Tensor) -> int:
    """Of one image, in convolutions and matrix products; torch counts two operations per multiply-add."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(images)
    return int(counter.get_total_flops()) // 2 // len(images)


def share_of_more_heads() -> float:
    """The multiply-adds of 49 more heads, as a share of those of the backbone with one."""
    one, fifty = (multiply_adds(_heads(K), torch.zeros(1, WIDTH)) for K in (1, 50))
    backbone, _ = create_backbone(BACKBONE, (3, SIDE, SIDE), seed=0)
    return (fifty - one) / (multiply_adds(backbone.eval(), torch.zeros(1, 3, SIDE, SIDE)) + one)


def complexity() -> Sheet:
    """K = 1 against K = 50 heads on ResNet-34."""
    backbone, _ = create_backbone(BACKBONE, (3, SIDE, SIDE), seed=0)
    backbone.eval()
    pixels, features = torch.zeros(IMAGES, 3, SIDE, SIDE), torch.zeros(IMAGES, WIDTH)
    base, base_seconds = multiply_adds(backbone, pixels), _seconds(partial(backbone, pixels))
    rows = [[BACKBONE, "3.6 G", f"{base / 1e9:.2f} G", f"{1000 * base_seconds / IMAGES:.1f} ms", ""]]
    for K, printed in ((1, "0.8 M"), (50, "0.04 G")):
        heads = _heads(K)
        adds, seconds = multiply_adds(heads, features), _seconds(partial(heads, features))
        share = f"{100 * adds / base:.2f} %"
        title = f"{K} head{'s' if K > 1 else ''}"
        rows.append([title, printed, f"{adds / 1e6:.2f} M", f"{1000 * seconds / IMAGES:.2f} ms", share])
    threads = torch.get_num_threads()
    notes = [
        f"Multiply-adds and CPU milliseconds for one image (batches of {IMAGES}, {threads} "
        f"thread{'s' if threads > 1 else ''}, the best of {REPEATS}). Heads of {HIDDEN} units, h = {H}.",
        "The paper's 3.6 G is the usual count of multiply-adds for ResNet-34. Its 0.8 M for a head is more than the "
        "layers have, so its 1.1 % for 49 more heads is rather too high.",
    ]
    header = ["", f"multiply-adds{PAPER}", f"multiply-adds{HERE}", "time, here", "of the backbone's multiply-adds"]
    return Sheet(name="complexity", title="The cost of heads", header=header, rows=rows, notes=notes)


def _heads(K: int) -> Ensemble:
    rng = np.random.default_rng(0)
    labels = LabelEmbeddings(rng.normal(size=(K, H, CLASSES)), np.ones((K, CLASSES), dtype=bool))
    return Ensemble(WIDTH, HIDDEN, labels, True, rng).eval()


def _seconds(work: Callable[[], object]) -> float:
    """The shortest of a few runs, over all threads of this process."""
    times = []
    with torch.inference_mode():
        for _ in range(REPEATS + 1):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
    return min(times[1:])
