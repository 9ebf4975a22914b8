"""How many images go through a network at once when nothing has to be remembered for gradients."""

from __future__ import annotations

import math
from typing import Any

from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import nn

from pren.core.ensemble import Ensemble
from pren.problem.inputs import Inputs
from pren.training.processes import over_chunks

CHUNK_IMAGES = 256  # at most how many images are scored at once (a backbone's activations are large)
CHUNK_NUMBERS = 8_000_000  # at most how many numbers (heads x images x units or classes) a chunk makes
# At most how many numbers go through a backbone at once when it predicts. On a CPU, memory for large activations is
# handed out page by page and anew each time, which is twice as slow as for a few images.
CHUNK_PIXELS, CHUNK_PIXELS_ON_CPU = 10_000_000, 1_250_000


def images_for_heads(ensemble: Ensemble) -> int:
    """How many images the heads can score at once, so that memory does not grow with the pool."""
    heads, _, classes = ensemble.embeddings.shape
    widest = max(classes, *(bias.shape[-1] for name, bias in ensemble.named_parameters() if name.endswith("bias")))
    return max(1, min(CHUNK_IMAGES, CHUNK_NUMBERS // (heads * widest)))


def images_for_backbone(inputs: Inputs, fabric: Fabric) -> int:
    """How many inputs can go through a backbone at once."""
    most = CHUNK_PIXELS_ON_CPU if fabric.device.type == "cpu" else CHUNK_PIXELS
    return max(1, min(CHUNK_IMAGES, most // math.prod(inputs.sample_shape)))


def apply(fabric: Fabric, network: nn.Module, inputs: Inputs, most: int = CHUNK_IMAGES) -> NDArray[Any]:
    """The output (N, ...) of a network, in evaluation mode, for all inputs."""
    network.eval()
    return over_chunks(fabric, inputs, min(images_for_backbone(inputs, fabric), most), network)
