"""bfloat16 on a CPU: some virtual CPUs claim to have instructions (AMX) that kill a process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pren.foundation.errors import PrenError
from pren.foundation.extras import need

Precision = Literal["float32", "bfloat16"]

LOWER = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"  # oneDNN reads it once, at its first computation in a process
SECONDS = 120  # importing torch is slow on a busy machine
TRIAL = """
import sys
sys.path[:] = sys.argv[1:]
import torch
from torch import nn
images = torch.rand(4, 32, 16, 16).to(memory_format=torch.channels_last)
with torch.autocast("cpu", torch.bfloat16):
    nn.Linear(64, 64)(torch.rand(64, 64)).sum().backward()
    nn.Conv2d(32, 32, 3)(images).sum().backward()
"""


BFLOAT16 = {"INFERENCE_PRECISION_HINT": "bf16"}  # what OpenVINO calls it
NETWORK, IMAGES, FEATURES = "network.xml", "images.npy", "features.npy"
TRIAL_OF_OPENVINO = f"""
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


def check_bfloat16() -> None:
    """Try bfloat16 on this CPU, once per process; `PrenError` if it does not work."""
    if not _works():
        other = f", or set {LOWER} before you start pren" if _works(LOWER) else ""
        raise PrenError("precision-cpu", f"bfloat16 does not work on this CPU: use precision=float32{other}.")


def features_in_bfloat16(model: Any, images: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """What an OpenVINO model makes of images (n, C, H, W) in bfloat16, in a child process; None if that ends early."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        need("openvino", "photos").serialize(model, str(folder / NETWORK))
        np.save(folder / IMAGES, images)
        if not _survives(TRIAL_OF_OPENVINO, [name]):
            return None
        features: NDArray[np.float32] = np.load(folder / FEATURES, allow_pickle=False)
    return features


@cache
def _works(variable: str = "") -> bool:
    """Whether a child process survives products in bfloat16, with this environment variable."""
    name, _, value = variable.partition("=")
    return _survives(TRIAL, [], {name: value} if variable else {})


def _survives(program: str, arguments: list[str], variables: dict[str, str] | None = None) -> bool:
    """Whether a program ends well in a child process, with this one's packages after its arguments."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}
    command = [sys.executable, "-I", "-c", program, *arguments, *sys.path]
    try:
        return subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
