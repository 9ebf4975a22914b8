"""Open the data of a configuration, for every verb: readable photographs, or features of its frozen backbone."""

from __future__ import annotations

from collections.abc import Sequence

from pren.foundation.errors import PrenError
from pren.images.extraction import OnProgress
from pren.images.photographs import freeze, has_photographs, leave_out_unreadable
from pren.methods.base import Method
from pren.methods.registry import METHODS, trains_backbone
from pren.problem import Answers, Problem
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
        for name in methods or [config.method]:
            METHODS[name].method.check_classes(problem.classes)
        if config.extractor is None and has_photographs(problem):
            check_trains_backbone(methods or [config.method])
            problem, answers = leave_out_unreadable(problem, answers)
    if config.extractor is None:
        return settled(problem, answers) if config.find_setting else (problem, answers)
    asked = config.extractor
    if asked.until is not None and asked.finetune is None:
        check_trains_backbone(methods or [config.method])
    problem, answers = freeze(problem, answers, asked, config.cache, fabric=fabric, on_progress=on_extract)
    if config.find_setting:
        problem, answers = settled(problem, answers)
    if asked.finetune is None:
        return problem, answers
    from pren.runs.finetuning import finetune  # few runs need it

    known = {} if fitted is None else {"known": fitted.extractor_, "tail": fitted.tail_}
    return finetune(problem, asked, config.cache, fabric, **known), answers
