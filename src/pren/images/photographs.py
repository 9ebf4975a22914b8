"""Prepare a problem of photographs: leave out unreadable files, and turn photographs into features."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from pren.foundation.errors import PrenError
from pren.images.duration import announce
from pren.images.engines import nearest
from pren.images.extraction import BATCH, Extractor, FrozenBackbone, OnProgress
from pren.images.files import ImageFiles, image_files
from pren.images.finetune.tails import tail_name
from pren.images.look import LOOK, Look
from pren.images.side_by_side import FeatureStore, SideBySide
from pren.problem import Answers, Problem
from pren.training.processes import Fabric, agreed, single_process

log = logging.getLogger(__name__)

SHOWN = 5  # unreadable files that a message names
Trouble = list[tuple[int, str]]  # the place of a file, and its error
FindLook = Callable[[Problem, FeatureStore], Look | None]


class ExtractorRecord(BaseModel):
    """What a model of features needs to read photographs: the user's choice of an extractor, and its facts."""

    model_config = ConfigDict(extra="forbid")

    asked: Extractor
    facts: dict[str, Any]


def has_photographs(problem: Problem) -> bool:
    """Whether the inputs of a problem are photographs."""
    return problem.train.photographs and problem.pool.photographs


def leave_out_unreadable(problem: Problem, answers: Answers | None) -> tuple[Problem, Answers | None]:
    """Decode every photograph once and leave out unreadable ones, which would stop training later."""
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
    workers: int | None = None,
    on_progress: OnProgress | None = None,
    find_look: FindLook | None = None,
) -> tuple[Problem, Answers | None]:
    """Turn a problem of photographs into one of features, with a frozen backbone and its cache.

    An extractor that stops before a stage makes the inputs of that stage, and the rest of the network becomes the
    problem's backbone, for a method that trains one.

    Args:
        problem: With photographs as inputs.
        answers: Its answers; those of unreadable photographs are left out of the result.
        extractor: The backbone, or several side by side; a name, or ``a+b``, means trained weights.
        cache: The folder of the cache; see `cache_folder`.
        fabric: The device and the processes, launched; None for one process on the best device.
        workers: Processes that read and decode.
        on_progress: Called after every batch.
        find_look: Says how to alter the labelled photographs; its answer is in the problem's source.

    Raises:
        PrenError: If the problem has no photographs, or the backbone or the cache cannot be used.
    """
    parts = [image_files(inputs) for inputs in (problem.train, problem.pool)]
    fabric = fabric or single_process()
    extractor = Extractor(backbone=extractor) if isinstance(extractor, str) else extractor
    with agreed(fabric):  # another machine may lack the weights or disk space
        frozen = SideBySide.load(extractor)
        store = FeatureStore(cache, frozen)
        if fabric.is_global_zero:
            announce(store, parts, fabric.device, fabric.world_size)
    stores, look = [store, store], None if find_look is None else find_look(problem, store)
    if look is not None:
        stores[0] = store.altered(look)
        problem = replace(problem, source={**problem.source, LOOK: look.model_dump(mode="json")})
    pairs = zip(stores, parts, strict=True)
    found = [each.extract(files, fabric, workers, on_progress=on_progress) for each, files in pairs]
    train, pool = (part.inputs for part in found)
    problem, answers = _without(problem, answers, *(part.problems for part in found))
    answers = None if answers is None else replace(answers, pictures=problem.pool)
    record = ExtractorRecord(asked=extractor.resolved(), facts=frozen.facts).model_dump(mode="json")
    stage = frozen.facts.get("until")
    tail = None if stage is None else tail_name(extractor.backbone, stage)
    return replace(problem, train=train, pool=pool, backbone=tail, extractor=record), answers


def recorded_backbone(
    record: dict[str, Any], weights: str | None = None, tail: dict[str, Tensor] | None = None
) -> SideBySide:
    """The extractor that a model was trained with; `PrenError` if it has changed.

    `record` is the model's `extractor_`, `tail` its `tail_`, and `weights` the file of its weights if it was moved.
    """
    try:
        known = ExtractorRecord.model_validate(record)
    except ValidationError as error:
        raise PrenError("damaged", f"The model does not say which backbone made its features: {error}") from error
    frozen = SideBySide.load(_moved(known, weights), tail)
    check_same_facts(frozen.facts, known.facts)
    return frozen


def _moved(known: ExtractorRecord, weights: str | None) -> Extractor:
    """A recorded extractor on this machine: its weights may be elsewhere, and its engine may not be installed."""
    asked = known.asked.of_record(known.facts)
    asked = asked if weights is None else asked.model_copy(update={"weights": weights})
    return asked.model_copy(update={"engine": nearest(asked.engine)})


def whole_backbone(record: dict[str, Any], weights: str | None, tail: dict[str, Tensor]) -> FrozenBackbone:
    """A recorded backbone that stops before a stage, joined with the weights of a trained tail."""
    recorded_backbone(record, weights)  # raises if it has changed
    return FrozenBackbone.load(_moved(ExtractorRecord.model_validate(record), weights), tail)


def check_same_facts(facts: dict[str, Any], known: dict[str, Any]) -> None:
    """Raise a `PrenError` if a frozen backbone is not the one that a model was trained with, whatever runs it."""
    if _without_engine(facts) != _without_engine(known):
        raise PrenError(
            "weights-other",
            f"The weights or the preprocessing of {facts['backbone']} are not those of the model's training: "
            "give the original file (--weights FILE), or install the original version of timm.",
        )


def _without_engine(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts of one or several backbones without their engines, whose features are alike."""
    rest = {name: value for name, value in facts.items() if name != "engine"}
    return rest if "parts" not in rest else {**rest, "parts": [_without_engine(part) for part in rest["parts"]]}


def _without(
    problem: Problem, answers: Answers | None, in_train: Trouble, in_pool: Trouble
) -> tuple[Problem, Answers | None]:
    """The problem and the answers without unreadable files."""
    if not in_train and not in_pool:
        return problem, answers
    train, pool = problem.train, problem.pool
    reasons = [reason for _, reason in in_train + in_pool]
    some = " ".join(reasons[:SHOWN]) + (" ..." if len(reasons) > SHOWN else "")
    log.warning("%d of %d photographs cannot be read and are left out: %s", len(reasons), len(train) + len(pool), some)
    bad_train, bad_pool = (np.array([place for place, _ in bad], dtype=np.int64) for bad in (in_train, in_pool))
    if len(bad_train) == len(train):
        raise PrenError("input-unreadable", f"None of the labelled photographs can be read: {reasons[0]}")
    for label in set(problem.labels) - set(np.delete(problem.labels, bad_train)):
        name, first = problem.classes.names[label], next(why for i, why in in_train if problem.labels[i] == label)
        raise PrenError("input-unreadable", f"No labelled photograph of class {name!r} can be read: {first}")
    problem = replace(
        problem,
        train=train.select(np.delete(np.arange(len(train)), bad_train)),
        labels=np.delete(problem.labels, bad_train),
        pool=pool.select(np.delete(np.arange(len(pool)), bad_pool)),
        given=None if problem.given is None else np.delete(problem.given, bad_pool),
    )
    return problem, None if answers is None else answers.without(in_pool)
