"""The files of a run.

config.yaml         what was asked, with every parameter, and a record: versions, hashes, the command
history.csv         round, loss, pseudo-labels, how many of them are new
timings.csv         seconds per round (apart from the history, which is the same for the same seed)
pseudo_labels.csv   the last round's: file (or place in the pool), class
predictions.csv     the table of labels: file (or place in the pool), class, score, confidence, familiarity, runner-up
trust.safetensors   what rehearsals tell: forecast, confidence
signatures.json     how the signatures were made, the encoder and all texts among it, to describe one more class
metrics.json        where the answers are known
model.safetensors   the model to keep
report.html         the same for people, which 'pren report' makes anew at any time; it has no checksum
manifest.json       the checksums of all but the report; written last, so where it is, the run is finished
checkpoint/         the last finished round, to resume from, with a manifest of its own
.lock               who is writing, while somebody is
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import Field

from pren.describe import RECIPE_FILE
from pren.evaluation import Metrics, Reliability
from pren.foundation.errors import PrenError, reason
from pren.foundation.files import (
    WRITING,
    check_links,
    copy,
    make_folder,
    read_bytes,
    remove,
    write_bytes,
    write_csv,
    write_json,
)
from pren.foundation.lock import LOCK, Lock
from pren.methods.base import Method
from pren.methods.registry import create
from pren.methods.storage import MODEL_FILE, load_model, save_model
from pren.runs.config import MOST_BYTES, RunConfig, parse_config, read_yaml
from pren.runs.store.checkpoint import (
    Checkpoint,
    State,
    latest_checkpoint,
    read_checkpoint,
    read_state,
    save_checkpoint,
)
from pren.runs.store.manifest import MANIFEST, checksum_holds, verify, with_checksum, write_manifest
from pren.trust import TRUST_FILE, Trust

CONFIG_FILE = "config.yaml"
PREDICTIONS = "predictions.csv"
METRICS = "metrics.json"
REPORT_FILE = "report.html"
RESULTS = (CONFIG_FILE, MODEL_FILE, PREDICTIONS)
ALSO = (
    "history.csv",
    "timings.csv",
    "pseudo_labels.csv",
    METRICS,
    TRUST_FILE,
    RECIPE_FILE,
)  # where the method and the data have them


class Figures(Metrics):
    """How good the labels of a run are.

    Attributes:
        hashes: Of the data and the split.
        rule: The rule for GZSL that the method has, if it has one.
        reliability: Whether confidence can be believed; None if it is not known.
    """

    hashes: dict[str, str] = Field(default_factory=dict)
    rule: str | None = None
    reliability: Reliability | None = None


class RunFolder:
    """Reads and writes a run; every write is whole or not at all.

    `create` and `hold` keep the folder from other writers until `close`.

    Attributes:
        path: Where it is.
        names: Of the inputs of the pool, in tables; None if they have none. Known to whoever has the data.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.names: Sequence[str] | None = None
        self._made = False  # whether the folder itself is ours, and not the user's
        self._lock: Lock | None = None
        self._run = ""  # what the checksums say which run their files belong to

    @classmethod
    def create(cls, path: str | Path, config: RunConfig) -> RunFolder:
        """Start a run in a folder that is new or empty, and hold it."""
        folder = cls(path)
        folder._made = not folder.path.exists()
        folder.check_is_free()
        make_folder(folder.path)
        folder._lock = Lock(folder.path, str(config.record.get("command", "")))
        try:
            folder.check_is_free()  # nor has anybody written into it before we held it
            with folder._writing():
                write_bytes(folder.path / CONFIG_FILE, with_checksum(config.to_yaml().encode()))
        except BaseException:
            try:
                folder.discard_if_nothing_done()
            finally:
                folder.close()
            raise
        folder._run = config.record["id"]
        return folder

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Take an existing run to read from; a `PrenError` if there is none, or it is not what was written."""
        folder = cls(path)
        if not folder.holds_run():
            raise PrenError("not-a-run", f"{path} is not a run folder: it has no config.yaml. 'pren fit' makes one.")
        check_links(folder.path)
        folder._run = str(folder.config().record.get("id"))
        if folder.finished():
            try:
                verify(folder.path, RESULTS, folder._run)
            except PrenError as error:
                raise PrenError(
                    error.code,
                    f"{error} Put back what was there; or remove {MANIFEST}, and 'pren fit --resume' writes the "
                    "results again from the last checkpoint.",
                ) from error
        return folder

    def hold(self, command: str = "") -> None:
        """Take the run to go on with, unless it is finished."""
        if not self.finished():
            self._lock = Lock(self.path, command)

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
            if self._made:
                with suppress(OSError):  # it holds something
                    self.path.rmdir()

    def check_is_free(self) -> None:
        """Raise a `PrenError` unless a run can start here; a folder that is not there is made later."""
        if self.holds_run():
            raise PrenError(
                "run-exists",
                f"{self.path} already holds a run: 'pren fit --resume {self.path}' goes on, or choose another --out.",
            )
        parts = self.path.iterdir() if self.path.is_dir() else ()
        if any(part.name != LOCK and not part.name.startswith(WRITING) for part in parts):
            raise PrenError("out-taken", f"{self.path} is not empty: choose another folder with --out.")

    def holds_run(self) -> bool:
        """Whether a run was ever started here."""
        return (self.path / CONFIG_FILE).is_file()

    def finished(self) -> bool:
        """Whether the run came to its end."""
        return os.path.lexists(self.path / MANIFEST)  # if it is no file, `verify` says so

    def discard_if_nothing_done(self) -> None:
        """Make room again after a run that failed before its first round."""
        if self._lock is None or not self._lock.held():  # the folder is gone, or somebody else's
            return
        with suppress(OSError):
            if {part.name for part in self.path.iterdir()} <= {CONFIG_FILE, LOCK}:
                (self.path / CONFIG_FILE).unlink(missing_ok=True)

    def config(self) -> RunConfig:
        """What the run was asked to do."""
        path = self.path / CONFIG_FILE
        content = read_bytes(path, MOST_BYTES)
        if not checksum_holds(content):
            raise PrenError(
                "damaged", f"{path} is damaged or was changed: its checksum differs. Put back what was there."
            )
        mapping = read_yaml(path, content)
        try:
            json.dumps(mapping, allow_nan=False)
        except (TypeError, ValueError) as error:  # YAML has dates, sets and more, and we write none
            raise PrenError(
                "damaged", f"{path} is damaged: it holds what pren never writes there ({error})."
            ) from error
        return parse_config(mapping, str(path))

    def model(self) -> Method:
        """The model of the last finished round."""
        # While a run is not finished, only a checkpoint tells whose the model in the folder itself is.
        checkpoint = None if self.finished() else latest_checkpoint(self._checkpoints)
        if checkpoint is not None:
            read_state(self._checkpoints, self._run)
        method, config = load_model(checkpoint or self.path), self.config()
        wanted = create(config.method, **config.params)
        if type(method) is not type(wanted) or method.get_params() != wanted.get_params():
            raise PrenError(
                "model-other", f"{self.path / MODEL_FILE} is the model of another run: put back the right one."
            )
        return method

    def figures(self) -> Figures | None:
        """The content of metrics.json, None if there is none."""
        path = self.path / METRICS
        if not path.is_file():
            return None
        try:
            return Figures.model_validate_json(read_bytes(path, MOST_BYTES * 64))
        except (ValueError, RecursionError) as error:
            raise PrenError(
                "damaged", f"{path} is damaged ('pren evaluate' computes it again): {reason(error)}"
            ) from error

    def history(self) -> list[dict[str, Any]]:
        """What each finished round did; empty for methods that have none."""
        state = read_state(self._checkpoints, self._run)
        return [] if state is None else state.history

    def rounds_by_answers(self) -> list[dict[str, float]]:
        """What the answers say of each finished round: see `pren.evaluation.round_figures`."""
        state = read_state(self._checkpoints, self._run)
        return [] if state is None else state.by_answers

    def checkpoint(self) -> Checkpoint | None:
        """The last finished round, None if there is none yet."""
        return read_checkpoint(self._checkpoints, self._run)

    def save_round(self, method: Method, state: State) -> None:
        """Keep the model, the state of training and the history after a round."""
        current = self._checkpoints / f"round-{state.history[-1]['round']:04d}"
        with self._writing():
            save_checkpoint(current, method, state, self._run)
        self.publish(current, state)

    def publish(self, current: Path, state: State) -> None:
        """Show in the folder itself what its checkpoint holds, and remove all that is older."""
        with self._writing():
            copy(current / MODEL_FILE, self.path / MODEL_FILE)
            columns = list(state.history[-1])
            write_csv(
                self.path / "history.csv", columns, ([row.get(name) for name in columns] for row in state.history)
            )
            write_csv(self.path / "timings.csv", ("round", "seconds"), enumerate(state.timings))
            named = ((name if self.names is None else self.names[name], label) for name, label in state.pseudo_labels)
            write_csv(self.path / "pseudo_labels.csv", ("input", "class"), sorted(named))
            for old in {*current.parent.iterdir(), *self.path.glob(f"{WRITING}*")} - {current}:
                remove(old)

    def save_model(self, method: Method, trust: Trust | None) -> None:
        """Keep the model, which may have a chosen γ now, and how far its labels can be trusted."""
        with self._writing():
            save_model(method, self.path)
            if trust is not None:
                trust.save(self.path)

    def trust(self) -> Trust | None:
        """How far labels can be trusted; None if that is not known."""
        return Trust.load(self.path)

    def save_results(
        self, write_labels: Callable[[Path], None], figures: Figures | None, recipe: dict[str, Any]
    ) -> None:
        """Write labels, figures and `Problem.recipe`, and the checksums of everything: the run is finished."""
        with self._writing():
            if recipe:
                write_json(self.path / RECIPE_FILE, recipe)
            if figures is not None:
                write_json(self.path / METRICS, figures.to_dict())
            write_labels(self.path / PREDICTIONS)
            write_manifest(self.path, result_files(self.path), self._run)

    @property
    def _checkpoints(self) -> Path:
        return self.path / "checkpoint"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Write in the folder while it is ours; say what to do if that fails."""
        self.check_held()
        try:
            yield
        except (PrenError, OSError) as error:
            self.check_held()
            what = str(error)
            if isinstance(error, OSError):
                what = f"Cannot write {error.filename or self.path}: {error.strerror or error}."
            raise PrenError(
                "write-failed",
                f"{what} Make room there, or copy the run folder to where there is room; then go on with 'pren fit "
                "--resume FOLDER', or start again if no round was finished yet.",
            ) from error

    def check_held(self) -> None:
        """Raise a `PrenError` if the folder is no longer ours to write in."""
        if self._lock is None or not self._lock.held():
            raise PrenError(
                "run-lost",
                f"{self.path} was removed, renamed or taken over while the run was going on. If it was renamed, go on "
                "with 'pren fit --resume' and its new name; else start again.",
            )


def result_files(folder: Path) -> list[str]:
    """The files that the manifest of a finished run lists."""
    return [*RESULTS, *(name for name in ALSO if (folder / name).is_file())]
