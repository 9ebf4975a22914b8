"""Open the data of a configuration, for every verb: readable photographs, or features of its frozen backbone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pren.foundation.errors import PrenError
from pren.images.extraction import OnProgress
from pren.images.look import Look
from pren.images.photographs import FindLook, freeze, has_photographs, leave_out_unreadable
from pren.methods.base import Method
from pren.methods.registry import METHODS, trains_backbone
from pren.problem import Answers, Problem
from pren.runs.descriptions import described
from pren.runs.piles import settled
from pren.store.config import RunConfig
from pren.training.processes import Fabric, agreed, single_process


def check_trains_backbone(methods: Sequence[str]) -> None:
    """Raise a `PrenError` that names the methods that only take features."""
    lacking = [METHODS[name].title for name in methods if not trains_backbone(name)]
    if lacking:
        raise PrenError(
            "backbone-not-trained", f"Cannot train a backbone with {', '.join(lacking)}: add --frozen for features."
        )


def open_problem(
    config: RunConfig,
    fabric: Fabric | None = None,
    on_extract: OnProgress | None = None,
    methods: Sequence[str] = (),
    fitted: Method | None = None,
) -> tuple[Problem, Answers | None]:
    """The data of a configuration, for its method or for several.

    Features are extracted on `fabric` (None for one process on the best device). A model that was `fitted` to these
    data has their fine-tuned backbone.

    Raises:
        PrenError: If the data cannot be read, or are photographs that a method cannot take.
    """
    fabric = fabric or single_process()
    with agreed(fabric):
        problem, answers = config.load_data()
        if config.extractor is None and has_photographs(problem):
            check_trains_backbone(methods or [config.method])
            problem, answers = leave_out_unreadable(problem, answers)
    if config.extractor is None:
        problem, answers = described(config, problem, answers)
        return settled(problem, answers) if config.find_setting else (problem, answers)
    asked = config.extractor
    if asked.until is not None and asked.finetune is None:
        check_trains_backbone(methods or [config.method])
    find = _look_finder(config, problem, fabric)
    problem, answers = freeze(
        problem, answers, asked, config.cache, fabric=fabric, on_progress=on_extract, find_look=find
    )
    problem, answers = described(config, problem, answers)
    if config.find_setting:
        problem, answers = settled(problem, answers)
    if asked.finetune is None:
        return problem, answers
    from pren.runs.finetuning import finetune  # few runs need it

    known = {} if fitted is None else {"known": fitted.extractor_, "tail": fitted.tail_}
    return finetune(problem, asked, config.cache, fabric, **known), answers


def _look_finder(config: RunConfig, problem: Problem, fabric: Fabric) -> FindLook | None:
    """What finds the look of a pool; None if labelled photographs stay as they are.

    A finished run says what was found. Several processes do not look: they would have to find the same.
    """
    asked, source = config.extractor, config.record.get("source")
    if source is not None:
        known = Look.known(source)
        return None if known is None else lambda *_: known
    if asked is None or asked.until is not None or fabric.world_size > 1:
        return None
    from pren.runs.camera import find_look  # few verbs need it

    wanted = problem.source.get("name") == "folder" if asked.alike is None else asked.alike
    return partial(find_look, fabric=fabric) if wanted else None
