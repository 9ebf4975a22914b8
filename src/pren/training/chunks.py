"""How many inputs go through a network at once when no gradients are needed."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray
from torch import nn

from pren.core.ensemble import Ensemble
from pren.problem.inputs import Inputs
from pren.training.processes import Fabric, over_chunks

CHUNK_IMAGES = 256  # the most images that are scored at once (a backbone's activations are large)
CHUNK_NUMBERS = 8_000_000  # the most numbers (heads x images x units or classes) in a chunk
# The most numbers that go through a backbone at once in prediction. A CPU allocates large activations page by page each
# time, which is twice as slow as for a few images.
CHUNK_PIXELS, CHUNK_PIXELS_ON_CPU = 10_000_000, 1_250_000


def images_for_heads(ensemble: Ensemble) -> int:
    """How many images the heads score at once, so that memory does not grow with the pool."""
    heads, _, classes = ensemble.embeddings.shape
    widest = max(classes, *(bias.shape[-1] for name, bias in ensemble.named_parameters() if name.endswith("bias")))
    return max(1, min(CHUNK_IMAGES, CHUNK_NUMBERS // (heads * widest)))


def images_for_backbone(inputs: Inputs, fabric: Fabric) -> int:
    """How many inputs go through a backbone at once."""
    most = CHUNK_PIXELS_ON_CPU if fabric.device.type == "cpu" else CHUNK_PIXELS
    return max(1, min(CHUNK_IMAGES, most // math.prod(inputs.sample_shape)))


def apply(fabric: Fabric, network: nn.Module, inputs: Inputs, most: int = CHUNK_IMAGES) -> NDArray[Any]:
    """The output (N, ...) of a network, in evaluation mode, for all inputs."""
    network.eval()
    return over_chunks(fabric, inputs, min(images_for_backbone(inputs, fabric), most), network)
