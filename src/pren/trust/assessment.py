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
from pren.trust.corrections import corrections_of
from pren.trust.familiarity import STRANGE, Familiarity
from pren.trust.forecast import Forecast, Known, Share, foretell, unsteady
from pren.trust.names import Names, count
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
    names: tuple[Share, ...] = ()


@dataclass(frozen=True, eq=False)
class Trust:
    """How far the labels of one fitted method can be trusted.

    Attributes:
        forecast: Which share of the pool's labels will be right.
        confidence: How sure the place of an input is: of a label whose name is no question, how sure it is.
        levels: (101,) percentiles of the confidence of the pool's labels, to choose labels of which a given share is
            right.
        sample_shape: The shape of one input.
        familiarity: Whether an input looks like one of the classes; None if it is not known.
        names: (L,) how likely the name of the group of each class is right; None if no name is a question.
    """

    forecast: Forecast
    confidence: Confidence
    levels: Vector
    sample_shape: tuple[int, ...]
    familiarity: Familiarity | None = None
    names: Vector | None = None

    def sure(self, scores: Vector, classes: ClassTable, setting: Setting, familiarity: Vector) -> Vector:
        """How likely the best candidate of each input is right: (N,) from 0 to 1.

        An input must be in the right group, and the group must have the right name.

        Args:
            scores: (N, L) of the method.
            classes: The L classes.
            setting: That of the method.
            familiarity: (N,) from `familiar`: an input that looks like none of the classes has no right label.
        """
        return self.sure_of(Reading.of(scores, classes, classes.among(candidates_of(setting))), familiarity)

    def sure_of(self, reading: Reading, familiarity: Vector) -> Vector:
        """`sure` from a reading of the scores."""
        placed = self.confidence.of(reading)
        return on_arrays(believed, placed if self.names is None else placed * self.names[reading.labels], familiarity)

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
            names=() if self.names is None else tuple(self.names.tolist()),
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
        names = np.array(facts.names) if facts.names else None
        of_model = read_facts(Path(folder))
        if names is not None and len(names) != len(of_model["class_names"]):
            raise PrenError("damaged", f"{path} is damaged: it does not have one number for each class.")
        if facts.model != of_model["checksum"]:
            raise PrenError("trust-other", f"{path} is not about the model in its folder: remove it, or fit again.")
        return cls(facts.forecast, confidence, np.array(facts.levels), facts.sample_shape, familiarity, names)


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
    shares = [float(part.placed().mean()) for part in done]
    known = [Known(part.reading(), part.right(), part.placed()) for part in done]
    asked = ordered.pool.select(ordered.undecided())  # labels of a person need no forecast
    parts = [Reading.of(method.scores(piece), problem.classes, problem.candidates()) for piece in pieces(asked)]
    reading = Reading.joined(parts)
    confidence = Confidence.learn([part.reading for part in known], [part.placed for part in known])
    corrections = corrections_of(method, problem, fabric)
    names = _named(method, reading, problem, 0.0 if corrections is None else corrections.surer)
    certainty = None if names is None else names.certainty()
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
            names=names,
            corrections=corrections,
        ),
        confidence=confidence,
        levels=np.zeros(0),
        sample_shape=asked.sample_shape,
        familiarity=familiarity,
        names=certainty,
    )
    of_pool = trust.sure_of(reading, familiar)
    of_pool = of_pool[np.isfinite(of_pool)]
    levels = np.quantile(of_pool, np.linspace(0, 1, LEVELS)) if len(of_pool) else of_pool
    return replace(trust, levels=steady(levels))


def _named(method: Method, reading: Reading, problem: Problem, surer: float) -> Names | None:
    """The names of the groups, of labels that a reading of all others has, and of those that a person has given."""
    shares, given = method.name_shares(), problem.decided()[1]
    if shares is None:
        return None
    L, everything = len(problem.classes), len(given) == len(problem.pool)
    sizes = count(given, L) + (0 if everything else count(reading.labels, L))
    return Names(shares, sizes, count(given, L), surer)


def _without_label(problem: Problem, familiar: Vector) -> float:
    """The share of the pool that no label can be right for: strangers (beyond chance), and in ZSL known inputs."""
    known = float((labelled_twins(problem) >= 0).mean()) if problem.setting == "zsl" else 0.0
    return max(0.0, float((familiar < STRANGE).mean()) - STRANGE, known)


def steady(shares: Vector) -> Vector:
    """Shares from 0 to 1 rounded down to six digits: their last bits depend on the order in which a fit adds."""
    rounded: Vector = np.floor(shares * 1e6 + 1e-3) / 1e6
    return rounded
