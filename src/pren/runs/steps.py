"""The steps of a run: train, with a checkpoint after each round, then rehearse on held-out classes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from torch import Tensor

from pren.core.progressive import Round
from pren.data import check_can_hold_out
from pren.evaluation import round_figures
from pren.foundation.errors import PrenError
from pren.methods.base import Method
from pren.problem import Answers, Problem
from pren.store.checkpoint import Checkpoint, State
from pren.store.config import RunConfig
from pren.store.folder import RunFolder
from pren.training.processes import Fabric, agreed, share, share_text
from pren.trust import OnRehearsal, Trust, assess, usual_draws
from pren.trust.assessment import FEWEST

log = logging.getLogger(__name__)

NO_FORECAST = "There is no forecast, and labels have no confidence: %s"
OnRound = Callable[[Round, Method], None]


def train(
    fabric: Fabric,
    folder: RunFolder | None,
    config: RunConfig,
    method: Method,
    problem: Problem,
    answers: Answers | None,
    on_round: OnRound | None,
) -> tuple[Method, State]:
    """Fit, from the folder's checkpoint if there is one; returns the fitted method and the state."""
    checkpoint: Checkpoint | None = None
    with agreed(fabric):
        checkpoint = folder.checkpoint() if folder is not None else None
    state, training = State(history=[], timings=[], pseudo_labels=[]), {}
    with agreed(fabric):
        if checkpoint is not None and not _same(checkpoint.method.tail_, problem.tail):
            raise PrenError(
                "cache-lost",
                "The fine-tuned backbone of this run is no longer in the cache, and training it again gives another "
                "one: restore the cache, or start a new run.",
            )
    if checkpoint is not None:
        method, state, training = checkpoint.method, checkpoint.state, checkpoint.training
    start = _model_to_start_from(fabric, config, method)
    since, saved = time.perf_counter(), False
    for done in method.fit_rounds(problem, share(fabric, training) or None, fabric, **start):
        known = {} if answers is None else round_figures(done.pseudo, done.labels, answers, problem.setting)
        state = state.after(done, time.perf_counter() - since, problem.classes.names, known)
        with agreed(fabric):
            if folder is not None:
                folder.save_round(method, state)
        if on_round is not None:
            on_round(done, method)
        since, saved = time.perf_counter(), True
    with agreed(fabric):
        if folder is not None and checkpoint is not None and not saved:
            folder.publish(checkpoint.path, checkpoint.state)  # the run was killed before it could
    return method, state


def _same(tail: dict[str, Tensor] | None, other: dict[str, Tensor] | None) -> bool:
    """Whether two fine-tuned backbones are equal, or both are frozen."""
    known, found = tail or {}, other or {}
    return known.keys() == found.keys() and all(value.equal(found[name].cpu()) for name, value in known.items())


def _model_to_start_from(fabric: Fabric, config: RunConfig, method: Method) -> dict[str, Method]:
    """The model of the continued run, as a keyword of `fit_rounds`; a method without rounds needs none."""
    run = share_text(fabric, str(config.record.get("continues", "")))
    with agreed(fabric):
        if not run:
            return {}
        if type(method).fit_rounds is Method.fit_rounds:
            log.info("%s has no rounds: it does not start from the model in %s.", method.name, run)
            return {}
        return {"start": RunFolder.open(run).model()}


def check_rehearsals(config: RunConfig) -> None:
    """Raise a `PrenError` if the wanted number of rehearsals is impossible: before minutes of extraction."""
    if config.rehearsals == 1:
        raise PrenError("rehearsals-one", "One rehearsal is too few for a forecast: use 0, or 2 or more.")
    if config.min_accuracy is not None and config.rehearsals == 0:
        raise PrenError("no-rehearsals", "--min-accuracy needs rehearsals: add --rehearsals 10.")


def count_rehearsals(config: RunConfig, method: Method, problem: Problem) -> int | None:
    """How often to rehearse: as configured, else as often as it takes (None), or 0 where a fit is slow.

    Raises:
        PrenError: If `min_accuracy` needs rehearsals and there are none.
    """
    trains = "backbone" in method.params and len(problem.train.sample_shape) > 1
    count = config.rehearsals
    if count is None and (trains or usual_draws(method, problem) < FEWEST):
        count = 0
    try:
        check_can_hold_out(problem)
    except PrenError as error:
        if config.rehearsals or config.min_accuracy is not None:
            raise
        log.warning(NO_FORECAST, error)
        return 0
    if config.min_accuracy is not None and count == 0:
        raise PrenError("no-rehearsals", "--min-accuracy needs rehearsals: add --rehearsals 10.")
    return count


def rehearse(
    method: Method,
    problem: Problem,
    rehearsals: int | None,
    config: RunConfig,
    fabric: Fabric,
    on_rehearsal: OnRehearsal | None,
) -> Trust | None:
    """Rehearse, all processes together; sets the method's γ.

    If rehearsals fail, the result is None, unless they were asked for.
    """
    if rehearsals == 0:
        return None
    gamma = bool(config.choose_gamma)
    try:
        return assess(method, problem, rehearsals, gamma=gamma, fabric=fabric, on_rehearsal=on_rehearsal)
    except PrenError as error:
        if config.rehearsals or config.min_accuracy is not None:
            raise
        log.warning(NO_FORECAST, error)
        return None
