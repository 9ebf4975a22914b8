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
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from pren.core.progressive import Round
from pren.errors import PrenError
from pren.evaluation import Metrics
from pren.files import WRITING, link, new_folder, write_bytes, write_csv, write_json
from pren.methods.base import Method
from pren.methods.storage import MODEL_FILE, load_model, save_model
from pren.problem import ClassTable, Setting, candidates_of
from pren.runs.config import RunConfig, parse_config, read_yaml

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
        self.made = False  # whether the folder itself is ours, and not the user's

    @classmethod
    def create(cls, path: str | Path, config: RunConfig) -> RunFolder:
        """Start a run in a folder that is new or empty."""
        folder = cls(path)
        folder.made = not folder.path.exists()
        if folder.holds_run():
            raise PrenError(
                f"{path} already holds a run: continue it with --resume, or choose another folder with --out."
            )
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
            if any(not part.name.startswith(WRITING) for part in folder.path.iterdir()):
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
            if self.made:
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
            Metrics.model_validate({name: content[name] for name in Metrics.model_fields})
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise PrenError(f"{path} is damaged ('pren evaluate' shows the figures anew): {error}") from error
        result: dict[str, Any] = content
        return result

    def history(self) -> list[dict[str, Any]]:
        """What each finished round did; empty for methods that have none."""
        latest = self._latest()
        if latest is None:
            return []
        return _read_state(latest).history

    def save_round(self, method: Method, history: list[dict[str, Any]], timings: list[float], last: Round) -> None:
        """Keep the model, the state of training and the history after a round."""
        current = self.path / "checkpoint" / f"round-{last.number:04d}"
        names = [method.classes_.names[label] for label in last.pseudo.labels]
        pseudo = list(zip(last.pseudo.images.tolist(), names, strict=True))
        with new_folder(current) as writing:
            save_model(method, writing)
            training = {key: value.cpu().contiguous() for key, value in method.training_state().items()}
            save_file(training, writing / TRAINING_FILE)
            state = {"history": history, "timings": timings, "pseudo_labels": pseudo}
            write_json(writing / STATE_FILE, state)
        self.publish()
        for old in current.parent.iterdir():
            if old != current:
                shutil.rmtree(old, ignore_errors=True)

    def publish(self) -> None:
        """Show what the last checkpoint holds in the folder itself, as a killed run may not have done any more."""
        latest = self._latest()
        if latest is None:
            return
        state = _read_state(latest)
        link(latest / MODEL_FILE, self.path / MODEL_FILE)
        write_csv(self.path / "history.csv", HISTORY, ([row[name] for name in HISTORY] for row in state.history))
        write_csv(self.path / "timings.csv", ("round", "seconds"), enumerate(state.timings))
        write_csv(self.path / "pseudo_labels.csv", ("image", "class"), state.pseudo_labels)

    def save_model(self, method: Method) -> None:
        """Keep the model of a method that has no rounds."""
        save_model(method, self.path)

    def save_results(
        self,
        scores: NDArray[np.float64],
        classes: ClassTable,
        setting: Setting,
        metrics: Metrics | None,
        facts: dict[str, Any],
    ) -> None:
        """Write metrics and predictions; with them the run is finished."""
        if metrics is not None:
            write_json(self.path / "metrics.json", {**facts, **metrics.to_dict()})
        best, values = top_classes(scores, classes, candidates_of(setting), 1)
        rows = ((i, classes.names[best[i, 0]], float(values[i, 0])) for i in range(len(scores)))
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
        state = _read_state(latest)
        return Checkpoint(load_model(latest), training, state.history, state.timings)

    def _latest(self) -> Path | None:
        rounds = sorted((self.path / "checkpoint").glob("round-*"))
        return rounds[-1] if rounds else None


class _State(BaseModel):
    model_config = ConfigDict(extra="forbid")

    history: list[dict[str, Any]]
    timings: list[float]
    pseudo_labels: list[tuple[int, str]]


def _read_state(checkpoint: Path) -> _State:
    try:
        state = _State.model_validate_json((checkpoint / STATE_FILE).read_bytes())
        if any(set(row) != set(HISTORY) for row in state.history):
            raise ValueError(f"a row of the history is not made of {', '.join(HISTORY)}")
    except (OSError, ValueError) as error:
        raise PrenError(f"The checkpoint {checkpoint} is damaged: {error}") from error
    return state


def top_classes(
    scores: NDArray[np.float64], table: ClassTable, among: str, top: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The best candidate classes of every image, best first.

    Returns:
        (N, top) rows of the class table and (N, top) their scores; fewer columns if there are fewer candidates.
    """
    candidates = np.flatnonzero(table.among(among))
    order = np.argsort(-scores[:, candidates], axis=1, kind="stable")[:, :top]
    return candidates[order], np.take_along_axis(scores[:, candidates], order, axis=1)
