"""Fine-tune the last stages of a backbone on the seen classes, if that improves held-out classes.

Some seen classes are held out and the stages are trained on the others. PrEN-Pool labels the held-out inputs by
features before and after. The backbone stays frozen unless fine-tuning is clearly better.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from pren.data import check_can_hold_out, held_out_classes
from pren.data.folds import FOLDS
from pren.evaluation import evaluate
from pren.foundation.errors import PrenError
from pren.foundation.files import make_folder, write_bytes
from pren.images.extraction import Extractor
from pren.images.finetune.finetuned import Tail, TailTrainer
from pren.images.photographs import ExtractorRecord
from pren.methods.pren_pool import PrENPool
from pren.problem import Answers, Problem
from pren.problem.order import in_content_order
from pren.training.processes import Fabric, agreed, share_text
from pren.trust.quiet import quietly

log = logging.getLogger(__name__)

DRAWS = FOLDS  # of held-out classes; rehearsals and familiarity use the same, and reuse what was trained
# Off, or a quarter, which was chosen on CUB's validation folds (docs/results/finetuning.md). The draws are too few to
# choose among more.
STRENGTHS = (0.0, 0.25)


class Trials(BaseModel):
    """Results on held-out classes.

    Attributes:
        figures: For each of `STRENGTHS` and each draw: the mean accuracy of held-out classes or, in GZSL, the area
            under the curve of seen against unseen accuracy.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    figures: tuple[tuple[float, ...], ...]

    def means(self) -> list[float]:
        """The mean figure of each strength over the draws."""
        return [float(np.mean(row)) for row in self.figures]

    def best(self) -> float:
        """The best strength; 0 if its gain is not above its standard error."""
        gains = np.array(self.figures) - np.array(self.figures[0])
        best = int(gains.mean(axis=1).argmax())
        error = float(gains[best].std(ddof=1)) / math.sqrt(gains.shape[1])
        return STRENGTHS[best] if gains[best].mean() > error else 0.0


def finetune(
    problem: Problem,
    extractor: Extractor,
    cache: str | Path | None,
    fabric: Fabric,
    known: dict[str, Any] | None = None,
    tail: Tail | None = None,
) -> Problem:
    """Train the last stages on the seen classes, and turn cached maps into their features.

    Args:
        problem: Its inputs are maps for the first of these stages, made by `freeze`.
        extractor: Which network, from which stage on, and how.
        cache: The folder of the cache.
        fabric: Where to compute; all processes together.
        known: The `extractor_` of a model that was fitted to this problem, if there is one.
        tail: Its `tail_`, which is used instead of training.
    """
    trainer = TailTrainer.of(problem, extractor, cache, fabric)
    note: dict[str, Any] = {"from": trainer.facts["until"], "targets": trainer.plan.targets}
    if tail is None:
        strength = trainer.plan.strength
        if strength is None:
            trials = _trials(trainer)
            strength = float(share_text(fabric, str(0.0 if trials is None else trials.best())))
            note["held_out"] = {} if trials is None else dict(zip(map(str, STRENGTHS), trials.means(), strict=True))
        tail = trainer.tail(np.arange(len(problem.train)), strength)
    else:
        strength = _strength_of(known or {})
    note["strength"] = strength
    if fabric.is_global_zero and note.get("held_out"):
        _log(note, "AUSUC" if problem.setting == "gzsl" else "right")
    learned = trainer.finished(tail, strength, cache)
    return replace(learned, source={**problem.source, "finetuning": note})


def _log(note: dict[str, Any], figure: str) -> None:
    figures = {strength: 100 * figure for strength, figure in note["held_out"].items()}
    frozen, chosen = figures.pop("0.0"), str(note["strength"])
    if chosen in figures:
        log.info(
            "The backbone is fine-tuned from %s on, with strength %s. Held-out classes: %.1f %% %s, and %.1f %% with "
            "the frozen backbone.",
            note["from"],
            chosen,
            figures[chosen],
            figure,
            frozen,
        )
    else:
        log.warning(
            "Fine-tuning is off: it does not clearly improve held-out classes (%.1f %% %s with the frozen backbone, at "
            "best %.1f %% fine-tuned).",
            frozen,
            figure,
            max(figures.values()),
        )


def _trials(trainer: TailTrainer) -> Trials | None:
    """Try every strength on held-out classes, or read the cached results; None if none can be held out."""
    problem, fabric = trainer.problem, trainer.fabric
    try:
        check_can_hold_out(problem)
    except PrenError as error:
        log.warning("Fine-tuning is off, as it cannot be tested: %s", error)
        return None
    path = trainer.notes(f"{DRAWS} draws of {STRENGTHS}")
    known = share_text(fabric, _cached(path) if fabric.is_global_zero else "")
    if known:
        return Trials.model_validate_json(known)
    figures, everyone = [], np.arange(len(problem.train))
    for strength in STRENGTHS:
        taught = replace(problem, train=trainer.not_learned(everyone, strength), backbone=None)
        with quietly():
            figures.append(tuple(_figure(*fold) for fold in held_out_classes(in_content_order(taught), DRAWS)))
        log.info("Held-out classes with strength %g: %.1f %%.", strength, 100 * np.mean(figures[-1]))
    trials = Trials(figures=tuple(figures))
    with agreed(fabric):
        if fabric.is_global_zero:
            make_folder(path.parent)
            write_bytes(path, trials.model_dump_json().encode())
    return Trials.model_validate_json(share_text(fabric, trials.model_dump_json()))


def _figure(problem: Problem, answers: Answers) -> float:
    """The accuracy or the AUSUC of PrEN-Pool: names changed by a vote would hide what features are worth."""
    method = PrENPool().fit(problem)
    found = evaluate(method, problem, answers)
    return float(found.ausuc or 0.0) if problem.setting == "gzsl" else found.top1


def _cached(path: Path) -> str:
    """The text of cached trials; "" if there is none or it is damaged."""
    try:
        text = path.read_text(encoding="utf-8")
        found = Trials.model_validate_json(text)
    except (OSError, ValueError):
        return ""
    whole = len(found.figures) == len(STRENGTHS) and all(len(row) == DRAWS for row in found.figures)
    return text if whole else ""


def _strength_of(known: dict[str, Any]) -> float:
    """The strength of a model's fine-tuning."""
    try:
        asked = ExtractorRecord.model_validate(known).asked
    except ValidationError as error:
        raise PrenError("damaged", f"The model does not name the backbone of its features: {error}") from error
    return 0.0 if asked.finetune is None else asked.finetune.strength or 0.0
