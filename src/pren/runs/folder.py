"""The files of a run.

config.yaml         what was asked, with every parameter, and a record: versions, hashes, the command
history.csv         round, loss, pseudo-labels, how many of them are new
timings.csv         seconds per round (apart from the history, which is the same for the same seed)
pseudo_labels.csv   the last round's: place in the pool, class
predictions.csv     place in the pool, class, score
metrics.json        where the answers are known
model.safetensors   the model to keep
checkpoint/         the last finished round, to resume from
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from pren.core.progressive import Round
from pren.errors import PrenError
from pren.evaluation import Metrics
from pren.methods.base import Method
from pren.methods.storage import MODEL_FILE, load_model, save_model
from pren.problem import ClassTable, candidates_of
from pren.runs.config import RunConfig, parse_config, read_yaml
from pren.runs.files import link, new_folder, write_bytes, write_csv, write_json

HISTORY = ("round", "loss", "pseudo_labels", "changed")
TRAINING_FILE = "training.safetensors"
STATE_FILE = "state.json"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run after one of its rounds.

    Attributes:
        method: The model.
        training: What else training needs.
        history: What each round did, by the names of `HISTORY`.
        timings: Seconds per round.
    """

    method: Method
    training: dict[str, Tensor]
    history: list[dict[str, Any]]
    timings: list[float]


class RunFolder:
    """Reads and writes a run; every write is whole or not at all."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | Path, config: RunConfig) -> RunFolder:
        """Start a run in a folder that is new or empty."""
        folder = cls(path)
        if folder.holds_run():
            raise PrenError(
                f"{path} already holds a run: continue it with --resume, or choose another folder with --out."
            )
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
            if any(folder.path.iterdir()):
                raise PrenError(f"{path} is not empty: choose another folder with --out.")
        except OSError as error:
            raise PrenError(f"Cannot make the folder {path}: {error.strerror or error}.") from error
        write_bytes(folder.path / "config.yaml", config.to_yaml().encode())
        return folder

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Take an existing run."""
        folder = cls(path)
        if not folder.holds_run():
            raise PrenError(f"{path} is not a run folder: it has no config.yaml. 'pren fit' makes one.")
        return folder

    def holds_run(self) -> bool:
        """Whether a run was ever started here."""
        return (self.path / "config.yaml").is_file()

    def finished(self) -> bool:
        """Whether the run came to its end; predictions are the last thing written."""
        return (self.path / "predictions.csv").is_file()

    def discard_if_nothing_done(self) -> None:
        """Make room again after a run that failed before its first round."""
        if {part.name for part in self.path.iterdir()} == {"config.yaml"}:
            (self.path / "config.yaml").unlink()
            self.path.rmdir()

    def config(self) -> RunConfig:
        """What the run was asked to do."""
        path = self.path / "config.yaml"
        return parse_config(read_yaml(path), str(path))

    def model(self) -> Method:
        """The model of the last finished round."""
        return load_model(self.path)

    def metrics(self) -> dict[str, Any] | None:
        """The content of metrics.json, None if there is none."""
        path = self.path / "metrics.json"
        if not path.is_file():
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PrenError(f"{path} is damaged ('pren evaluate' makes the figures anew): {error}") from error
        if not isinstance(content, dict):
            raise PrenError(f"{path} is damaged ('pren evaluate' makes the figures anew).")
        return content

    def history(self) -> list[dict[str, Any]]:
        """What each finished round did; empty for methods that have none."""
        latest = self._latest()
        if latest is None:
            return []
        history, _ = _read_state(latest)
        return history

    def save_round(self, method: Method, history: list[dict[str, Any]], timings: list[float], last: Round) -> None:
        """Keep the model, the state of training and the history after a round."""
        checkpoints = self.path / "checkpoint"
        current = checkpoints / f"round-{last.number:04d}"
        with new_folder(current) as writing:
            save_model(method, writing)
            training = {key: value.cpu().contiguous() for key, value in method.training_state().items()}
            save_file(training, writing / TRAINING_FILE)
            write_json(writing / STATE_FILE, {"history": history, "timings": timings})
        link(current / MODEL_FILE, self.path / MODEL_FILE)
        write_csv(self.path / "history.csv", HISTORY, ([row[name] for name in HISTORY] for row in history))
        write_csv(self.path / "timings.csv", ("round", "seconds"), enumerate(timings))
        table = method.classes_
        rows = zip(last.pseudo.images.tolist(), (table.names[c] for c in last.pseudo.labels), strict=True)
        write_csv(self.path / "pseudo_labels.csv", ("image", "class"), rows)
        for old in checkpoints.iterdir():
            if old != current:
                shutil.rmtree(old, ignore_errors=True)

    def save_model(self, method: Method) -> None:
        """Keep the model of a method that has no rounds."""
        with new_folder(self.path / "checkpoint") as writing:
            save_model(method, writing)
        link(self.path / "checkpoint" / MODEL_FILE, self.path / MODEL_FILE)
        shutil.rmtree(self.path / "checkpoint")

    def save_results(
        self, scores: np.ndarray[Any, Any], method: Method, metrics: Metrics | None, facts: dict[str, Any]
    ) -> None:
        """Write metrics and predictions; with them the run is finished."""
        if metrics is not None:
            write_json(self.path / "metrics.json", {**facts, **metrics.to_dict()})
        table = method.classes_
        best, values = top_classes(scores, table, candidates_of(method.setting_), 1)
        rows = (
            (i, table.names[c], repr(float(s))) for i, (c, s) in enumerate(zip(best[:, 0], values[:, 0], strict=True))
        )
        write_csv(self.path / "predictions.csv", ("image", "class", "score"), rows)

    def checkpoint(self) -> Checkpoint | None:
        """The last finished round, None if there is none yet."""
        latest = self._latest()
        if latest is None:
            return None
        try:
            training = load_file(latest / TRAINING_FILE)
        except (OSError, SafetensorError) as error:
            raise PrenError(f"The checkpoint {latest} is damaged and cannot be resumed from: {error}") from error
        return Checkpoint(load_model(latest), training, *_read_state(latest))

    def _latest(self) -> Path | None:
        rounds = sorted((self.path / "checkpoint").glob("round-*"))
        return rounds[-1] if rounds else None


def _read_state(checkpoint: Path) -> tuple[list[dict[str, Any]], list[float]]:
    try:
        state = json.loads((checkpoint / STATE_FILE).read_text(encoding="utf-8"))
        history = [{name: row[name] for name in HISTORY} for row in state["history"]]
        return history, [float(seconds) for seconds in state["timings"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PrenError(f"The checkpoint {checkpoint} is damaged: {error}") from error


def top_classes(
    scores: np.ndarray[Any, Any], table: ClassTable, among: str, top: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The best candidate classes of every image, best first.

    Returns:
        (N, top) rows of the class table and (N, top) their scores; fewer columns if there are fewer candidates.
    """
    candidates = np.flatnonzero(table.among(among))
    order = np.argsort(-scores[:, candidates], axis=1, kind="stable")[:, :top]
    return candidates[order], np.take_along_axis(scores[:, candidates], order, axis=1)
