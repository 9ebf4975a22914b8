"""A problem of photographs, made ready to be learned: without the files that cannot be read, and maybe as features."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from lightning_fabric import Fabric
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from pren.foundation.errors import PrenError
from pren.images.extraction import BATCH, WORKERS, Extractor, FrozenBackbone, OnProgress
from pren.images.files import ImageFiles, image_files
from pren.images.finetune.tails import tail_name
from pren.images.side_by_side import FeatureStore, SideBySide
from pren.problem import Answers, Problem
from pren.training.processes import agreed, single_process

log = logging.getLogger(__name__)

SHOWN = 5  # how many of the files that cannot be read are named
Trouble = list[tuple[int, str]]  # the place of a file, and what is wrong with it


class ExtractorRecord(BaseModel):
    """What a model of features has to know to be given images: what the user asked for, and what that was."""

    model_config = ConfigDict(extra="forbid")

    asked: Extractor
    facts: dict[str, Any]


def has_photographs(problem: Problem) -> bool:
    """Whether the inputs of a problem are image files."""
    return problem.train.photographs and problem.pool.photographs


def leave_out_unreadable(problem: Problem, answers: Answers | None) -> tuple[Problem, Answers | None]:
    """Decode every photograph once, and leave out what cannot be decoded, before hours of training stop at it."""
    in_train, in_pool = (unreadable_files(image_files(inputs)) for inputs in (problem.train, problem.pool))
    return _without(problem, answers, in_train, in_pool)


def unreadable_files(files: ImageFiles) -> Trouble:
    """The files that cannot be decoded."""
    batches = (range(start, min(start + BATCH, len(files))) for start in range(0, len(files), BATCH))
    reasons = (reason for places in batches for reason in files.decoded(places)[1])
    return [(place, reason) for place, reason in enumerate(reasons) if reason]


def freeze(
    problem: Problem,
    answers: Answers | None,
    extractor: Extractor | str,
    cache: str | Path | None = None,
    *,
    fabric: Fabric | None = None,
    workers: int = WORKERS,
    on_progress: OnProgress | None = None,
) -> tuple[Problem, Answers | None]:
    """Turn a problem of photographs into one of features, from a frozen backbone and through its cache.

    An extractor that stops before a stage makes what goes into it, and the rest of the network is the problem's
    backbone, for a method that trains one.

    Args:
        problem: With image files as inputs.
        answers: Its answers, without those of files that cannot be read in what is returned.
        extractor: The backbone, or several side by side; a name, or ``a+b``, means trained weights.
        cache: The folder of the cache; see `cache_folder`.
        fabric: Where to compute, launched; None for one process on the best device there is.
        workers: Processes that read and decode.
        on_progress: Called after every batch.

    Raises:
        PrenError: If the problem has no photographs, or the backbone or the cache cannot be used.
    """
    parts = [image_files(inputs) for inputs in (problem.train, problem.pool)]
    fabric = fabric or single_process()
    extractor = Extractor(backbone=extractor) if isinstance(extractor, str) else extractor
    with agreed(fabric):  # another machine may lack the weights, or have no room
        frozen = SideBySide.load(extractor)
        store = FeatureStore(cache, frozen)
    found = [store.extract(files, fabric, workers, on_progress=on_progress) for files in parts]
    train, pool = (part.inputs for part in found)
    problem, answers = _without(problem, answers, *(part.problems for part in found))
    answers = None if answers is None else replace(answers, pictures=problem.pool)
    record = ExtractorRecord(asked=extractor.with_absolute_paths(), facts=frozen.facts).model_dump(mode="json")
    stage = frozen.facts.get("until")
    tail = None if stage is None else tail_name(extractor.backbone, stage)
    return replace(problem, train=train, pool=pool, backbone=tail, extractor=record), answers


def recorded_backbone(
    record: dict[str, Any], weights: str | None = None, tail: dict[str, Tensor] | None = None
) -> SideBySide:
    """What made the features that a model was trained on; a `PrenError` if it is not the same any more.

    `record` is the model's `extractor_`, `tail` its `tail_`; `weights` the file with its weights, if it is not where it
    was.
    """
    try:
        known = ExtractorRecord.model_validate(record)
    except ValidationError as error:
        raise PrenError("damaged", f"The model does not say which backbone made its features: {error}") from error
    asked = known.asked if weights is None else known.asked.model_copy(update={"weights": weights})
    frozen = SideBySide.load(asked, tail)
    check_same_facts(frozen.facts, known.facts)
    return frozen


def whole_backbone(record: dict[str, Any], weights: str | None, tail: dict[str, Tensor]) -> FrozenBackbone:
    """A recorded backbone that stops before a stage, in one piece with the weights of a tail that was trained since."""
    asked = ExtractorRecord.model_validate(record).asked
    recorded_backbone(record, weights)  # says what is wrong with it
    return FrozenBackbone.load(asked if weights is None else asked.model_copy(update={"weights": weights}), tail)


def check_same_facts(facts: dict[str, Any], known: dict[str, Any]) -> None:
    """Raise a `PrenError` if a frozen backbone is not the one that a model was trained with."""
    if facts != known:
        raise PrenError(
            "weights-other",
            f"The weights or the preprocessing of {facts['backbone']} are not those that the model was trained with: "
            "give the file that it was trained with (--weights FILE), or the version of timm.",
        )


def _without(
    problem: Problem, answers: Answers | None, in_train: Trouble, in_pool: Trouble
) -> tuple[Problem, Answers | None]:
    """The same but for some files of each kind."""
    if not in_train and not in_pool:
        return problem, answers
    train, pool = problem.train, problem.pool
    reasons = [reason for _, reason in in_train + in_pool]
    some = " ".join(reasons[:SHOWN]) + (" ..." if len(reasons) > SHOWN else "")
    log.warning("%d of %d image files cannot be read and are left out: %s", len(reasons), len(train) + len(pool), some)
    bad_train, bad_pool = (np.array([place for place, _ in bad], dtype=np.int64) for bad in (in_train, in_pool))
    if len(bad_train) == len(train):
        raise PrenError("input-unreadable", f"None of the labelled images can be read: {reasons[0]}")
    for label in set(problem.labels) - set(np.delete(problem.labels, bad_train)):
        raise PrenError(
            "input-unreadable",
            f"None of the labelled images of class {problem.classes.names[label]!r} can be read, so it would no longer "
            f"be a seen class: {next(reason for place, reason in in_train if problem.labels[place] == label)}",
        )
    problem = replace(
        problem,
        train=train.select(np.delete(np.arange(len(train)), bad_train)),
        labels=np.delete(problem.labels, bad_train),
        pool=pool.select(np.delete(np.arange(len(pool)), bad_pool)),
        given=None if problem.given is None else np.delete(problem.given, bad_pool),
    )
    return problem, None if answers is None else answers.without(in_pool)
