"""The result of a run, for reports, the command line and Python."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.data import how_to_rehearse
from pren.evaluation import FIGURES, TITLES
from pren.images.engines import IN_WORDS
from pren.images.look import Look
from pren.label.formats import write_labels
from pren.label.names import GroupName, group_names, names_to_check
from pren.label.outcome import Outcome
from pren.label.predictions import Predictions
from pren.label.predictor import Predictor
from pren.label.summary import LabelSummary
from pren.methods.base import Method
from pren.methods.registry import METHODS
from pren.methods.storage import MODEL_FILE
from pren.store.config import SOURCES, RunConfig
from pren.store.folder import PREDICTIONS, REPORT_FILE, Figures, RunFolder
from pren.trust import Forecast, mixed, sources

# Parameters for photographs, which have no effect on features of a frozen backbone.
OF_IMAGES = set("backbone weights geometry backbone_lr augmentation precision train_statistics".split())
NO_FORECAST = "There is no forecast of how many labels are right"


@dataclass(frozen=True)
class RunPaths:
    """Where the files of a run are."""

    folder: Path

    @property
    def labels(self) -> Path:
        """The table of labels."""
        return self.folder / PREDICTIONS

    @property
    def model(self) -> Path:
        """The model file."""
        return self.folder / MODEL_FILE

    @property
    def report(self) -> Path | None:
        """The report; None if there is none."""
        path = self.folder / REPORT_FILE
        return path if path.is_file() else None


@dataclass(frozen=True, eq=False)
class RunState:
    """A run that may not be finished.

    Attributes:
        config: The configuration with every parameter, and the record.
        history: Figures of each round; empty for methods without rounds.
        by_answers: Figures of each round by the answers, if they are known.
        paths: Where its files are; None if it has no folder.
    """

    config: RunConfig
    history: Sequence[dict[str, Any]]
    by_answers: Sequence[dict[str, float]]
    paths: RunPaths | None

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that have an effect."""
        unused = OF_IMAGES if self.config.extractor is not None else set()
        return {name: value for name, value in self.config.params.items() if name not in unused}

    @property
    def title(self) -> str:
        """The method and the data."""
        config = self.config
        data = Path(config.data).name  # also of a registered name
        split = f" {config.split}" if config.split else ""
        source = config.record.get("source", {})
        usual = source.get("name") == "folder" and (
            "chosen" in source or "," not in str(config.options.get("signatures"))
        )
        shown = {key: value for key, value in config.options.items() if not (usual and key in SOURCES)}
        options = "".join(f", {key}={value}" for key, value in shown.items())
        return f"{METHODS[config.method].title} on {data}{split} ({config.setting}{options}, {self._progress()})"

    def opening(self) -> list[str]:
        """The title, and a line about the backbone if there is one."""
        lines, asked = [self.title], self.config.extractor
        if asked is not None:
            weights = f"weights {asked.weights}" if asked.weights else "trained weights"
            how = f"{weights}, geometry {asked.geometry}{IN_WORDS.get(asked.engine, '')}"
            lines.append(f"features of {asked.backbone}, {self.way_of_backbone()} ({how})")
        return lines

    def way_of_backbone(self) -> str:
        """How the backbone of the features was trained."""
        asked, source = self.config.extractor, self.config.record.get("source")
        assert asked is not None
        if asked.until is None:
            return "frozen, with mirror images" if asked.mirrored else "frozen"
        if asked.finetune is None:
            return f"trained from stage {asked.until} on"
        done = source.get("finetuning") if isinstance(source, dict) else None
        strength = done.get("strength") if isinstance(done, dict) else None
        return "frozen, as fine-tuning does not help" if strength == 0 else f"fine-tuned with strength {strength}"

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """All but the labels, JSON-ready."""
        config = self.config
        return {
            "run": None if self.paths is None else str(self.paths.folder),
            "finished": self.finished,
            **config.model_dump(mode="json", include={"data", "split", "setting", "options", "extractor", "method"}),
            "params": {
                key: value for key, value in config.model_dump(mode="json")["params"].items() if key in self.params
            },
            "record": config.record,
            "rounds_done": self.history[-1]["round"] if self.history else None,
            "rounds": config.params.get("rounds") or config.params.get("epochs") or 0,
        }

    def _progress(self) -> str:
        if self.finished:
            return "finished"
        if not self.history:
            return "unfinished, no round done"
        unit = "rounds" if "rounds" in self.config.params else "epochs"
        of = self.config.params.get("rounds") or self.config.params.get("epochs") or 0
        return f"unfinished, {self.history[-1]['round']} of {of} {unit}"


