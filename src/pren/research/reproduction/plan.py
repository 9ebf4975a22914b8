"""The cells that a reproduction needs, and the data that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pren.foundation.errors import PrenError
from pren.methods.registry import METHODS
from pren.problem import Setting
from pren.research.cells import Result, Task, data_hashes, make_task
from pren.research.parameters import Parameters
from pren.research.reproduction.paper import Column
from pren.research.summary import Spread
from pren.runs.opening import open_problem
from pren.store.config import RunConfig

EMBEDDED: Column = ("numbers-features", "")
# Takes ten minutes; the paper has 50 heads and 20 rounds.
QUICK = {"heads": 10, "rounds": 3}
TITLES = {"cub": "CUB", "awa2": "AWA2", "sun": "SUN", "sun10": "SUN10", "numbers-features": "numbers"}
Results = Mapping[str, Result]  # by the key of a cell


@dataclass(frozen=True)
class Plan:
    """How to reproduce.

    Attributes:
        root: The folder with the benchmarks; None for `PREN_DATA`.
        features: The features file of the benchmarks; None for the usual one.
        seeds: How many; methods without randomness run once.
        quick: Whether to train fewer heads for fewer rounds; every table then says so.
        paper_protocol: In GZSL, test a random fifth of the seen inputs, as the paper does, not the list of the split;
            and average over inputs, not classes.
        parameters: Of the rivals; others are as the data recommend, or by default.
    """

    root: str | None = None
    features: str | None = None
    seeds: int = 3
    quick: bool = False
    paper_protocol: bool = False
    parameters: Parameters = field(default_factory=Parameters)

    def config(self, column: Column, setting: Setting = "zsl") -> RunConfig:
        """The data of a column."""
        data, split = column
        if column == EMBEDDED:
            return RunConfig(data=data, setting=setting)
        options = {} if self.features is None else {"features": self.features}
        if setting == "gzsl" and self.paper_protocol:
            options["seen_test"] = "random"
        return RunConfig(data=data, root=self.root, split=split, setting=setting, options=options)

    def params(self, config: RunConfig, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a configuration's method; `given` ones win."""
        entry = METHODS[config.method]
        quick = QUICK if self.quick else {}
        fixed = {key: value for key, value in {**quick, **given}.items() if key in entry.method.params}
        fixed = {key: value for key, value in fixed.items() if key not in entry.preset}
        return {**self.parameters.of(config), **fixed}


@dataclass(frozen=True)
class Wanted:
    """The cells of one entry in a table: all seeds."""

    column: Column
    method: str
    tasks: list[Task]

    def figure(self, results: Results, name: str) -> Spread | None:
        """A figure over the computed seeds; None if there are none, or all failed."""
        return Spread.of([result.figures.get(name) for result in self.done(results)])

    def by_seed(self, results: Results, name: str) -> dict[int | None, float]:
        """A figure by computed seed that did not fail; the seed of methods without randomness is None."""
        known = {task.cell.seed: results.get(task.cell.key()) for task in self.tasks}
        found = {seed: result.figures.get(name) for seed, result in known.items() if result is not None}
        return {seed: figure for seed, figure in found.items() if figure is not None}

    def done(self, results: Results) -> list[Result]:
        """The computed results."""
        return [results[task.cell.key()] for task in self.tasks if task.cell.key() in results]


@dataclass
class WantedCells:
    """Wanted cells, and why some columns have none."""

    cells: list[Wanted] = field(default_factory=list)
    missing: dict[Column, str] = field(default_factory=dict)

    def tasks(self) -> list[Task]:
        """All of them."""
        return [task for wanted in self.cells for task in wanted.tasks]

    def of(self, method: str, column: Column) -> Wanted | None:
        """The first cells of a method on a column."""
        return next((w for w in self.cells if (w.method, w.column) == (method, column)), None)

    def notes(self) -> list[str]:
        """What is missing, and where to get it."""
        columns: dict[str, list[str]] = {}
        for column, why in self.missing.items():
            columns.setdefault(why, []).append(title_of(column))
        return [f"Missing: {', '.join(titles)}. {why}" for why, titles in columns.items()]


def wish(
    plan: Plan,
    columns: Sequence[Column],
    methods: Sequence[str],
    setting: Setting = "zsl",
    settings: Sequence[Mapping[str, Any]] = ({},),
) -> WantedCells:
    """The cells of methods on every column whose data can be opened.

    Args:
        plan: How.
        columns: Of the table.
        methods: The rows of the table.
        setting: "zsl" or "gzsl".
        settings: Parameters; each makes one cell.
    """
    asked = WantedCells()
    for column in columns:
        config = plan.config(column, setting)
        try:
            problem, answers = open_problem(config)
        except PrenError as error:
            asked.missing[column] = str(error)
            continue
        if answers is None:
            asked.missing[column] = f"{config.data} has no answers."
            continue
        hashes = data_hashes(problem, answers)
        for name in methods:
            mine = config.model_copy(update={"method": name})
            seeds = list(range(plan.seeds)) if "seed" in METHODS[name].method.params else [None]
            for given in settings:
                chosen = mine.model_copy(update={"params": plan.params(mine, given)})
                asked.cells.append(Wanted(column, name, [make_task(chosen, hashes, seed) for seed in seeds]))
    return asked


def title_of(column: Column) -> str:
    """The title of a column."""
    return " ".join(dict.fromkeys(part for part in (TITLES[column[0]], column[1]) if part))
