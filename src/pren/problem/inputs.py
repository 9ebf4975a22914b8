"""Where methods read images or features from.

A matrix in memory, a memory-mapped file and a set of photographs all answer ``inputs[indices]``, so one training loop
serves all of them.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pren.foundation.errors import PrenError

Array = NDArray[Any] | Tensor | Sequence[Any]
T = TypeVar("T", bound=np.generic)
CHUNK = 1024  # inputs that are read at once
PIECE = 16 * CHUNK  # inputs that are scored at once: whole chunks, because other chunks round differently


class Inputs(ABC):
    """N images or feature vectors."""

    @property
    @abstractmethod
    def sample_shape(self) -> tuple[int, ...]:
        """(D,) for features, (C, H, W) for images."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        """Return (n, *sample_shape) float32 for n indices."""

    @abstractmethod
    def digest(self) -> bytes:
        """A hash of the content."""

    @property
    def photographs(self) -> bool:
        """Whether these are photographs, which a backbone's preprocessing turns into arrays."""
        return False

    def prepared(self, preprocessing: Any) -> Inputs:
        """The same with the preprocessing of a backbone (a `pren.images.preprocessing.Preprocessing`)."""
        return self

    @property
    def learned(self) -> bool:
        """Whether these are features of a backbone that was fine-tuned on them (see `pren.images.finetune`)."""
        return False

    def relearned(self, places: NDArray[np.int64]) -> Inputs:
        """The features if only the inputs at `places` were labelled: the same, unless they are `learned`."""
        return self

    def select(self, places: NDArray[np.int64]) -> Inputs:
        """The inputs at `places`, in that order."""
        return SelectedInputs(self, places)


class ArrayInputs(Inputs):
    """Inputs from an array (N, ...), in memory or memory-mapped."""

    def __init__(self, array: NDArray[Any], name: str = "inputs") -> None:
        if array.ndim not in (2, 4) or 0 in array.shape[1:]:
            message = f"{name} has shape {array.shape}: give (N, D) features or (N, C, H, W) images."
            raise PrenError("inputs-shape", message)
        if array.dtype.kind not in "fiu":
            raise PrenError("inputs-kind", f"{name} must hold numbers, not {array.dtype}.")
        self._array = array
        for start, chunk in self._chunks():
            with np.errstate(over="ignore"):  # values too large for float32 count as infinite
                values = chunk if chunk.dtype.itemsize == 2 else chunk.astype(np.float32)
                finite = np.isfinite(values).reshape(len(chunk), -1).all(axis=1)
            if not finite.all():
                row = start + int((~finite).argmax())
                raise PrenError("not-finite", f"{name} holds NaN or infinite values, first in row {row}.")

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(D,) or (C, H, W)."""
        return tuple(self._array.shape[1:])

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        return single(self._array[indices])

    def digest(self) -> bytes:
        """A hash of shape, type and values."""
        content = hashlib.sha256(f"{self._array.shape}{self._array.dtype.str}".encode())
        for _, chunk in self._chunks():
            content.update(np.ascontiguousarray(chunk).tobytes())
        return content.digest()

    def _chunks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        for start in range(0, len(self._array), CHUNK):
            yield start, self._array[start : start + CHUNK]


class SelectedInputs(Inputs):
    """A selection of other inputs, without a copy."""

    def __init__(self, inputs: Inputs, places: NDArray[np.int64]) -> None:
        self._inputs = inputs
        self._places = places

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self._inputs.sample_shape

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        return self._inputs[self._places[indices]]

    def digest(self) -> bytes:
        """The same hash as of a float32 array with a copy of them."""
        shape = (len(self), *self.sample_shape)
        content = hashlib.sha256(f"{shape}{np.dtype(np.float32).str}".encode())
        for chunk in chunks(self):
            content.update(chunk.contiguous().numpy().tobytes())
        return content.digest()

    @property
    def photographs(self) -> bool:
        """Whether they are photographs."""
        return self._inputs.photographs

    def prepared(self, preprocessing: Any) -> Inputs:
        """The same selection of prepared inputs."""
        return self._inputs.prepared(preprocessing).select(self._places)

    def select(self, places: NDArray[np.int64]) -> Inputs:
        """A selection of the original inputs."""
        return self._inputs.select(self._places[places])


class JoinedInputs(Inputs):
    """Two inputs one after the other, without a copy."""

    def __init__(self, first: Inputs, second: Inputs) -> None:
        self._first, self._second = first, second

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self._first.sample_shape

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        behind = indices >= len(self._first)
        joined = torch.empty((len(indices), *self.sample_shape))
        joined[~behind] = self._first[indices[~behind]]
        joined[behind] = self._second[indices[behind] - len(self._first)]
        return joined

    def digest(self) -> bytes:
        """A hash of both."""
        return hashlib.sha256(self._first.digest() + self._second.digest()).digest()


def single(array: NDArray[Any]) -> Tensor:
    """An array as float32; a float32 array is not copied and must be writable."""
    if array.dtype == np.float16:  # torch converts these several times as fast as NumPy
        return torch.from_numpy(array).float()
    return torch.from_numpy(array.astype(np.float32, copy=False))


def to_numpy(array: Array, name: str) -> NDArray[Any]:
    """Turn a NumPy array, a torch tensor or nested lists into a NumPy array."""
    try:
        if isinstance(array, Tensor):
            array = array.detach().cpu()
            array = (array.float() if array.dtype == torch.bfloat16 else array).numpy()
        result = np.asarray(array)
    except ValueError as error:
        raise PrenError("inputs-kind", f"{name} is not a regular array: {error}.") from error
    if result.dtype.kind != "O":
        return result
    if not all(isinstance(value, str) for value in result.flat):
        raise PrenError("inputs-kind", f"{name} holds Python objects: give numbers or text.")
    return result.astype(np.str_)  # pandas stores text as objects


def as_inputs(inputs: Inputs | Array, name: str = "inputs") -> Inputs:
    """Turn an array into `Inputs`; `Inputs` stay as they are."""
    return inputs if isinstance(inputs, Inputs) else ArrayInputs(to_numpy(inputs, name), name)


def pieces(inputs: Inputs, size: int = PIECE) -> Iterator[Inputs]:
    """All inputs in order, in unread pieces of `size`; fewer inputs, or none, are one piece."""
    if len(inputs) <= size:
        yield inputs
        return
    for start in range(0, len(inputs), size):
        yield inputs.select(np.arange(start, min(start + size, len(inputs))))


def joined(count: int, parts: Iterable[NDArray[T]]) -> NDArray[T]:
    """Parts (n_i, ...) as one array (count, ...), filled one by one, so that memory holds no second copy."""
    rest = iter(parts)
    first = next(rest)
    whole, end = np.empty((count, *first.shape[1:]), dtype=first.dtype), 0
    for part in chain([first], rest):
        whole[end : end + len(part)] = part
        end += len(part)
    return whole


def chunks(inputs: Inputs, size: int = CHUNK) -> Iterator[Tensor]:
    """Read all inputs in order, `size` at a time; no inputs are one empty chunk."""
    for start in range(0, max(len(inputs), 1), size):
        yield inputs[np.arange(start, min(start + size, len(inputs)))]