@dataclass(frozen=True, eq=False)
class RunResult(RunState):
    """A finished run.

    Attributes:
        labels: Of the whole pool, also of unreadable files.
        forecast: How many labels should be right; None without rehearsals.
        figures: How many are right by the answers; None without answers.
        outcome: The model with its data; None if the data are missing.
        names: How sure the name of each group of labels is, the least certain first; empty if the method says nothing
            of names.
        missing: Why the data are missing.
    """

    labels: Predictions
    forecast: Forecast | None
    figures: Figures | None
    outcome: Outcome | None
    names: tuple[GroupName, ...] = ()
    missing: str = ""

    @property
    def finished(self) -> bool:
        """Always true."""
        return True

    @property
    def confidence(self) -> NDArray[np.float64]:
        """(N,) how likely each label is right, from 0 to 1; NaN where that is not known."""
        return self.labels.confidence

    @cached_property
    def summary(self) -> LabelSummary:
        """The labels in figures."""
        return LabelSummary.of(self.labels, self.config.setting)

    @property
    def noun(self) -> str:
        """What an input is: "photograph" or "input"."""
        own = self.config.record.get("source", {}).get("name") == "folder"
        return "photograph" if own or self.config.extractor is not None else "input"

    @property
    def to_check(self) -> tuple[str, ...]:
        """The classes with suspicious numbers of labels."""
        return self.summary.to_check

    @property
    def method(self) -> Method:
        """The fitted model."""
        return self.predictor.model

    @cached_property
    def predictor(self) -> Predictor:
        """The model, ready to label more photographs or arrays."""
        cache = self.config.cache
        if self.outcome is not None:
            return Predictor(self.outcome.method, cache=cache, trust=self.outcome.trust)
        assert self.paths is not None  # only a result from a folder has no data
        return Predictor.load(self.paths.folder, cache=cache)

    def write_labels(self, out: str | Path, format: str | None = None) -> None:
        """Write the labels: ``.csv``, ``.jsonl`` or ``.parquet`` by the ending, or "label-studio" or "fiftyone"."""
        write_labels(self.labels, Path(out), format)

    @property
    def rehearsing(self) -> str:
        """What to do for a forecast where there is none."""
        return how_to_rehearse(self.labels.table)

    def lines(self, every_class: bool = False) -> list[str]:
        """What to expect of the labels, and what to check."""
        lines = [f"{NO_FORECAST}: {self.rehearsing}." if self.forecast is None else self.forecast.sentence()]
        if self.forecast is not None and self.forecast.corrections is not None:
            lines.append(self.forecast.corrections.sentence())
        source = self.config.record.get("source", {})
        known = (mixed.known_of(source), sources.known_of(source), Look.known(source))
        lines += [found.sentence() for found in known if found is not None]
        if self.figures is not None:
            shown = ((TITLES[name], getattr(self.figures, name)) for name in FIGURES[self.config.setting])
            figures = ", ".join(f"{title} {100 * value:.1f}" for title, value in shown if value is not None)
            lines.append(f"By the answers: {figures} (per cent).")
            if self.figures.reliability is not None:
                ece = 100 * self.figures.reliability.ece
                lines.append(f"Confidence is off by {ece:.1f} points on average (expected calibration error).")
        return [*lines, *self.summary.lines(every_class), *names_to_check(self.names, self.noun)]

    def places(self) -> list[str]:
        """Where the results are, and what to do next."""
        if self.paths is None:
            return []
        counted = f"{self.summary.inputs} inputs"
        if self.summary.unreadable:
            counted += f", {self.summary.unreadable} of them cannot be read"
        lines = [f"Labels: {self.paths.labels} ({counted})", f"Model: {self.paths.model}"]
        if self.paths.report is not None:
            lines.append(f"Report (open it in a browser): {self.paths.report}")
        if "hold_out" in self.config.options:
            return [*lines, "For labels and a model to use, fit again without --hold-out."]
        return [*lines, f"What to label next: pren suggest {shlex.quote(str(self.paths.folder))}"]

    def __str__(self) -> str:
        return "\n".join([*self.opening(), "", *self.lines(), "", *self.places()]).rstrip()

    def __repr__(self) -> str:
        return f"<RunResult: {self.title}, {self.labels!r}>"

    def to_dict(self) -> dict[str, Any]:
        """All but the labels, JSON-ready."""
        paths = self.paths
        return {
            **super().to_dict(),
            "metrics": None if self.figures is None else self.figures.to_dict(),
            "forecast": None if self.forecast is None else self.forecast.model_dump(mode="json"),
            "labels": {
                **self.summary.model_dump(mode="json"),
                "levels": self.summary.levels and self.summary.levels._asdict(),
            },
            "names": [group.to_dict() for group in self.names],
            "model": None if paths is None else str(paths.model),
            "predictions": None if paths is None else str(paths.labels),
            "report": None if paths is None or paths.report is None else str(paths.report),
        }

    @classmethod
    def of_folder(
        cls,
        folder: RunFolder,
        config: RunConfig,
        labels: Predictions,
        method: Method,
        outcome: Outcome | None,
        missing: str = "",
    ) -> RunResult:
        """The result in a folder, with its model and data if they are there."""
        trust = outcome.trust if outcome is not None else folder.trust()
        return cls(
            config=config,
            history=folder.history(),
            by_answers=folder.rounds_by_answers(),
            paths=RunPaths(folder.path),
            labels=labels,
            forecast=None if trust is None else trust.forecast,
            figures=folder.figures(),
            outcome=outcome,
            names=group_names(labels, method, trust),
            missing=missing,
        )
