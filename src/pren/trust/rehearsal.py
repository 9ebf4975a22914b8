"""Rehearsals: fits of a method to problems of the same kind with known answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from pren.data import held_out_classes
from pren.data.folds import FOLDS, different_draws
from pren.evaluation import best_gamma, trade_off
from pren.methods.base import Method
from pren.problem import Answers, ClassTable, Problem, Setting, candidates_of
from pren.problem.order import in_content_order
from pren.problem.scoring import calibrated
from pren.training.processes import Fabric
from pren.trust.confidence import Reading
from pren.trust.forecast import unsteady
from pren.trust.names import well_named
from pren.trust.quiet import quietly
from pren.trust.shift import Shift

QUICK = 10  # a method that is rehearsed so often by default is rehearsed more often where the draws disagree
STEP, MOST = 10, 60  # so many more at a time, and so many at most
Scores = NDArray[np.float64]
OnRehearsal = Callable[[int, int, float], None]  # how many are done, of how many so far, and the share of right labels


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """The scores of a method on a problem with known answers.

    Attributes:
        scores: (n, L') of the pool.
        answers: Of the pool.
        classes: The L' classes, all of them seen classes of the real problem.
        setting: "zsl" or "gzsl".
        names: Whether the method has chosen the names of groups.
    """

    scores: Scores
    answers: Answers
    classes: ClassTable
    setting: Setting
    names: bool = False

    def with_gamma(self, gamma: float) -> Rehearsal:
        """Subtract γ from the scores of seen classes."""
        scores = calibrated(self.scores, self.classes, self.setting, gamma)
        return replace(self, scores=scores)

    def reading(self) -> Reading:
        """The labels, and how clear each is."""
        return Reading.of(self.scores, self.classes, self.classes.among(candidates_of(self.setting)))

    def right(self) -> NDArray[np.bool_]:
        """(n,) whether each label is right."""
        right: NDArray[np.bool_] = self.reading().labels == self.answers.labels
        return right

    def placed(self) -> NDArray[np.bool_]:
        """(n,) whether each label would be right if all groups had the best names that they can have."""
        if not self.names:
            return self.right()
        labels, truth = self.reading().labels, self.answers.labels
        placed: NDArray[np.bool_] = well_named(labels, truth, self.classes.seen) == truth
        return placed


def usual_draws(method: Method, problem: Problem) -> int:
    """How many rehearsals there are by default, at least: fewer where each one learns its own features."""
    return min(method.rehearsals, FOLDS) if problem.train.learned else method.rehearsals


def most_draws(method: Method, problem: Problem) -> int:
    """How many there are by default, at most: no more than different ones, and the usual number where a fit is slow."""
    usual = usual_draws(method, problem)
    return usual if usual < QUICK else max(usual, min(different_draws(problem), MOST))


def rehearse(
    method: Method,
    problem: Problem,
    draws: int | None = None,
    shift: Shift | None = None,
    fabric: Fabric | None = None,
    on_rehearsal: OnRehearsal | None = None,
) -> list[Rehearsal]:
    """Fit copies of a method to problems in which some seen classes are held out; see `held_out_classes`.

    The draws, and all that a fit draws, go by the content of the problem (`in_content_order`): other names of classes,
    or another order of inputs, change nothing.

    Args:
        method: Fitted or not; it does not change.
        problem: The problem to rehearse for. Its pool only counts for the shift.
        draws: How many rehearsals; None for as many as it takes for the ends of the forecast to stand.
        shift: Where to move the pools; None leaves them.
        fabric: As for `Method.fit`.
        on_rehearsal: Called after each.

    Raises:
        PrenError: If there are too few seen classes.
    """
    done: list[Rehearsal] = []
    total, most = (usual_draws(method, problem), most_draws(method, problem)) if draws is None else (draws, draws)
    for rehearsed, answers in held_out_classes(in_content_order(problem), most):
        if shift is not None:
            rehearsed = shift.applied(rehearsed)
        with quietly():
            fitted = clone(method).fit(rehearsed, fabric)
        names = fitted.name_shares() is not None
        done.append(Rehearsal(fitted.scores(rehearsed.pool), answers, rehearsed.classes, rehearsed.setting, names))
        if len(done) == total and total < most and unsteady([float(one.placed().mean()) for one in done]):
            total = min(total + STEP, most)
        if on_rehearsal is not None:
            on_rehearsal(len(done), total, float(done[-1].right().mean()))
        if len(done) == total:
            break
    return done


def notable_shift(method: Method, problem: Problem) -> Shift | None:
    """The shift of the pool, if it is of another kind than the labelled inputs; None if not.

    None also for images that a backbone takes: moved pixels are no images.
    """
    if "backbone" in method.params and len(problem.pool.sample_shape) > 1:
        return None
    shift = Shift.of(problem)
    return shift if shift.notable else None


def choose_gamma(rehearsals: list[Rehearsal]) -> float:
    """The γ with the best mean H over rehearsals of GZSL; 0 if no rehearsal has a trade-off."""
    curves = [trade_off(done.scores, done.answers, done.classes) for done in rehearsals]
    known = [curve for curve in curves if curve is not None]
    return best_gamma(known)[0] if known else 0.0
