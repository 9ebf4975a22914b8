"""What can kill a process is tried in one of its own: some CPUs do not do what they announce."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.foundation.extras import need

SECONDS = 120  # importing a large library is slow on a busy machine
BFLOAT16 = {"INFERENCE_PRECISION_HINT": "bf16"}  # what OpenVINO calls it
NETWORK, IMAGES, FEATURES = "network.xml", "images.npy", "features.npy"
# OpenVINO 2025.3 to 2026.1 divided by zero on some virtual machines (its issue 35943).
OF_OPENVINO = """
import sys
sys.path[:] = sys.argv[1:]
import numpy as np
import openvino
from openvino import opset13 as operations
images = operations.parameter([1, 8, 16, 16], np.float32)
filters = operations.constant(np.ones((8, 8, 3, 3), np.float32))
maps = operations.convolution(images, filters, [1, 1], [1, 1], [1, 1], [1, 1])
means = operations.reduce_mean(maps, operations.constant(np.array([2, 3])), False)
features = operations.matmul(means, operations.constant(np.ones((8, 8), np.float32)), False, False)
network = openvino.Core().compile_model(openvino.Model([features], [images], "trial"), "CPU")
network([np.ones((1, 8, 16, 16), np.float32)])
"""
OF_BFLOAT16 = f"""
import sys
from pathlib import Path
folder = Path(sys.argv[1])
sys.path[:] = sys.argv[2:]
import numpy as np
import openvino
core = openvino.Core()
options = {{**{BFLOAT16}, "INFERENCE_NUM_THREADS": 1}}
network = core.compile_model(core.read_model(folder / "{NETWORK}"), "CPU", options)
features = [network([image[None]])[0] for image in np.load(folder / "{IMAGES}")]
np.save(folder / "{FEATURES}", np.concatenate(features))
"""


@cache
def openvino_works() -> bool:
    """Whether OpenVINO, which is installed, runs a small network on this CPU; tried once per process."""
    return survives(OF_OPENVINO)


def features_in_bfloat16(model: Any, images: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """What an OpenVINO model makes of images (n, C, H, W) in bfloat16; None if its process ends early."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        need("openvino", "photos").serialize(model, str(folder / NETWORK))
        np.save(folder / IMAGES, images)
        if not survives(OF_BFLOAT16, name):
            return None
        features: NDArray[np.float32] = np.load(folder / FEATURES, allow_pickle=False)
    return features


def survives(program: str, *arguments: str, variables: dict[str, str] | None = None) -> bool:
    """Whether a program ends well in a child process; it gets the arguments, and then this one's ``sys.path``."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}
    command = [sys.executable, "-I", "-c", program, *arguments, *sys.path]
    try:
        return subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
