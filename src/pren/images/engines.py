"""Engines that run frozen networks: torch, or OpenVINO, which is more than twice as fast on a CPU (extra ``photos``).

OpenVINO computes in float32, or in bfloat16 if a user says so: its features are a little different. A network is
translated when it is first used, and an image goes through both engines: their features must agree.
"""

from __future__ import annotations

import logging
import warnings
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.foundation.extras import need
from pren.images.precision import BFLOAT16, features_in_bfloat16

log = logging.getLogger(__name__)

EngineName = Literal["torch", "openvino", "openvino-bfloat16"]
TORCH: EngineName = "torch"
OPENVINO: EngineName = "openvino"
HALF: EngineName = "openvino-bfloat16"
IN_WORDS: dict[EngineName | None, str] = {OPENVINO: ", by OpenVINO", HALF: ", by OpenVINO in bfloat16"}
PER_THREAD = 8  # images that are decoded before the threads get them
LIKENESS = 0.9999  # the least cosine of features of the two engines
LIKENESS_OF_HALF = 0.999  # and of those in bfloat16, to OpenVINO's own in float32
TRIED = 8  # images that are computed both ways
# Without pinning, the system moves threads between cores, so two processes do not wait for the same one.
PLAIN = {"INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False}


def choose_engine(asked: EngineName | None) -> EngineName:
    """The engine for frozen networks: what was asked for, or OpenVINO if it is installed and there is only a CPU.

    Raises:
        PrenError: If OpenVINO was asked for and is not installed, or bfloat16 and the CPU does not have it.
    """
    if asked is None:
        return OPENVINO if is_installed() and not is_accelerated() else TORCH
    if asked != TORCH:
        _openvino()
    if asked == HALF and not has_bfloat16():
        raise PrenError("precision-cpu", f"This CPU has no bfloat16: use float32 (--engine {OPENVINO}).")
    return asked


def nearest(engine: EngineName | None) -> EngineName:
    """A model's engine, or the one on this machine whose features are most like its: of float32, of torch."""
    if engine in (None, TORCH) or not is_installed():
        return TORCH
    return HALF if engine == HALF and has_bfloat16() else OPENVINO


def is_installed() -> bool:
    """Whether OpenVINO can be used here."""
    return find_spec("openvino") is not None


def has_bfloat16() -> bool:
    """Whether the CPU announces instructions for bfloat16; not all keep their word, see `precision`."""
    return "BF16" in _core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


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
        half: Whether to compute in bfloat16, if its features of the first images agree with those in float32.
    """

    def __init__(
        self, network: nn.Module, image_shape: tuple[int, ...], shape: tuple[int, ...], name: str, half: bool = False
    ) -> None:
        self._network, self._image_shape, self._shape, self._name = network, image_shape, shape, name
        self._half = half
        self._requests: Any = None  # the network, ready to take an image for every thread

    def __call__(self, levels: Tensor) -> NDArray[np.float32]:
        """Features (n, *shape) of (n, C, H, W) levels from 0 to 255; `PrenError` if they are others than torch's."""
        images = levels.float().numpy()
        if self._requests is None and len(images):
            self._requests = self._ready(images[:TRIED])
        return self._run(self._requests, images)

    @property
    def at_once(self) -> int:
        """How many images keep all threads busy while others are decoded."""
        return PER_THREAD * torch.get_num_threads()

    def _run(self, requests: Any, images: NDArray[np.float32]) -> NDArray[np.float32]:
        features = np.empty((len(images), *self._shape), dtype=np.float32)

        def keep(request: Any, place: int) -> None:
            features[place] = request.get_output_tensor(0).data[0]

        if len(images):
            requests.set_callback(keep)
            for place in range(len(images)):
                requests.start_async([images[place : place + 1]], place)
            requests.wait_all()
        return features

    def _ready(self, images: NDArray[np.float32]) -> Any:
        """Translate the network and check it on these images."""
        threads = torch.get_num_threads()
        options = {**PLAIN, "NUM_STREAMS": threads, "INFERENCE_NUM_THREADS": threads}
        try:
            model = translate(self._network, self._image_shape)
            compiled = _core().compile_model(model, "CPU", options)
        except Exception as error:  # a network can have operations that OpenVINO does not know, or knows in part
            raise self._refusal(f"OpenVINO cannot run {self._name} ({_first_line(error)})") from error
        self._check(compiled)
        requests = _openvino().AsyncInferQueue(compiled)
        if not self._half:
            return requests
        self._check_half(model, images, self._run(requests, images))
        return _openvino().AsyncInferQueue(_core().compile_model(model, "CPU", {**options, **BFLOAT16}))

    @torch.inference_mode()
    def _check(self, compiled: Any) -> None:
        """Compare the features of an image of noise with torch's."""
        noise = torch.rand((1, *self._image_shape), generator=torch.Generator().manual_seed(0))
        ours, theirs = compiled([(255 * noise).numpy()])[0], self._network(noise).numpy()
        if (likeness := cosine(ours, theirs)) < LIKENESS:
            raise self._refusal(f"OpenVINO computes other features of {self._name} than torch (cosine {likeness:.6f})")

    def _check_half(self, model: Any, images: NDArray[np.float32], exact: NDArray[np.float32]) -> None:
        """Compare features in bfloat16, of a process of its own, with exact ones."""
        rough = features_in_bfloat16(model, images)
        likeness = 0.0 if rough is None else cosine(rough, exact)
        if likeness < LIKENESS_OF_HALF:
            why = "its process ends" if rough is None else f"a cosine of {likeness:.5f} to float32"
            message = (
                f"{self._name} cannot be computed in bfloat16 on this CPU ({why}): use float32 (--engine {OPENVINO})."
            )
            raise PrenError("precision-cpu", message)

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
