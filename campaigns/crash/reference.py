"""Uninterrupted runs, whose results the others must have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from campaigns.crash.comparison import differences
from campaigns.crash.processes import Case, process
from pren.core.progressive import Round
from pren.foundation.files import sha256
from pren.methods.base import Method
from pren.methods.storage import MODEL_FILE
from pren.runs.run import Progress, run_config
from pren.store.config import RunConfig


@dataclass(frozen=True)
class Lengths:
    """How long the parts of an uninterrupted run take, in seconds, and how often it is seen to write.

    Attributes:
        start: Until everything is imported.
        loading: From there until there is a config.yaml.
        rounds: From there until the last round's checkpoint is there.
        end: From there until it is finished.
        sightings: How often it was seen to write, as `Process` counts it.
    """

    start: float
    loading: float
    rounds: float
    end: float
    sightings: Mapping[str, int]


@dataclass(frozen=True)
class Reference:
    """An uninterrupted run.

    Attributes:
        case: What it trained.
        run: Its folder.
        models: The SHA-256 of its model after each round.
        lengths: How long its parts took.
    """

    case: Case
    run: Path
    models: tuple[str, ...]
    lengths: Lengths


def hash_models(case: Case, run: Path) -> tuple[str, ...]:
    """Make the run in this process, to get the model of every round.

    Returns:
        The SHA-256 of the model after each round.
    """
    models: list[str] = []

    def on_round(done: Round, method: Method) -> None:
        models.append(sha256(run / MODEL_FILE))

    settings = {"data": case.data, "method": "pren", "setting": case.setting, "params": case.params}
    config = RunConfig.model_validate(settings)
    with _one_thread():
        run_config(config, run, report=False, progress=Progress(on_round))
    return tuple(models)


def measure(case: Case, folder: Path, models: tuple[str, ...], imports: float) -> Reference:
    """Make the run in its own process, and check that it ends like `hash_models` in ``folder/here``.

    What came of that one, and how long imports take, is given.

    Raises:
        RuntimeError: If it does not: then there is nothing that an interrupted run could be compared with.
    """
    run = folder / "there"
    with process(case, run, folder / "log.txt", resume=False) as watched:
        watched.wait()
        code = watched.kill()
    if code != 0:
        raise RuntimeError(f"The reference run of {case.data} ({case.setting}) failed: {watched.last_words()}")
    different = differences(folder / "here", run)
    if different:
        raise RuntimeError(f"Two uninterrupted runs of {case.data} ({case.setting}) differ: {'; '.join(different)}")
    words, config, last, finished = (watched.seen[key] for key in ("words", "config", "last", "finished"))
    lengths = Lengths(imports, config - words, last - config, finished - last, watched.sightings)
    return Reference(case, run, models, lengths)


def seconds_of_imports(case: Case, folder: Path) -> float:
    """How long a cold process takes until everything is imported."""
    with process(case, folder / "cold", folder / "cold.txt", resume=False, cold=True) as watched:
        watched.wait_until(lambda: "words" in watched.seen)
        return watched.seen["words"] - watched.started


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
