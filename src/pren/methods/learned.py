"""The learned arrays of a method: their shapes, and how they are saved and restored."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pren.methods.params import Learned, declared
from pren.methods.preparation import PREPARATIONS, Matrix, Preparation
from pren.methods.refinement import REFINEMENTS, Refinement
from pren.problem import ClassTable, Setting, candidates_of


class LearnedState:
    """The part of a `Method` that saves and restores what it has learned."""

    features: str
    refinement: str
    classes_: ClassTable
    setting_: Setting
    sample_shape_: tuple[int, ...]
    preparation_: Preparation | None
    refinement_: Refinement

    def _candidates(self) -> NDArray[np.bool_]:
        """(L,) the classes that `predict` chooses from."""
        return self.classes_.among(candidates_of(self.setting_))

    def _is_fitted(self) -> bool:
        return all(name in vars(self) for name in declared(type(self), Learned))

    def _sizes(self) -> dict[str, int]:
        """The lengths that the letters in `learned` stand for."""
        d, table = int(np.prod(self.sample_shape_)), self.classes_
        return {
            "d": d if self.preparation_ is None else self.preparation_.width(d),
            "m": table.signatures.shape[1],
            "L": len(table),
            "S": int(table.seen.sum()),
            "one": 1,
        }

    def _width(self) -> int:
        """The number of features that the method sees."""
        return self._sizes()["d"]

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What was learned: tensors, and facts for JSON."""
        arrays = {name.removesuffix("_"): getattr(self, name) for name in declared(type(self), Learned)}
        if self.preparation_ is not None:
            arrays |= {f"preparation.{name}": array for name, array in self.preparation_.arrays.items()}
        arrays |= {f"refinement.{name}": array for name, array in self.refinement_.arrays.items()}
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}, {}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """The inverse of `_state`; the attributes of `Method` are already set.

        Raises:
            ValueError: If tensors do not fit. (KeyError means the same.)
        """
        self.preparation_ = self._restore_preparation(tensors)
        sizes = self._sizes()
        for name, known in declared(type(self), Learned).items():
            shape = tuple(sizes[side] if side in sizes else getattr(self, side) for side in known.shape)
            tensor = tensors[name.removesuffix("_")]
            if tensor.shape != shape or tensor.dtype != torch.float64:
                raise ValueError(f"{name} is {tensor.dtype} {tuple(tensor.shape)}, not float64 {shape}")
            setattr(self, name, tensor.numpy())

    def _restore_preparation(self, tensors: dict[str, Tensor]) -> Preparation:
        arrays = _arrays_of("preparation", tensors)
        return PREPARATIONS[self.features].restore(arrays, int(np.prod(self.sample_shape_)))

    def _restore_refinement(self, tensors: dict[str, Tensor]) -> None:
        """Call it after `_restore`, which knows how many features a backbone makes."""
        arrays = _arrays_of("refinement", tensors)
        self.refinement_ = REFINEMENTS[self.refinement].restore(arrays, self._candidates(), self._width())


def _arrays_of(part: str, tensors: dict[str, Tensor]) -> dict[str, Matrix]:
    """The arrays that `_state` calls "part.name", by name."""
    prefix = f"{part}."
    own = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    if any(tensor.dtype != torch.float64 for tensor in own.values()):
        raise ValueError(f"the {part} is not in double precision")
    return {name: tensor.numpy() for name, tensor in own.items()}
