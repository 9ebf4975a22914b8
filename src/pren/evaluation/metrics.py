"""The paper's figures (Top-1 and mAcc; u, s and H for generalised zero-shot learning) and AUSUC.

All but AUSUC come from one confusion matrix. Figures are fractions in [0, 1]. Averages over classes leave out classes
without test inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, harmonic_mean
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from sklearn.metrics import confusion_matrix

from pren.core.pseudo import best_candidate
from pren.evaluation.calibration import Sides, trade_off_of
from pren.foundation.errors import PrenError
from pren.problem import UNKNOWN, Answers, ClassTable, Problem, Setting, candidates_of
from pren.problem.scoring import Scoring, scorer

FIGURES: dict[Setting, tuple[str, ...]] = {"zsl": ("top1", "macc"), "gzsl": ("u", "s", "h", "ausuc")}  # what to show
MAIN_FIGURE: dict[Setting, str] = {"zsl": "top1", "gzsl": "h"}  # what to choose parameters by
TITLES = {"top1": "Top-1", "macc": "mAcc", "u": "u", "s": "s", "h": "H", "ausuc": "AUSUC"}

Share = Annotated[float, Field(ge=0, le=1)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ClassResult(_Record):
    """The result of one class; its accuracy is None if it has no test inputs."""

    name: str
    seen: bool
    images: int
    correct: int
    accuracy: Share | None


class Confusion(_Record):
    """How many inputs of one class are predicted as another or as their own; at least 1."""

    true: str
    predicted: str
    count: int


class Metrics(_Record):
    """How good a set of predictions is.

    Attributes:
        setting: "zsl" (the candidates are the unseen classes) or "gzsl" (all classes).
        images: How many inputs were evaluated.
        unknown: How many were left out because their class is not known.
        top1: Accuracy within each class, averaged over the classes that have test inputs.
        macc: The share of inputs that were recognised.
        u: GZSL: Top-1 on the inputs of unseen classes. None in ZSL, or if there are no such inputs.
        s: GZSL: Top-1 on the inputs of seen classes. None in ZSL, or if there are no such inputs.
        h: GZSL: the harmonic mean of u and s, 0 if both are 0. None if either is.
        ausuc: GZSL: the area under the curve of s over u for all γ. None if u or s is, or scores are not finite.
        per_class: One row per candidate class, in the order of the class table.
        confusion: The cells of the confusion matrix that are not zero, most frequent first, then by name.
    """

    setting: Setting
    images: int
    unknown: int
    top1: Share
    macc: Share
    u: Share | None
    s: Share | None
    h: Share | None
    ausuc: Share | None = None
    per_class: tuple[ClassResult, ...] = Field(repr=False)
    confusion: tuple[Confusion, ...] = Field(repr=False)

    def by_images(self) -> dict[str, float | None]:
        """GZSL: u, s and H as shares of inputs instead of means over classes."""
        shares = []
        for seen in (False, True):
            rows = [row for row in self.per_class if row.seen == seen]
            images = sum(row.images for row in rows)
            shares.append(sum(row.correct for row in rows) / images if images else None)
        u, s = shares
        h = None if u is None or s is None else float(harmonic_mean((u, s)))
        return {"u_images": u, "s_images": s, "h_images": h}

    def to_dict(self) -> dict[str, Any]:
        """For JSON; None, never NaN, where a figure is not defined."""
        return self.model_dump(mode="json")


class Marks(NamedTuple):
    """What figures need: a few numbers for each of n inputs, for any number of classes.

    Attributes:
        predicted: (n,) the best candidate class.
        undefined: (n,) whether a score is NaN.
        sides: The best seen and the best unseen class.
    """

    predicted: NDArray[np.int64]
    undefined: NDArray[np.bool_]
    sides: Sides

    @classmethod
    def of(cls, scores: NDArray[np.float64], classes: ClassTable, setting: Setting) -> Marks:
        """Read scores (n, L); see `evaluate`."""
        predicted = best_candidate(scores, classes.among(candidates_of(setting)))
        return cls(predicted, np.asarray(np.isnan(scores).any(axis=1)), Sides.of(scores, classes))

    @classmethod
    def joined(cls, parts: Sequence[Marks]) -> Marks:
        """Concatenate several."""
        predicted, undefined, sides = zip(*parts, strict=True)
        every = Sides(*(np.concatenate(part) for part in zip(*sides, strict=True)))
        return cls(np.concatenate(predicted), np.concatenate(undefined), every)


def evaluate(model: Scoring, problem: Problem, answers: Answers) -> Metrics:
    """Score the pool of a problem with a fitted model, and compare with the answers.

    Args:
        model: A fitted method.
        problem: The one it was fitted to, or one with the same classes.
        answers: The labels of the problem's pool; those that are `UNKNOWN` are left out.

    Raises:
        PrenError: If the arguments do not fit together, scores hold NaN, or no answer is known.
    """
    return evaluate_scores(scorer(model, problem)(problem.pool), answers, problem.classes, problem.setting)


def evaluate_scores(scores: NDArray[np.float64], answers: Answers, classes: ClassTable, setting: Setting) -> Metrics:
    """Compare scores with the answers; the candidate class that scores highest is predicted.

    Args:
        scores: (N, L) any calibration for GZSL included.
        answers: The labels of the N inputs; those that are `UNKNOWN` are left out.
        classes: The L classes.
        setting: "zsl": the candidates are the unseen classes; "gzsl": all classes.

    Raises:
        PrenError: If the arguments do not fit together, scores hold NaN, or no input has a known label.
    """
    if scores.shape != (len(answers.labels), len(classes)):
        shape = (len(answers.labels), len(classes))
        raise PrenError("scores-shape", f"Scores must have shape {shape} (inputs, classes), not {scores.shape}.")
    return evaluate_marks(Marks.of(scores, classes, setting), answers, classes, setting)


def evaluate_marks(marks: Marks, answers: Answers, classes: ClassTable, setting: Setting) -> Metrics:
    """`evaluate_scores` from what `Marks.of` reads."""
    labels, predicted = answers.labels, marks.predicted
    if marks.undefined.any():
        first = int(marks.undefined.argmax())
        raise PrenError("not-finite", f"The scores of input {first} hold NaN: check the inputs, and fit again.")
    check_answers(answers, classes, setting)
    known = answers.known
    if not known.any():
        raise PrenError("no-answers", "There is nothing to evaluate: no input has a known class. Add answers.")
    candidates = classes.among(candidates_of(setting))
    matrix = confusion_matrix(labels[known], predicted[known], labels=np.arange(len(classes)))
    rows = [_class_result(classes, row, matrix) for row in np.flatnonzero(candidates).tolist()]
    # fmean rounds correctly, so the order of the classes does not matter.
    present = [(row.seen, row.accuracy) for row in rows if row.accuracy is not None]
    of_unseen = [accuracy for seen, accuracy in present if not seen]
    of_seen = [accuracy for seen, accuracy in present if seen]
    u = fmean(of_unseen) if setting == "gzsl" and of_unseen else None
    s = fmean(of_seen) if of_seen else None  # there are none in ZSL
    curve = trade_off_of(marks.sides, answers, classes) if setting == "gzsl" else None
    return Metrics(
        setting=setting,
        images=int(known.sum()),
        unknown=int((~known).sum()),
        top1=fmean(accuracy for _, accuracy in present),
        macc=sum(row.correct for row in rows) / int(known.sum()),
        u=u,
        s=s,
        h=None if u is None or s is None else float(harmonic_mean((u, s))),
        ausuc=None if curve is None else curve.area(),
        per_class=tuple(rows),
        confusion=_cells(matrix, classes.names),
    )


def check_answers(answers: Answers, classes: ClassTable, setting: Setting) -> None:
    """Check answers, before any fit.

    Raises:
        PrenError: If one is outside the class table or, in ZSL, a seen class.
    """
    labels = answers.labels
    outside = (labels != UNKNOWN) & ((labels < 0) | (labels >= len(classes)))
    if outside.any():
        place = int(outside.argmax())
        message = f"The answer for input {place} is {labels[place]}, but classes are 0 to {len(classes) - 1}."
        raise PrenError("answer-unknown", message)
    barred = (labels != UNKNOWN) & ~classes.among(candidates_of(setting))[labels]
    if barred.any():
        place = int(barred.argmax())
        wrong = f"The answer for input {place} is {classes.names[labels[place]]!r}, a seen class"
        raise PrenError("answer-seen", f"{wrong}: evaluate as 'gzsl', or leave such inputs out of the pool.")


def _class_result(classes: ClassTable, row: int, matrix: NDArray[np.int64]) -> ClassResult:
    images, correct = int(matrix[row].sum()), int(matrix[row, row])
    accuracy = correct / images if images else None
    seen = bool(classes.seen[row])
    return ClassResult(name=classes.names[row], seen=seen, images=images, correct=correct, accuracy=accuracy)


def _cells(matrix: NDArray[np.int64], names: Sequence[str]) -> tuple[Confusion, ...]:
    """The nonzero cells of a confusion matrix (L, L) as rows."""
    places = np.argwhere(matrix).tolist()
    cells = [Confusion(true=names[t], predicted=names[p], count=int(matrix[t, p])) for t, p in places]
    return tuple(sorted(cells, key=lambda cell: (-cell.count, cell.true, cell.predicted)))
