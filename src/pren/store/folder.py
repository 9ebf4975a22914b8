"""The files of a run.

config.yaml         the settings with every parameter, and a record: versions, hashes, the command
history.csv         round, loss, pseudo-labels, how many of them are new
timings.csv         seconds per round (not in the history, which is the same for the same seed)
pseudo_labels.csv   of the last round: file (or place in the pool), class
predictions.csv     the labels: file (or place in the pool), class, score, confidence, familiarity, runner-up
trust.safetensors   results of rehearsals: forecast, confidence
signatures.json     how signatures were made, with encoder and texts, to describe one more class
metrics.json        figures by the answers, if there are any
model.safetensors   the model
report.html         an HTML page, which 'pren report' can write again; it has no checksum
manifest.json       the checksums of all but the report; written last, so it means that the run is finished
checkpoint/         the last finished round, to resume from, with its own manifest
.lock               the process that writes, while it does
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import Field

from pren.data.describe import RECIPE_FILE
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
from pren.store.checkpoint import (
    Checkpoint,
    State,
    latest_checkpoint,
    read_checkpoint,
    read_state,
    save_checkpoint,
)
from pren.store.config import MOST_BYTES, RunConfig, parse_config, read_yaml
from pren.store.manifest import MANIFEST, checksum_holds, verify, with_checksum, write_manifest
from pren.trust import TRUST_FILE, Trust

CONFIG_FILE = "config.yaml"
PREDICTIONS = "predictions.csv"
METRICS = "metrics.json"
REPORT_FILE = "report.html"
RESULTS = (CONFIG_FILE, MODEL_FILE, PREDICTIONS)
# Some methods and data have these, too.
ALSO = ("history.csv", "timings.csv", "pseudo_labels.csv", METRICS, TRUST_FILE, RECIPE_FILE)


class Figures(Metrics):
    """How good the labels of a run are.

    Attributes:
        hashes: Of the data and the split.
        rule: The method's rule for GZSL; None if it has none.
        reliability: How good confidence is; None if it is not known.
    """

    hashes: dict[str, str] = Field(default_factory=dict)
    rule: str | None = None
    reliability: Reliability | None = None


class RunFolder:
    """Reads and writes a run; every write is complete or has no effect.

    `create` and `hold` lock the folder until `close`.

    Attributes:
        path: The folder.
        names: Of the inputs of the pool, for tables; None if they have none.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.names: Sequence[str] | None = None
        self._made: list[Path] = []  # the folders that this run made: its own first
        self._lock: Lock | None = None
        self._run = ""  # the id of the run in manifests

    @classmethod
    def create(cls, path: str | Path, config: RunConfig) -> RunFolder:
        """Start a run in a new or empty folder, and lock it."""
        folder = cls(path)
        folder._made = [part for part in (folder.path, *folder.path.parents) if not part.exists()]
        folder.check_is_free()
        make_folder(folder.path)
        folder._lock = Lock(folder.path, str(config.record.get("command", "")))
        try:
            folder.check_is_free()  # another process may have written before the lock
            folder.record(config)
        except BaseException:
            try:
                folder.discard_if_nothing_done()
            finally:
                folder.close()
            raise
        return folder

    def record(self, config: RunConfig) -> None:
        """Write the configuration with its record, which is whole when the data are open."""
        with self._writing():
            write_bytes(self.path / CONFIG_FILE, with_checksum(config.to_yaml().encode()))
        self._run = config.record["id"]

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Open a run to read; a `PrenError` if there is none, or its files are damaged."""
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
                    f"{error} Restore the files; or remove {MANIFEST}, and 'pren fit --resume' writes them again.",
                ) from error
        return folder

    def hold(self, command: str = "") -> None:
        """Lock the run to go on with it, unless it is finished."""
        if not self.finished():
            self._lock = Lock(self.path, command)

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
            with suppress(OSError):  # one has files
                for part in self._made:
                    part.rmdir()

    def check_is_free(self) -> None:
        """Raise a `PrenError` unless the folder is new or empty."""
        if self.holds_run():
            raise PrenError(
                "run-exists",
                f"{self.path} already has a run: go on with 'pren fit --resume {self.path}', or choose another --out.",
            )
        parts = self.path.iterdir() if self.path.is_dir() else ()
        if any(part.name != LOCK and not part.name.startswith(WRITING) for part in parts):
            raise PrenError("out-taken", f"{self.path} is not empty: choose another folder with --out.")

    def holds_run(self) -> bool:
        """Whether a run was started here."""
        return (self.path / CONFIG_FILE).is_file()

    def finished(self) -> bool:
        """Whether the run is finished."""
        return os.path.lexists(self.path / MANIFEST)  # `verify` checks that it is a file

    def discard_if_nothing_done(self) -> None:
        """Clear the folder after a run that failed before its first round."""
        if self._lock is None or not self._lock.held():  # removed, or locked by another process
            return
        with suppress(OSError):
            if {part.name for part in self.path.iterdir()} <= {CONFIG_FILE, LOCK}:
                (self.path / CONFIG_FILE).unlink(missing_ok=True)

    def config(self) -> RunConfig:
        """The configuration of the run."""
        path = self.path / CONFIG_FILE
        content = read_bytes(path, MOST_BYTES)
        if not checksum_holds(content):
            raise PrenError("damaged", f"{path} is damaged or was changed: its checksum differs. Restore it.")
        mapping = read_yaml(path, content)
        try:
            json.dumps(mapping, allow_nan=False)
        except (TypeError, ValueError) as error:  # such as dates and sets of YAML
            raise PrenError("damaged", f"{path} is damaged: {error}. Restore it.") from error
        config = parse_config(mapping, str(path))
        if config.extractor is not None and config.extractor.engine is None:  # the run is older than engines
            config = config.model_copy(update={"extractor": config.extractor.of_record({})})
        return config

    def model(self) -> Method:
        """The model of the last finished round."""
        # Until a run is finished, only a checkpoint has a checksum of the model.
        checkpoint = None if self.finished() else latest_checkpoint(self._checkpoints)
        if checkpoint is not None:
            read_state(self._checkpoints, self._run)
        method, config = load_model(checkpoint or self.path), self.config()
        wanted = create(config.method, **config.params)
        if type(method) is not type(wanted) or method.get_params() != wanted.get_params():
            raise PrenError("model-other", f"{self.path / MODEL_FILE} is the model of another run: restore the file.")
        return method

    def figures(self) -> Figures | None:
        """The content of metrics.json, None if there is none."""
        path = self.path / METRICS
        if not path.is_file():
            return None
        try:
            return Figures.model_validate_json(read_bytes(path, MOST_BYTES * 64))
        except (ValueError, RecursionError) as error:
            raise PrenError("damaged", f"{path} is damaged ({reason(error)}): use 'pren evaluate'.") from error

    def history(self) -> list[dict[str, Any]]:
        """Figures of each finished round; empty for methods without rounds."""
        state = read_state(self._checkpoints, self._run)
        return [] if state is None else state.history

    def rounds_by_answers(self) -> list[dict[str, float]]:
        """Figures of each finished round by the answers: see `pren.evaluation.round_figures`."""
        state = read_state(self._checkpoints, self._run)
        return [] if state is None else state.by_answers

    def checkpoint(self) -> Checkpoint | None:
        """The last finished round, None if there is none."""
        return read_checkpoint(self._checkpoints, self._run)

    def save_round(self, method: Method, state: State) -> None:
        """Write a checkpoint, and the model and the history after a round."""
        current = self._checkpoints / f"round-{state.history[-1]['round']:04d}"
        with self._writing():
            save_checkpoint(current, method, state, self._run)
        self.publish(current, state)

    def publish(self, current: Path, state: State) -> None:
        """Copy a checkpoint's results to the run folder, and remove older checkpoints."""
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
        """Write the model, which may have a chosen γ now, and its trust."""
        with self._writing():
            for name in (METRICS, TRUST_FILE, RECIPE_FILE):  # if this run has none, the manifest must list none
                (self.path / name).unlink(missing_ok=True)
            save_model(method, self.path)
            if trust is not None:
                trust.save(self.path)

    def trust(self) -> Trust | None:
        """How far to trust labels; None if that is not known."""
        return Trust.load(self.path)

    def save_results(
        self, write_labels: Callable[[Path], None], figures: Figures | None, recipe: dict[str, Any]
    ) -> None:
        """Write labels, figures and `Problem.recipe`, then all checksums: the run is finished."""
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
        """Check the lock, and turn errors of writing into a `PrenError`."""
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
                f"{what} Free some space, or copy the run folder to another disk; then go on with 'pren fit --resume "
                "FOLDER', or start again if no round is finished.",
            ) from error

    def check_held(self) -> None:
        """Raise a `PrenError` if the lock is lost."""
        if self._lock is None or not self._lock.held():
            raise PrenError(
                "run-lost",
                f"{self.path} was removed, renamed or taken over during the run. If it was renamed, go on with "
                "'pren fit --resume' and its new name; else start again.",
            )


def result_files(folder: Path) -> list[str]:
    """The files that the manifest of a finished run lists."""
    return [*RESULTS, *(name for name in ALSO if (folder / name).is_file())]
