"""Checkpoints: a run after a round, as a folder that appears in one step."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from pren.core.progressive import Round
from pren.foundation.errors import PrenError
from pren.foundation.files import new_folder, read_bytes, write_json, write_tensors
from pren.methods.base import Method
from pren.methods.network import ROUND_NUMBER
from pren.methods.storage import MODEL_FILE, load_model, save_model
from pren.store.manifest import verify, write_manifest

TRAINING_FILE = "training.safetensors"
STATE_FILE = "state.json"
FILES = (MODEL_FILE, TRAINING_FILE, STATE_FILE)
NAME = re.compile(r"round-(\d{4,9})")
MOST_BYTES = 1 << 30


class State(BaseModel):
    """A checkpoint without weights.

    Attributes:
        history: Of each round: its number under "round", then its figures.
        timings: Seconds per round.
        pseudo_labels: Of the last round: place in the pool, class name.
        by_answers: Figures of each round by the answers; separate, as the history is the same without answers.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    history: list[dict[str, int | float | None]]
    timings: list[float]
    pseudo_labels: list[tuple[int, str]]
    by_answers: list[dict[str, float]] = []

    def after(self, done: Round, seconds: float, classes: Sequence[str], known: dict[str, float]) -> State:
        """The same with one more round; a figure that is NaN becomes None."""
        figures = {name: None if math.isnan(value) else value for name, value in done.figures.items()}
        pseudo: list[tuple[int, str]] = []
        if done.pseudo is not None:
            names = [classes[label] for label in done.pseudo.labels]
            pseudo = list(zip(done.pseudo.images.tolist(), names, strict=True))
        unknown: list[dict[str, float]] = [{}] * (len(self.history) - len(self.by_answers))  # of an older version
        history = [*self.history, {"round": done.number, **figures}]
        return State(
            history=history,
            timings=[*self.timings, round(seconds, 3)],
            pseudo_labels=pseudo,
            by_answers=[*self.by_answers, *unknown, known],
        )


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run after a round, with the tensors that training needs beside the model."""

    path: Path
    method: Method
    training: dict[str, Tensor]
    state: State


def save_checkpoint(current: Path, method: Method, state: State, run: str) -> None:
    """Write a checkpoint to a new folder."""
    current.parent.mkdir(exist_ok=True)
    with new_folder(current) as writing:
        save_model(method, writing)
        write_tensors(writing / TRAINING_FILE, method.training_state())
        write_json(writing / STATE_FILE, state.model_dump())
        write_manifest(writing, FILES, run)


def latest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint of the last finished round, None if there is none."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise PrenError("damaged", f"{folder} is not a folder: restore it.")
    rounds = {int(found[1]): path for path in folder.glob("round-*") if (found := NAME.fullmatch(path.name))}
    return rounds[max(rounds)] if rounds else None


def read_state(folder: Path, run: str) -> State | None:
    """The state of the latest checkpoint; a `PrenError` if it is damaged or belongs to another run."""
    latest = latest_checkpoint(folder)
    try:
        return None if latest is None else _verified_state(latest, run)
    except PrenError:
        # A running run may have replaced it by a newer one.
        if latest_checkpoint(folder) == latest:
            raise
    return read_state(folder, run)


def read_checkpoint(folder: Path, run: str) -> Checkpoint | None:
    """The latest checkpoint, None if there is none; raises as `read_state`."""
    latest = latest_checkpoint(folder)
    if latest is None:
        return None
    state = _verified_state(latest, run)
    try:
        training = load_file(latest / TRAINING_FILE)
        _check_training(training, state)
    except (OSError, SafetensorError, ValueError) as error:
        raise PrenError("damaged", f"The checkpoint {latest} is damaged: {error}. Start a new run.") from error
    return Checkpoint(latest, load_model(latest), training, state)


def _check_training(training: dict[str, Tensor], state: State) -> None:
    """Refuse a training state that is empty, or of another round than the last of the history."""
    if not training:
        raise ValueError(f"{TRAINING_FILE} is empty")
    number, last = training.get(ROUND_NUMBER), state.history[-1]["round"]
    if number is not None and (number.numel() != 1 or number.item() != last):
        raise ValueError(f"{TRAINING_FILE} is not of round {last}")


def _verified_state(checkpoint: Path, run: str) -> State:
    try:
        verify(checkpoint, FILES, run)
        state = State.model_validate_json(read_bytes(checkpoint / STATE_FILE, MOST_BYTES))
        rounds = [row.get("round") for row in state.history]
        last = int(checkpoint.name.removeprefix("round-"))
        if rounds != list(range(last - len(rounds) + 1, last + 1)) or rounds[:1] not in ([0], [1]):
            raise ValueError(f"its history has other rounds: {rounds}")
    except ValueError as error:
        raise PrenError("damaged", f"The checkpoint {checkpoint} is damaged: {error}") from error
    except PrenError as error:
        raise PrenError(error.code, f"The checkpoint {checkpoint} cannot be used. {error}") from error
    return state
