"""CLIP (Radford et al. 2021): the class whose text is nearest to the image. Nothing is learned here."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from pren.foundation.errors import PrenError
from pren.methods.base import Method
from pren.methods.formulas import Cosine, Flat
from pren.methods.params import param
from pren.methods.preparation import Preparation
from pren.methods.refinement import Refinement
from pren.problem import Problem

log = logging.getLogger(__name__)

EXAMPLE = "clip:ViT-B-32/laion2b_s34b_b79k"


class CLIP(Method):
    """Scores cos(x, a_c) / temperature, x from the image tower, a_c from the text tower of one CLIP model.

    Inductive; it ignores the labelled inputs. Scores use raw features; `features` only prepares those of a
    `refinement`. Reference: "Learning transferable visual models from natural language supervision", ICML 2021.
    """

    name: ClassVar[str] = "clip"
    one_space: ClassVar[bool] = True
    log_shares: ClassVar[bool] = True

    temperature: float = param(
        0.01, "Divides the cosine; it does not change the best class. CLIP learned about 0.01.", gt=0
    )

    def _fit(self, problem: Problem) -> None:
        fault = self._misfit()
        backbone = (problem.extractor or {}).get("asked", {}).get("backbone")
        encoder = problem.source.get("signatures", {}).get("encoder")
        if fault is not None:
            name = backbone if str(backbone).startswith("clip:") else EXAMPLE
            advice = (
                f"describe classes in words, and take both from one CLIP model (--backbone {name} --encoder {name})"
            )
            raise PrenError("clip-mismatch", f"{fault}: {advice}.")
        if (backbone or encoder) and backbone != str(encoder).partition("@")[0]:
            log.warning(
                "clip compares features of %s with signatures of %s: both must come from one CLIP model.",
                backbone or "an unknown backbone",
                encoder or "no encoder",
            )

    def _scorer(self) -> nn.Module:
        return self._in_table_order(Cosine(self.classes_.signatures[self._order()], self.temperature))

    def _parts(self) -> tuple[nn.Module, nn.Module]:
        return Flat(), self._scorer()

    def _refiner(self) -> nn.Module | None:
        assert self.preparation_ is not None
        return OnPrepared(self.preparation_, self.refinement_) if self.refinement_.changes_scores else None

    def _misfit(self) -> str | None:
        """Why features and signatures cannot be compared; None if they can."""
        d, m = int(np.prod(self.sample_shape_)), self.classes_.signatures.shape[1]
        return None if d == m else f"clip needs features and signatures of one length, not {d} and {m} numbers"

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        if fault := self._misfit():
            raise ValueError(fault)


class OnPrepared(nn.Module):
    """A refinement that prepares the raw features of a scorer first."""

    def __init__(self, preparation: Preparation, refinement: Refinement) -> None:
        super().__init__()
        self.preparation = preparation
        self.refinement = refinement

    def forward(self, scores: Tensor, features: Tensor) -> Tensor:
        """Scores (n, L) and raw features (n, d) -> (n, L)."""
        refined: Tensor = self.refinement(scores, self.preparation(features))
        return refined
