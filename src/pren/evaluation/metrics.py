"""The paper's figures: Top-1 and mAcc, and u, s and H for generalised zero-shot learning; and AUSUC.

All but AUSUC are read off one confusion matrix. Figures are fractions in [0, 1]. An average over classes is taken over
the classes that have test images: a class that is only ever predicted has no accuracy, and does not count as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, harmonic_mean
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from sklearn.metrics import confusion_matrix

from pren.errors import PrenError
from pren.evaluation.calibration import trade_off
from pren.problem import UNKNOWN, Answers, ClassTable, Setting, candidates_of
from pren.scoring import best_candidate

FIGURES: dict[Setting, tuple[str, ...]] = {"zsl": ("top1", "macc"), "gzsl": ("u", "s", "h", "ausuc")}  # what to show
MAIN_FIGURE: dict[Setting, str] = {"zsl": "top1", "gzsl": "h"}  # what to choose parameters by
TITLES = {"top1": "Top-1", "macc": "mAcc", "u": "u", "s": "s", "h": "H", "ausuc": "AUSUC"}

Share = Annotated[float, Field(ge=0, le=1)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ClassResult(_Record):
    """What became of the test images of one class.

    Attributes:
        name: The class.
        seen: Whether it had labelled images in training.
        images: How many test images it has.
        correct: How many of them were recognised.
        accuracy: correct / images; None if there are no images.
    """

    name: str
    seen: bool
    images: int
    correct: int
    accuracy: Share | None


class Confusion(_Record):
    """How many images of one class were taken for another (or for their own).

    Attributes:
        true: The class of the images.
        predicted: What they were taken for.
        count: How many, at least 1.
    """

    true: str
    predicted: str
    count: int


class Metrics(_Record):
    """How good a set of predictions is.

    Attributes:
        setting: "zsl" (the candidates are the unseen classes) or "gzsl" (all classes).
        images: How many images were evaluated.
        unknown: How many were left out because nobody knows their class.
        top1: Accuracy within each class, averaged over the classes that have test images.
        macc: The plain share of images that were recognised.
        u: GZSL: Top-1 on the images of unseen classes. None in ZSL, or if there are no such images.
        s: GZSL: Top-1 on the images of seen classes. None in ZSL, or if there are no such images.
        h: GZSL: the harmonic mean of u and s, 0 if both are 0. None if either is.
        ausuc: GZSL: the area under the curve of s over u for all γ. None if u or s is, where there are no (finite)
            scores, and in what versions before it wrote.
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types: None, never NaN, where a figure is not defined."""
        return self.model_dump(mode="json")


def evaluate(scores: NDArray[np.float64], answers: Answers, classes: ClassTable, setting: Setting) -> Metrics:
    """Compare scores with the answers; an image is taken for the candidate class that scores highest.

    Args:
        scores: (N, L) any calibration for GZSL included.
        answers: The labels of the N images.
        classes: The L classes.
        setting: "zsl": the candidates are the unseen classes; "gzsl": all classes.

    Raises:
        PrenError: If the arguments do not fit together, scores hold NaN, or no image has a known label.
    """
    expected = (len(answers.labels), len(classes))
    if scores.shape != expected:
        raise PrenError(
            f"scores must have one row per image and one column per class, {expected}, but have shape {scores.shape}."
        )
    undefined = np.isnan(scores).any(axis=1)
    if undefined.any():
        raise PrenError(
            f"scores hold NaN, first for image {int(undefined.argmax())}: the model that made them has diverged or was "
            "given broken inputs."
        )
    predicted = best_candidate(scores, _candidates(classes, setting))
    metrics = evaluate_predictions(predicted, answers, classes, setting)
    curve = trade_off(scores, answers, classes) if setting == "gzsl" else None
    return metrics if curve is None else metrics.model_copy(update={"ausuc": curve.area()})


def evaluate_predictions(
    predicted: NDArray[np.int64], answers: Answers, classes: ClassTable, setting: Setting
) -> Metrics:
    """Compare predicted classes with the answers.

    Args:
        predicted: (N,) rows of the class table; unseen classes only in ZSL.
        answers: The labels of the N images; those that are `UNKNOWN` are left out.
        classes: The L classes.
        setting: "zsl" or "gzsl".

    Raises:
        PrenError: If the arguments do not fit together or no image has a known label.
    """
    labels = answers.labels
    if labels.ndim != 1 or predicted.shape != labels.shape:
        raise PrenError(
            f"Predictions and answers must be one per image, but have shapes {predicted.shape} and {labels.shape}."
        )
    for what, array in (("prediction", predicted), ("answer", labels)):
        if array.dtype.kind not in "iu":
            raise PrenError(f"The {what} for an image must be a row number of the class table, not {array.dtype}.")
    candidates = _candidates(classes, setting)
    known = labels != UNKNOWN
    everywhere = np.ones_like(known)
    _check("The prediction", predicted, everywhere, candidates, classes, "predict among the unseen classes only")
    check_answers(answers, classes, setting)
    if not known.any():
        raise PrenError("No image has a known label, so there is nothing to evaluate: give the classes of some.")

    matrix = np.asarray(
        confusion_matrix(labels[known], predicted[known], labels=np.arange(len(classes))), dtype=np.int64
    )
    rows = [
        _class_result(classes, row, images=int(matrix[row].sum()), correct=int(matrix[row, row]))
        for row in np.flatnonzero(candidates).tolist()
    ]
    # fmean rounds correctly, so the order of the classes does not matter
    present = [(row.seen, row.accuracy) for row in rows if row.accuracy is not None]
    of_unseen = [accuracy for seen, accuracy in present if not seen]
    of_seen = [accuracy for seen, accuracy in present if seen]
    u = fmean(of_unseen) if setting == "gzsl" and of_unseen else None
    s = fmean(of_seen) if of_seen else None  # there are none in ZSL
    return Metrics(
        setting=setting,
        images=int(known.sum()),
        unknown=int((~known).sum()),
        top1=fmean(accuracy for _, accuracy in present),
        macc=sum(row.correct for row in rows) / int(known.sum()),
        u=u,
        s=s,
        h=None if u is None or s is None else float(harmonic_mean((u, s))),
        per_class=tuple(rows),
        confusion=_cells(matrix, classes.names),
    )


def check_answers(answers: Answers, classes: ClassTable, setting: Setting) -> None:
    """Check that answers can be right at all, which can be done before anything is fitted.

    Raises:
        PrenError: If one is outside the class table or, in ZSL, names a seen class.
    """
    remedy = "evaluate as 'gzsl', or leave such images out of the pool"
    known = answers.labels != UNKNOWN
    _check("The answer", answers.labels, known, _candidates(classes, setting), classes, remedy)


def _candidates(classes: ClassTable, setting: Setting) -> NDArray[np.bool_]:
    """(L,) the classes an image can be taken for."""
    if setting not in ("zsl", "gzsl"):
        raise PrenError(f"setting must be 'zsl' or 'gzsl', not {setting!r}.")
    return classes.among(candidates_of(setting))


def _check(
    what: str,
    rows: NDArray[np.int64],
    where: NDArray[np.bool_],
    candidates: NDArray[np.bool_],
    classes: ClassTable,
    remedy: str,
) -> None:
    """Check that rows (N,), where (N,) says so, are rows of the class table and candidates (L,)."""
    outside = where & ((rows < 0) | (rows >= len(classes)))
    if outside.any():
        place = int(outside.argmax())
        raise PrenError(
            f"{what} for image {place} is {rows[place]}, which is outside the class table, with rows 0 to "
            f"{len(classes) - 1}."
        )
    barred = where & ~candidates[rows * where]
    if barred.any():
        place = int(barred.argmax())
        raise PrenError(
            f"{what} for image {place} is {classes.names[rows[place]]!r}, a seen class, but in 'zsl' there are only "
            f"unseen ones: {remedy}."
        )


def _class_result(classes: ClassTable, row: int, images: int, correct: int) -> ClassResult:
    return ClassResult(
        name=classes.names[row],
        seen=bool(classes.seen[row]),
        images=images,
        correct=correct,
        accuracy=correct / images if images else None,
    )


def _cells(matrix: NDArray[np.int64], names: Sequence[str]) -> tuple[Confusion, ...]:
    """Turn the cells of a confusion matrix (L, L) that are not zero into rows."""
    cells = [
        Confusion(true=names[true], predicted=names[predicted], count=int(matrix[true, predicted]))
        for true, predicted in np.argwhere(matrix).tolist()
    ]
    return tuple(sorted(cells, key=lambda cell: (-cell.count, cell.true, cell.predicted)))
