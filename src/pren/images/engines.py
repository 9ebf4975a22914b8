"""Engines that run frozen networks: torch, or OpenVINO, which is more than twice as fast on a CPU (extra ``photos``).

OpenVINO computes in float32 here. Its own default is bfloat16 on CPUs that have it, whose features are others. A
network is translated when it is first used, and an image goes through both engines: their features must agree.
"""

from __future__ import annotations

import logging
import warnings
from functools import cache, cached_property
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.foundation.extras import need

log = logging.getLogger(__name__)

EngineName = Literal["torch", "openvino"]
TORCH: EngineName = "torch"
OPENVINO: EngineName = "openvino"
PER_THREAD = 8  # images that are decoded before the threads get them
LIKENESS = 0.9999  # the least cosine of features of the two engines
# Without pinning, the system moves threads between cores, so two processes do not wait for the same one.
PLAIN = {"INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False}


def choose_engine(asked: EngineName | None) -> EngineName:
    """The engine for frozen networks: what was asked for, or OpenVINO if it is installed and there is only a CPU.

    Raises:
        PrenError: If OpenVINO was asked for and is not installed.
    """
    if asked == OPENVINO:
        _openvino()
    return asked or (OPENVINO if is_installed(OPENVINO) and not is_accelerated() else TORCH)


def is_installed(engine: EngineName | None) -> bool:
    """Whether an engine can be used here."""
    return engine != OPENVINO or find_spec("openvino") is not None


def is_accelerated() -> bool:
    """Whether torch computes on a device that is quicker than a CPU."""
    return torch.cuda.is_available() or torch.backends.mps.is_available()


class OpenVINOEngine:
    """A frozen network in OpenVINO, with as many threads as torch has when it is first used.

    Every thread computes an image at a time, which is as quick as several together. So features do not depend on how
    many images there are, nor on the number of threads.

    Args:
        network: (n, C, H, W) from 0 to 1 -> (n, *shape), on the CPU.
        image_shape: (C, H, W).
        shape: Of the features of an image.
        name: For messages.
    """

    def __init__(self, network: nn.Module, image_shape: tuple[int, ...], shape: tuple[int, ...], name: str) -> None:
        self._network, self._image_shape, self._shape, self._name = network, image_shape, shape, name

    def __call__(self, levels: Tensor) -> NDArray[np.float32]:
        """Features (n, *shape) of (n, C, H, W) levels from 0 to 255."""
        features = np.empty((len(levels), *self._shape), dtype=np.float32)

        def keep(request: Any, place: int) -> None:
            features[place] = request.get_output_tensor(0).data[0]

        requests, images = self._requests, levels.float().numpy()
        requests.set_callback(keep)
        for place in range(len(images)):
            requests.start_async([images[place : place + 1]], place)
        requests.wait_all()
        return features

    @property
    def at_once(self) -> int:
        """How many images keep all threads busy while others are decoded."""
        return PER_THREAD * torch.get_num_threads()

    @cached_property
    def _requests(self) -> Any:
        """The network, ready to take an image for every thread; `PrenError` if it gives other features than torch."""
        threads = torch.get_num_threads()
        options = {**PLAIN, "NUM_STREAMS": threads, "INFERENCE_NUM_THREADS": threads}
        try:
            model = translate(self._network, self._image_shape)
            compiled = _core().compile_model(model, "CPU", options)
        except Exception as error:  # a network can have operations that OpenVINO does not know, or knows in part
            raise self._refusal(f"OpenVINO cannot run {self._name} ({_first_line(error)})") from error
        self._check(compiled)
        return _openvino().AsyncInferQueue(compiled)

    @torch.inference_mode()
    def _check(self, compiled: Any) -> None:
        """Compare the features of an image of noise with torch's."""
        noise = torch.rand((1, *self._image_shape), generator=torch.Generator().manual_seed(0))
        ours, theirs = compiled([(255 * noise).numpy()])[0], self._network(noise).numpy()
        if (likeness := cosine(ours, theirs)) < LIKENESS:
            raise self._refusal(f"OpenVINO computes other features of {self._name} than torch (cosine {likeness:.6f})")

    def _refusal(self, what: str) -> PrenError:
        return PrenError("engine-refused", f"{what}: use torch (--engine torch).")


@cache
def _core() -> Any:
    """OpenVINO, once for the whole process.

    Each one gives the process a stack for signals and takes it back when it ends. If a second one began meanwhile, the
    process is left with the wrong one, and the next signal (a child has ended, Ctrl-C) kills it.
    """
    return _openvino().Core()


def _openvino(module: str = "openvino") -> ModuleType:
    return need(module, "photos")


class _OfLevels(nn.Module):
    """A network that takes levels from 0 to 255."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, levels: Tensor) -> Tensor:
        return cast(Tensor, self.network(levels / 255))


def translate(network: nn.Module, image_shape: tuple[int, ...]) -> Any:
    """An OpenVINO model from levels (1, C, H, W), 0 to 255, to features.

    OpenVINO's own `convert_model` does the same, but reports its use to its makers, over the network. This does not.
    """
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # torch warns of checks of shapes, which become constants
        example = torch.zeros(1, *image_shape)
        traced = torch.jit.trace(_OfLevels(network).eval(), example, check_trace=False)  # type: ignore[no-untyped-call]
        frontend = _openvino("openvino.frontend").FrontEndManager().load_by_framework("pytorch")
        decoder = _openvino("openvino.frontend.pytorch.ts_decoder").TorchScriptPythonDecoder(
            traced
        )  # has to live until the end
        model = frontend.convert(frontend.load(decoder))
    model.reshape([1, *image_shape])
    return model


def cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """The cosine of two arrays of numbers; 1 for equal ones, also if all are 0."""
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    size = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / size if size > 0 else float(np.array_equal(x, y))


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
