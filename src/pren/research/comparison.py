"""Compare methods on the same data; every cell is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pren.evaluation import check_answers
from pren.foundation.errors import PrenError
from pren.foundation.extras import need
from pren.images.extraction import OnProgress
from pren.methods.registry import METHODS
from pren.problem import Answers, Problem
from pren.research.cells import Task, data_hashes, make_task
from pren.research.chart import write_chart
from pren.research.computing import OnCell, compute_cells
from pren.research.folder import held_folder
from pren.research.parameters import Parameters
from pren.research.summary import Row, summarise
from pren.research.tables import write_tables
from pren.runs.opening import open_problem
from pren.store.config import RunConfig


@dataclass(frozen=True)
class ComparisonPlan:
    """What to compare.

    Attributes:
        data: The data; parameters here are for every method.
        methods: Registered names.
        seeds: How many seeds, from 0 on; methods without randomness run once.
        parameters: Of the methods; others are as the data recommend, or by default.
    """

    data: Sequence[RunConfig]
    methods: Sequence[str]
    seeds: int = 5
    parameters: Parameters = field(default_factory=Parameters)


def compare(
    plan: ComparisonPlan,
    out: str | Path,
    *,
    jobs: int = 1,
    retry: bool = False,
    stored: bool = False,
    command: str = "",
    on_cell: OnCell | None = None,
    on_extract: OnProgress | None = None,
) -> list[Row]:
    """Compute what is not in `out` yet, and write tables and a chart there.

    Args:
        plan: What to compare.
        out: A folder, new or of an earlier comparison, whose cells are kept.
        jobs: How many cells at a time, each in its own process.
        retry: Whether to compute failed cells again.
        stored: Whether to use only the cells in `out` and compute none.
        command: The command line, for the message that other writers get.
        on_cell: Called after every computed cell.
        on_extract: Called while features are extracted.

    Returns:
        One row for each data set and method, in the order of the plan.

    Raises:
        PrenError: If the plan is wrong. A method that fails does not stop the others.
    """
    need("matplotlib", "research")  # fail now, not after hours
    groups = _groups(plan, on_extract)
    folder = Path(out)
    with held_folder(folder, command):
        tasks = (task for group in groups for task in group.tasks)
        results = compute_cells(tasks, folder, jobs=jobs, retry=retry, stored=stored, on_cell=on_cell)
        rows = []
        for group in groups:
            keys = [task.cell.key() for task in group.tasks]
            done = [results[key] for key in keys if key in results]
            rows.append(summarise(group.data, group.method, group.given, done))
        write_tables(rows, plan.data[0].setting, folder)
        write_chart(rows, plan.data[0].setting, folder)
    return rows


@dataclass(frozen=True)
class _Group:
    """The cells that make one row."""

    data: str
    method: str
    given: bool  # whether it has its own parameters
    tasks: list[Task]


def _groups(plan: ComparisonPlan, on_extract: OnProgress | None) -> list[_Group]:
    if not plan.data or not plan.methods:
        raise PrenError("nothing-to-compare", "There is nothing to compare: name data and methods.")
    groups = []
    for title, given in zip(_titles(plan.data), plan.data, strict=True):
        data = given.with_features(plan.methods)
        hashes = data_hashes(*_opened(data, plan.methods, on_extract))
        for name in plan.methods:
            entry = METHODS[name]
            config = plan.parameters.with_weights(data.model_copy(update={"method": name}))
            own = hashes if config.options == data.options else data_hashes(*_opened(config, plan.methods, on_extract))
            params = plan.parameters.of(config)
            config = config.model_copy(update={"params": {**params, **data.params}})
            seeds = list(range(plan.seeds)) if "seed" in entry.method.params else [None]
            tasks = [make_task(config, own, seed) for seed in seeds]
            groups.append(_Group(title, entry.title, bool(params), tasks))
    return groups


def _opened(data: RunConfig, methods: Sequence[str], on_extract: OnProgress | None) -> tuple[Problem, Answers]:
    """The data of a row, with answers."""
    problem, answers = open_problem(data, on_extract=on_extract, methods=methods)
    if answers is None or not answers.known.any():
        raise PrenError("no-answers", f"{data.data} has no answers, which a comparison needs: add answers.csv.")
    check_answers(answers, problem.classes, problem.setting)
    return problem, answers


def _titles(data: Sequence[RunConfig]) -> list[str]:
    """Titles of the data in tables: short, unless two short ones are equal."""
    parts = [[Path(d.data).stem if d.is_path() else d.data, d.split, d.options.get("signatures")] for d in data]
    short = [" ".join(str(part) for part in named if part) for named in parts]
    return [d.data if short.count(title) > 1 else title for title, d in zip(short, data, strict=True)]
