"""Open a run that was made before: its result, its model with its data, its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from pren.foundation.errors import PrenError
from pren.images.photographs import check_same_facts
from pren.label.outcome import Outcome
from pren.label.predictions import Predictions, read_csv
from pren.label.result import RunPaths, RunResult, RunState
from pren.runs.opening import open_problem
from pren.store.config import RunConfig
from pren.store.folder import PREDICTIONS, Figures, RunFolder


class Moved(NamedTuple):
    """Where data, the folder of a data set, weights of a frozen backbone or the cache are now; None if not moved."""

    data: str | None = None
    root: str | None = None
    weights: str | None = None
    cache: str | None = None


def load_state(folder: str | Path) -> RunState:
    """Read a run folder: a `RunResult` if the run is finished."""
    run = RunFolder.open(folder)
    if run.finished():
        return load_result(run)
    return RunState(run.config(), run.history(), run.rounds_by_answers(), RunPaths(run.path))


def load_result(folder: str | Path | RunFolder, *, with_data: bool = False, **moved: str | None) -> RunResult:
    """Read the result of a finished run.

    Args:
        folder: The run folder.
        with_data: Whether to open the data, too, and label the pool again.
        **moved: Where `data`, `root`, `weights` or `cache` are now, if they have moved; see `Moved`.

    Raises:
        PrenError: If there is no finished run, its files are damaged, or the data have changed.
    """
    run = folder if isinstance(folder, RunFolder) else RunFolder.open(folder)
    if not run.finished():
        raise PrenError("run-unfinished", f"{run.path} is not finished: go on with 'pren fit --resume {run.path}'.")
    where = Moved(**moved)
    outcome = open_run(run, where) if with_data else None
    method = run.model() if outcome is None else outcome.method
    labels = Predictions.of_rows(read_csv(run.path / PREDICTIONS), method.classes_)
    config = run.config()
    if where.data is not None:
        config = config.model_copy(update={"data": where.data})  # where labels that a person gives are, too
    return RunResult.of_folder(run, config, labels, method, outcome)


def evaluate_run(folder: RunFolder, **moved: str | None) -> Figures:
    """Label the pool of a run again and compare with the answers; `moved` is as for `load_result`.

    Raises:
        PrenError: If there are no answers, or the data have changed.
    """
    found = open_run(folder, Moved(**moved)).figures()
    if found is None:
        raise PrenError(
            "no-answers",
            f"The data of {folder.path} have no answers: add classes of inputs of the pool (in a folder of "
            "photographs: answers.csv).",
        )
    return found


def open_run(folder: RunFolder, moved: Moved) -> Outcome:
    """The model of a run, its data, and its labels of the pool.

    Raises:
        PrenError: If the data have changed.
    """
    config = folder.config()
    update: dict[str, Any] = {key: value for key, value in moved._asdict().items() if value is not None}
    if "weights" in update:
        if config.extractor is None:
            raise PrenError("option-conflict", f"The model in {folder.path} contains its weights: omit --weights.")
        update["extractor"] = config.extractor.model_copy(update={"weights": update.pop("weights")})
    model = folder.model()
    problem, answers = open_problem(config.model_copy(update=update), fitted=model)
    if problem.extractor is not None and model.extractor_ is not None:
        check_same_facts(problem.extractor["facts"], model.extractor_["facts"])
    check_same_data(folder, config, problem.fingerprint(), problem.source)
    return Outcome.of(model, problem, answers, folder.trust())


def check_same_data(folder: RunFolder, recorded: RunConfig, hashes: dict[str, str], source: dict[str, Any]) -> None:
    """Raise a `PrenError` that names the changed files if data (their hashes and source) are not those of a run."""
    if recorded.record.get("hashes") == hashes:
        return
    known, found = (of.get("files", {}) for of in (recorded.record.get("source", {}), source))
    changed = [
        f"{file} {'is new' if file not in known else 'is not used any more' if file not in found else 'is another'}"
        for file in sorted({*known, *found})
        if known.get(file) != found.get(file)
    ]
    what = "; ".join(changed) or "labelled photographs or the pool are others"
    raise PrenError(
        "data-changed",
        f"The data have changed since the run in {folder.path} ({what}). Undo that, or fit again with another --out.",
    )
