"""How long a network's last stages learn the seen classes: as long as it helps seen classes that are held out.

Some seen classes play unseen ones, the stages learn the others, and PrEN-Pool labels the held-out images by the
features after every epoch. If no epoch is clearly better than the frozen network, nothing is learned.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from lightning_fabric import Fabric
from pydantic import BaseModel, ConfigDict, ValidationError

from pren.data import check_can_hold_out, held_out_classes
from pren.engine.processes import agreed, share_text
from pren.errors import PrenError
from pren.evaluation import evaluate
from pren.files import make_folder, write_bytes
from pren.methods.pren_pool import PrENPool
from pren.problem import Answers, Problem
from pren.trust.quiet import quietly
from pren.vision.extraction import Extractor
from pren.vision.finetuned import School, Tail
from pren.vision.photographs import ExtractorRecord

log = logging.getLogger(__name__)

DRAWS = 3  # of held-out classes; the forecast's rehearsals are the same ones, and find their tails


class Trials(BaseModel):
    """What held-out classes say.

    Attributes:
        figures: After 0, 1, ... epochs, and in each of the draws, how good the labels of held-out classes are: the mean
            accuracy of a class or, in GZSL, the area under the curve of seen against unseen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    figures: tuple[tuple[float, ...], ...]

    def mean(self, epochs: int) -> float:
        """The figure after so many epochs, in the mean."""
        return float(np.mean(self.figures[epochs]))

    def best(self) -> int:
        """The best number of epochs; 0 if its gain could be chance: if it is not above its standard error."""
        gains = np.array(self.figures) - np.array(self.figures[0])
        epochs = int(gains.mean(axis=1).argmax())
        error = float(gains[epochs].std(ddof=1)) / math.sqrt(gains.shape[1])
        return epochs if gains[epochs].mean() > error else 0


def finetune(
    problem: Problem,
    extractor: Extractor,
    cache: str | Path | None,
    fabric: Fabric,
    known: dict[str, Any] | None = None,
    tail: Tail | None = None,
) -> Problem:
    """Let the last stages learn the seen classes, and turn kept maps into the features that they make then.

    Args:
        problem: Of maps that go into the first of these stages, as `freeze` made them.
        extractor: Which network, from which stage on, and how.
        cache: The folder of the cache.
        fabric: Where to compute; all processes together.
        known: The `extractor_` of a model that was fitted to this problem, and
        tail: its `tail_`: then nothing is learned again.
    """
    school = School.of(problem, extractor, cache, fabric)
    everyone = np.arange(len(problem.train))
    trials = None
    if tail is None:
        epochs = school.plan.epochs
        if epochs is None:
            trials = _trials(school)
            epochs = int(share_text(fabric, str(0 if trials is None else trials.best())))
        tail = school.tail(everyone, epochs)
    else:
        epochs = _epochs_of(known or {})
    learned = school.graduate(tail, epochs, cache)
    stage = str(problem.extractor["facts"]["until"]) if problem.extractor else ""
    note: dict[str, Any] = {"from": stage, "targets": school.plan.targets, "epochs": epochs}
    if trials is not None:
        note |= {"held_out": [trials.mean(count) for count in range(len(trials.figures))]}
        if fabric.is_global_zero:
            _say(note)
    return replace(learned, source={**problem.source, "finetuning": note})


def _say(note: dict[str, Any]) -> None:
    frozen, figures = note["held_out"][0], note["held_out"]
    if note["epochs"]:
        log.info(
            "The backbone has learned the seen classes from %s on, for %d epochs: of held-out classes %.1f %% are "
            "right then, and %.1f %% with the frozen one.",
            note["from"],
            note["epochs"],
            100 * figures[note["epochs"]],
            100 * frozen,
        )
    else:
        log.warning(
            "Fine-tuning is switched off: it does not help classes that are held out (%.1f %% right with the frozen "
            "backbone, at best %.1f %% with it, which may be chance).",
            100 * frozen,
            100 * max(figures[1:]),
        )


def _trials(school: School) -> Trials | None:
    """Try every number of epochs on held-out classes, or remember how that went; None if none can be held out."""
    problem, fabric = school.problem, school.fabric
    try:
        check_can_hold_out(problem)
    except PrenError as error:
        log.warning("Fine-tuning is switched off, as nothing tells whether it helps: %s", error)
        return None
    path = school.notes(DRAWS)
    known = share_text(fabric, _remembered(path, school.plan.most) if fabric.is_global_zero else "")
    if known:
        return Trials.model_validate_json(known)
    figures, everyone = [], np.arange(len(problem.train))
    for epochs in range(school.plan.most + 1):
        taught = replace(problem, train=school.untaught(everyone, epochs), backbone=None)
        with quietly():
            figures.append(tuple(_figure(*fold) for fold in held_out_classes(taught, DRAWS)))
        log.info("Held-out classes after %d epochs: %.1f %% right.", epochs, 100 * np.mean(figures[-1]))
    trials = Trials(figures=tuple(figures))
    with agreed(fabric):
        if fabric.is_global_zero:
            make_folder(path.parent)
            write_bytes(path, trials.model_dump_json().encode())
    return Trials.model_validate_json(share_text(fabric, trials.model_dump_json()))


def _figure(problem: Problem, answers: Answers) -> float:
    """How good the default method's labels are."""
    method = PrENPool().fit(problem)
    found = evaluate(method.scores(problem.pool), answers, problem.classes, problem.setting)
    return float(found.ausuc or 0.0) if problem.setting == "gzsl" else found.top1


def _remembered(path: Path, most: int) -> str:
    """What a file says of trials; "" if there is none, or it is damaged."""
    try:
        text = path.read_text(encoding="utf-8")
        found = Trials.model_validate_json(text)
    except (OSError, ValueError):
        return ""
    whole = len(found.figures) == most + 1 and all(len(row) == DRAWS for row in found.figures)
    return text if whole else ""


def _epochs_of(known: dict[str, Any]) -> int:
    """For how many epochs a model's backbone has learned."""
    try:
        asked = ExtractorRecord.model_validate(known).asked
    except ValidationError as error:
        raise PrenError(f"The model does not say which backbone made its features: {error}") from error
    return 0 if asked.finetune is None else asked.finetune.epochs or 0
