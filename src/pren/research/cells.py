"""One cell of a comparison: a method with its parameters and seed on some data."""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from pren.evaluation import FIGURES, evaluate_scores
from pren.foundation.errors import PrenError
from pren.foundation.version import __version__
from pren.methods.params import schema
from pren.methods.registry import METHODS
from pren.problem import Answers, Problem, Setting
from pren.runs.opening import open_problem
from pren.store.config import RunConfig


class Cell(BaseModel):
    """What identifies a result. The path of the data does not count.

    Attributes:
        params: Every parameter of the method, with the seed.
        hashes: Of the data, the split and the answers.
        seed: None for methods without randomness.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    params: dict[str, Any]
    setting: Setting
    hashes: dict[str, str]
    seed: int | None
    version: str

    def file(self) -> str:
        """The name of its file."""
        return f"{self.method}-{self.key()}.json"

    def key(self) -> str:
        """A hash. Parameters at their defaults do not count, so results stay valid when pren gets new parameters."""
        content = self.model_dump(mode="json")
        defaults = schema(METHODS[self.method].method)().model_dump(mode="json")
        content["params"] = {key: value for key, value in self.params.items() if defaults.get(key, ...) != value}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


class Result(BaseModel):
    """The result of a cell.

    Attributes:
        figures: Those of the setting, as fractions.
        peak_bytes: The peak memory of the process, with its data.
        error: Why it failed; None if it did not.
        traceback: The lines of the traceback, if it failed through a defect of pren or of the method.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    figures: dict[str, float | None] = {}
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    peak_bytes: int | None = None
    error: str | None = None
    traceback: list[str] = []


class Task(BaseModel):
    """A cell, and what to load and fit for it, with the same parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cell: Cell
    config: RunConfig


def data_hashes(problem: Problem, answers: Answers) -> dict[str, str]:
    """Hashes of the data that a result depends on."""
    return {**problem.fingerprint(), "answers": hashlib.sha256(answers.labels.tobytes()).hexdigest()[:16]}


def make_task(config: RunConfig, hashes: dict[str, str], seed: int | None) -> Task:
    """The task of fitting a configuration with a seed; missing parameters are filled in."""
    given = config.params if seed is None else {**config.params, "seed": seed}
    resolved = config.model_copy(update={"params": given}).resolved().with_absolute_paths()
    params = resolved.model_dump(mode="json")["params"]
    what = {"method": config.method, "params": params, "setting": config.setting}
    cell = Cell.model_validate({**what, "hashes": hashes, "seed": seed, "version": __version__})
    return Task(cell=cell, config=resolved.model_copy(update={"params": params}))


def compute(task: Task) -> Result:
    """Fit, score the pool and evaluate, in this process."""
    problem, answers = open_problem(task.config)
    if answers is None or data_hashes(problem, answers) != task.cell.hashes:
        raise PrenError("data-changed", "The data have changed since the comparison started: start it again.")
    method = task.config.create_method()
    start = time.perf_counter()
    method.fit(problem)
    fitted = time.perf_counter()
    scores = method.scores(problem.pool)
    predicted = time.perf_counter()
    metrics = evaluate_scores(scores, answers, problem.classes, problem.setting)
    figures = {name: getattr(metrics, name) for name in FIGURES[problem.setting]}
    return Result(
        figures={**figures, **(metrics.by_images() if problem.setting == "gzsl" else {})},
        fit_seconds=round(fitted - start, 4),
        predict_seconds=round(predicted - fitted, 4),
        peak_bytes=peak_memory(),
    )


def peak_memory() -> int:
    """In bytes. On Linux a child inherits its parent's `ru_maxrss`, but not VmHWM."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if "VmHWM" in line)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
