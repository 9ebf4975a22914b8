"""What rehearsals tell about a fitted method, and the file for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from pren.data.folds import different_draws
from pren.foundation.errors import PrenError, reason
from pren.foundation.version import __version__
from pren.methods.base import Method
from pren.methods.formulas import on_arrays
from pren.methods.storage import FORMAT, SampleShape, read_facts, read_verified, write_model
from pren.problem import ClassTable, Problem, Setting, candidates_of
from pren.problem.copies import labelled_twins
from pren.problem.inputs import Inputs, pieces
from pren.problem.order import in_content_order
from pren.training.processes import Fabric
from pren.trust.confidence import Confidence, Reading, threshold
from pren.trust.familiarity import STRANGE, Familiarity
from pren.trust.forecast import Forecast, Known, Share, foretell, unsteady
from pren.trust.rehearsal import OnRehearsal, choose_gamma, notable_shift, rehearse

TRUST_FILE = "trust.safetensors"
FEWEST = 2  # rehearsals, so that one can predict the other
LEVELS = 101
ROUNDING = 1e-8  # of `steady`
Vector = NDArray[np.float64]


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    format: Literal[2]
    version: str
    checksum: str
    model: str  # its checksum
    sample_shape: SampleShape  # of one input
    forecast: Forecast
    confidence: dict[str, Any]
    levels: tuple[Share, ...]


@dataclass(frozen=True, eq=False)
class Trust:
    """How far the labels of one fitted method can be trusted.

    Attributes:
        forecast: Which share of the pool's labels will be right.
        confidence: How sure a label is.
        levels: (101,) percentiles of the confidence of the pool's labels, to choose labels of which a given share is
            right.
        sample_shape: The shape of one input.
        familiarity: Whether an input looks like one of the classes; None if it is not known.
    """

    forecast: Forecast
    confidence: Confidence
    levels: Vector
    sample_shape: tuple[int, ...]
    familiarity: Familiarity | None = None

    def sure(self, scores: Vector, classes: ClassTable, setting: Setting, familiarity: Vector) -> Vector:
        """How likely the best candidate of each input is right: (N,) from 0 to 1.

        Args:
            scores: (N, L) of the method.
            classes: The L classes.
            setting: That of the method.
            familiarity: (N,) from `familiar`: an input that looks like none of the classes has no right label.
        """
        return self.sure_of(Reading.of(scores, classes, classes.among(candidates_of(setting))), familiarity)

    def sure_of(self, reading: Reading, familiarity: Vector) -> Vector:
        """`sure` from a reading of the scores."""
        return on_arrays(believed, self.confidence.of(reading), familiarity)

    def familiar(self, inputs: Inputs) -> Vector:
        """How familiar inputs look: (N,) from 0, like none of the classes, to 1; NaN where it is not known."""
        if self.familiarity is None or not len(inputs):
            return np.full(len(inputs), np.nan)
        return self.familiarity.of(inputs)

    def reaches(self, precision: float, confidence: Vector) -> NDArray[np.bool_]:
        """(N,) which labels of this confidence (N,) to keep so that a share of `precision` of them is right."""
        kept: NDArray[np.bool_] = confidence >= threshold(self.levels, precision) - ROUNDING  # never with NaN
        return kept

    def save(self, folder: str | Path) -> None:
        """Write it to the folder of its model."""
        facts = _Facts(
            format=FORMAT,
            version=__version__,
            checksum="",
            model=read_facts(Path(folder))["checksum"],
            sample_shape=self.sample_shape,
            forecast=self.forecast,
            confidence=self.confidence.to_dict(),
            levels=self.levels.tolist(),
        )
        arrays = {} if self.familiarity is None else self.familiarity.arrays
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        write_model(Path(folder) / TRUST_FILE, tensors, facts.model_dump(mode="json"))

    @classmethod
    def load(cls, folder: str | Path) -> Trust | None:
        """Read what `save` wrote; None if there is no file.

        Raises:
            PrenError: If it is damaged, or not about the model in this folder.
        """
        path = Path(folder) / TRUST_FILE
        if not path.exists():
            return None
        tensors, header = read_verified(path)
        try:
            facts = _Facts.model_validate(header)
            confidence = Confidence.from_dict(facts.confidence)
            arrays, d = {name: tensor.numpy() for name, tensor in tensors.items()}, math.prod(facts.sample_shape)
            familiarity = Familiarity.restore(arrays, d) if arrays else None
        except (ValueError, LookupError, TypeError) as error:
            message = f"{path} is damaged or was not written by this version of pren: {reason(error)}"
            raise PrenError("damaged", message) from error
        if facts.model != read_facts(Path(folder))["checksum"]:
            raise PrenError("trust-other", f"{path} is not about the model in its folder: remove it, or fit again.")
        return cls(facts.forecast, confidence, np.array(facts.levels), facts.sample_shape, familiarity)


def believed(confidence: Tensor, familiarity: Tensor) -> Tensor:
    """Confidence (N,), but 0 where the familiarity (N,) says that an input looks like none of the classes."""
    return torch.where(familiarity < STRANGE, 0.0, confidence)


def assess(
    method: Method,
    problem: Problem,
    rehearsals: int | None = None,
    *,
    gamma: bool = False,
    fabric: Fabric | None = None,
    on_rehearsal: OnRehearsal | None = None,
) -> Trust:
    """Rehearse a fitted method to learn how far to trust its labels of the pool.

    Args:
        method: Fitted to the problem.
        problem: Needs no answers.
        rehearsals: How many; each is one more fit. None for as many as it takes: see `rehearse`.
        gamma: In GZSL, choose γ on the rehearsals first, and set it in the method (`chosen_gamma_`).
        fabric: As for `Method.fit`.
        on_rehearsal: Called after every rehearsal.

    Raises:
        PrenError: If there are too few seen classes to hold some out, or fewer than two rehearsals.
    """
    if rehearsals is not None and rehearsals < FEWEST:
        raise PrenError("rehearsals-one", f"A forecast needs {FEWEST} or more rehearsals, not {rehearsals}.")
    ordered = in_content_order(problem)
    shift = notable_shift(method, ordered)
    done = rehearse(method, ordered, rehearsals, shift, fabric, on_rehearsal)
    if gamma and problem.setting == "gzsl":
        method.chosen_gamma_ = choose_gamma(done)
        done = [part.with_gamma(method.chosen_gamma_) for part in done]
    shares = [float(part.right().mean()) for part in done]
    known = [Known(part.reading(), part.right()) for part in done]
    asked = ordered.pool.select(ordered.undecided())  # labels of a person need no forecast
    parts = [Reading.of(method.scores(piece), problem.classes, problem.candidates()) for piece in pieces(asked)]
    reading = Reading.joined(parts)
    confidence = Confidence.learn([part.reading for part in known], [part.right for part in known])
    familiarity = Familiarity.learn(ordered)
    familiar = np.full(len(asked), np.nan) if familiarity is None else familiarity.of(asked)
    trust = Trust(
        forecast=foretell(
            reading,
            known,
            held_out=int(done[0].classes.unseen.sum()),
            apart=1.0 if shift is None else shift.apart,
            strangers=_without_label(problem, familiar),
            wider=0.0 if len(done) >= different_draws(ordered) else unsteady(shares),
        ),
        confidence=confidence,
        levels=np.zeros(0),
        sample_shape=asked.sample_shape,
        familiarity=familiarity,
    )
    of_pool = trust.sure_of(reading, familiar)
    of_pool = of_pool[np.isfinite(of_pool)]
    levels = np.quantile(of_pool, np.linspace(0, 1, LEVELS)) if len(of_pool) else of_pool
    return replace(trust, levels=steady(levels))


def _without_label(problem: Problem, familiar: Vector) -> float:
    """The share of the pool that no label can be right for: strangers (beyond chance), and in ZSL known inputs."""
    known = float((labelled_twins(problem) >= 0).mean()) if problem.setting == "zsl" else 0.0
    return max(0.0, float((familiar < STRANGE).mean()) - STRANGE, known)


def steady(shares: Vector) -> Vector:
    """Shares from 0 to 1 rounded down to six digits: their last bits depend on the order in which a fit adds."""
    rounded: Vector = np.floor(shares * 1e6 + 1e-3) / 1e6
    return rounded
