"""Things that methods read images (or features) from.

A matrix in memory, a memory-mapped file and a set of image files answer the same question, ``inputs[indices]``, so the
training loop is the same for all of them.
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
CHUNK = 1024  # how many inputs are read at once where all of them are walked through
PIECE = 16 * CHUNK  # how many are scored at once: whole chunks, so that nothing is rounded otherwise


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
        """Whether these are image files: a backbone says what they are brought to."""
        return False

    def prepared(self, preprocessing: Any) -> Inputs:
        """The same, brought to what a backbone wants (a `pren.images.preprocessing.Preprocessing`)."""
        return self

    @property
    def learned(self) -> bool:
        """Whether these are features that were learned from the labelled images (see `pren.images.finetune`)."""
        return False

    def relearned(self, places: NDArray[np.int64]) -> Inputs:
        """All of them as they would be if only those at `places` were labelled: the same, unless they are learned."""
        return self

    def select(self, places: NDArray[np.int64]) -> Inputs:
        """Some of them, in the order of `places`."""
        return SelectedInputs(self, places)


class ArrayInputs(Inputs):
    """Inputs from an array (N, ...), in memory or memory-mapped."""

    def __init__(self, array: NDArray[Any], name: str = "inputs") -> None:
        if array.ndim not in (2, 4) or 0 in array.shape[1:]:
            raise PrenError(
                "inputs-shape", f"{name} must be (N, D) features or (N, C, H, W) images, but has shape {array.shape}."
            )
        if array.dtype.kind not in "fiu":
            raise PrenError("inputs-kind", f"{name} must hold numbers, not {array.dtype}.")
        self._array = array
        for start, chunk in self._chunks():
            with np.errstate(over="ignore"):  # what single precision cannot hold counts as infinite
                values = chunk if chunk.dtype.itemsize == 2 else chunk.astype(np.float32)
                finite = np.isfinite(values).reshape(len(chunk), -1).all(axis=1)
            if not finite.all():
                raise PrenError(
                    "not-finite",
                    f"{name} holds NaN or infinite values, first in row {start + int((~finite).argmax())}.",
                )

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
    """Some of other inputs, in an order of their own, without a copy."""

    def __init__(self, inputs: Inputs, places: NDArray[np.int64]) -> None:
        self._inputs = inputs
        self._places = places

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """As of the inputs they are chosen from."""
        return self._inputs.sample_shape

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        return self._inputs[self._places[indices]]

    def digest(self) -> bytes:
        """The same as of an array of float32 with a copy of them."""
        shape = (len(self), *self.sample_shape)
        content = hashlib.sha256(f"{shape}{np.dtype(np.float32).str}".encode())
        for chunk in chunks(self):
            content.update(chunk.contiguous().numpy().tobytes())
        return content.digest()

    @property
    def photographs(self) -> bool:
        """As of the inputs they are chosen from."""
        return self._inputs.photographs

    def prepared(self, preprocessing: Any) -> Inputs:
        """The same places of prepared inputs."""
        return self._inputs.prepared(preprocessing).select(self._places)

    def select(self, places: NDArray[np.int64]) -> Inputs:
        """Some of them, straight from the inputs they are chosen from."""
        return self._inputs.select(self._places[places])


class JoinedInputs(Inputs):
    """Inputs and others behind them, without a copy."""

    def __init__(self, first: Inputs, second: Inputs) -> None:
        self._first, self._second = first, second

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """As of either."""
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
        """Of both."""
        return hashlib.sha256(self._first.digest() + self._second.digest()).digest()


def single(array: NDArray[Any]) -> Tensor:
    """Numbers in single precision; of an array that has it the same memory, which must be writable."""
    if array.dtype == np.float16:  # torch is several times as fast as NumPy
        return torch.from_numpy(array).float()
    return torch.from_numpy(array.astype(np.float32, copy=False))


def to_numpy(array: Array, name: str) -> NDArray[Any]:
    """Take NumPy, torch or nested lists, and return NumPy."""
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
        raise PrenError("inputs-kind", f"{name} holds Python objects, not numbers or text.")
    return result.astype(np.str_)  # as pandas has text


def as_inputs(inputs: Inputs | Array, name: str = "inputs") -> Inputs:
    """Accept anything that images can be read from."""
    return inputs if isinstance(inputs, Inputs) else ArrayInputs(to_numpy(inputs, name), name)


def pieces(inputs: Inputs, size: int = PIECE) -> Iterator[Inputs]:
    """All inputs in order, so many at a time, not read yet; few of them, or none at all, are one piece."""
    if len(inputs) <= size:
        yield inputs
        return
    for start in range(0, len(inputs), size):
        yield inputs.select(np.arange(start, min(start + size, len(inputs))))


def joined(count: int, parts: Iterable[NDArray[T]]) -> NDArray[T]:
    """Parts (n_i, ...) as one array (count, ...), made while they come: of large ones there is no second copy."""
    rest = iter(parts)
    first = next(rest)
    whole, end = np.empty((count, *first.shape[1:]), dtype=first.dtype), 0
    for part in chain([first], rest):
        whole[end : end + len(part)] = part
        end += len(part)
    return whole


def chunks(inputs: Inputs, size: int = CHUNK) -> Iterator[Tensor]:
    """Walk through all inputs in order, a few at a time; nothing at all counts as one empty chunk."""
    for start in range(0, max(len(inputs), 1), size):
        yield inputs[np.arange(start, min(start + size, len(inputs)))]
