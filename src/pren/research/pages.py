"""The report of experiments: comparisons with bars, error bars and seeds; studies; reproductions."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

from pren.evaluation import FIGURES, MAIN_FIGURE, TITLES
from pren.foundation.errors import PrenError
from pren.methods.registry import METHODS
from pren.problem import Setting
from pren.report.charts import Chart, Series, line_chart
from pren.report.page import Section, Written, render, write_page
from pren.report.words import percent
from pren.research.cells import Cell, Result
from pren.research.folder import CELLS, SHEETS_FILE, STUDY_FILE
from pren.research.reproduction.page import sheet_section, verdicts
from pren.research.reproduction.sheets import read_sheets
from pren.research.store import Store
from pren.research.summary import Row, summarise
from pren.research.tables import percent_spread
from pren.research.tuning import Study, Trial, read_study
from pren.store.folder import REPORT_FILE, RunFolder

DEPTH = 3  # of folders that may hold studies


@dataclass(frozen=True)
class Line:
    """A row of a comparison, and the value of each seed."""

    row: Row
    seeds: list[int]
    values: list[float]

    @property
    def shown(self) -> dict[str, str]:
        """The figures in per cent, by name."""
        return {name: percent_spread(spread) for name, spread in self.row.figures.items()}

    @property
    def seeds_shown(self) -> str:
        """The seeds, short."""
        if not self.seeds:
            return "none needed"
        first, last = self.seeds[0], self.seeds[-1]
        whole = len(self.seeds) > 1 and self.seeds == list(range(first, last + 1))
        return f"{first}–{last}" if whole else ", ".join(map(str, self.seeds))

    @property
    def mean(self) -> float:
        """Over the seeds; -1 if all failed."""
        return fmean(self.values) if self.values else -1.0


@dataclass(frozen=True)
class Comparison:
    """Methods on the same data, the best first."""

    title: str
    setting: Setting
    lines: list[Line]

    @property
    def main(self) -> str:
        """The name of the main figure."""
        return MAIN_FIGURE[self.setting]

    @property
    def titles(self) -> dict[str, str]:
        """The figures to show, by name."""
        return {name: TITLES[name] for name in FIGURES[self.setting]}

    @property
    def end(self) -> float:
        """The largest value that a bar shows."""
        spreads = [line.row.figures[self.main] for line in self.lines]
        ends = [spread.mean + (spread.std or 0.0) for spread in spreads if spread is not None]
        return max([*ends, *(value for line in self.lines for value in line.values)], default=1.0)

    @property
    def noted(self) -> bool:
        """Whether any row has a note."""
        return any(line.row.note() for line in self.lines)

    @property
    def failed(self) -> int:
        """How many rows have fits that failed."""
        return sum(bool(line.row.failed) for line in self.lines)


@dataclass(frozen=True)
class StudyFacts:
    """A study and its name."""

    name: str
    study: Study

    @property
    def figure(self) -> str:
        """The title of the figure that parameters are chosen by."""
        return TITLES[MAIN_FIGURE[self.study.what["setting"]]]

    @property
    def seed(self) -> object:
        """The seed of its proposals."""
        return self.study.what.get("seed", "–")

    @property
    def trials(self) -> list[Trial]:
        """In order."""
        return self.study.trials

    @property
    def best(self) -> Trial | None:
        """None if every trial failed."""
        return self.study.best() if any(trial.value is not None for trial in self.trials) else None

    @property
    def names(self) -> list[str]:
        """The parameters that were tried."""
        return list(dict.fromkeys(name for trial in self.trials for name in trial.params))

    def is_text(self, name: str) -> bool:
        """Whether the values of a parameter are words."""
        return isinstance(self.trials[0].params.get(name), str)

    @cached_property
    def chart(self) -> Chart | None:
        """The trials, and the best so far; None if all failed."""
        points = [(float(place), t.value) for place, t in enumerate(self.trials, 1) if t.value is not None]
        if not points:
            return None
        best = [(place, max(value for _, value in points[: row + 1])) for row, (place, _) in enumerate(points)]
        lines = [Series("best so far", best), Series("trial", points, dots=True)]
        return line_chart(self.name, lines, "trial", show_y=percent, whole=True)


@dataclass(frozen=True)
class Experiments:
    """The content of a folder of experiments; `verdicts` counts the paper's claims by verdict."""

    folder: Path
    reproduced: bool
    verdicts: Mapping[str, int]
    comparisons: list[Comparison]
    studies: list[StudyFacts]

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.resolve().name

    @property
    def kind(self) -> str:
        """The kind of experiments, for the title."""
        if self.comparisons:
            return "Comparison"
        return "Reproduction" if self.reproduced else "Parameters, chosen on validation classes"

    @property
    def fits(self) -> int:
        """How many results the comparisons hold."""
        return sum(line.row.runs for each in self.comparisons for line in each.lines)


def is_experiment(folder: Path) -> bool:
    """Whether a folder holds results of `pren compare`, `pren tune` or `pren reproduce`."""
    if (folder / CELLS).is_dir() or any((folder / name).is_file() for name in (STUDY_FILE, SHEETS_FILE)):
        return True
    return not RunFolder(folder).holds_run() and bool(_studies(folder))


def report_experiments(folder: Path, out: Path | None = None) -> Written:
    """Write the report of a folder of experiments; by default as `report.html` in it."""
    sheets = read_sheets(folder)
    # The tables of a reproduction already show its cells.
    comparisons = [] if sheets else _comparisons(folder)
    found = Experiments(folder, bool(sheets), verdicts(sheets), comparisons, _read_studies(folder))
    sections = [sheet_section(sheet) for sheet in sheets]
    sections += [Section(f"data-{place}", "comparison", each) for place, each in enumerate(found.comparisons)]
    sections += [Section("studies", "studies", found.studies)] if found.studies else []
    sections += [Section("trials", "trials", found.studies[0])] if len(found.studies) == 1 else []
    if not sections:
        raise PrenError("no-results", f"{folder} has no results: run 'pren compare', 'tune' or 'reproduce' first.")
    return write_page(out or folder / REPORT_FILE, render("experiments", found, sections, "pren.research"))


def _studies(folder: Path) -> list[Path]:
    """The studies in a folder and up to two levels below."""
    return [path for depth in range(DEPTH) for path in sorted(folder.glob("*/" * depth + STUDY_FILE)) if path.is_file()]


def _read_studies(folder: Path) -> list[StudyFacts]:
    """The studies with trials."""
    found = [StudyFacts(path.parent.name, read_study(path)) for path in _studies(folder)]
    return [each for each in found if each.trials]


def _comparisons(folder: Path) -> list[Comparison]:
    """Results by setting and data; in each, methods with their parameters, the best first."""
    found: dict[tuple[Setting, str], dict[str, list[tuple[Cell, Result]]]] = {}
    for cell, result in Store.read(folder):
        data = found.setdefault((cell.setting, json.dumps(cell.hashes, sort_keys=True)), {})
        params = {key: value for key, value in cell.params.items() if key != "seed"}
        data.setdefault(json.dumps([cell.method, params], sort_keys=True), []).append((cell, result))
    known, made = _known_titles(folder), []
    for (setting, hashes), rows in found.items():
        names = _names([members[0][0] for members in rows.values()])
        lines = [_line(name, setting, members) for name, members in zip(names, rows.values(), strict=True)]
        lines.sort(key=lambda line: line.mean, reverse=True)
        means = {str(line.mean) for line in lines}
        titles = [title for figures, title in known.items() if figures and figures <= means]
        title = titles[0] if titles else f"data {json.loads(hashes).get('data', '?')}"
        made.append(Comparison(title, setting, lines))
    return made


def _line(name: str, setting: Setting, members: Sequence[tuple[Cell, Result]]) -> Line:
    results = [result for _, result in members]
    values = [result.figures.get(MAIN_FIGURE[setting]) for result in results]
    seeds = sorted(cell.seed for cell, _ in members if cell.seed is not None)
    return Line(summarise("", name, False, results), seeds, [value for value in values if value is not None])


def _names(cells: Sequence[Cell]) -> list[str]:
    """Names of rows: the method, and the parameters in which it differs from other rows of the method."""
    names = []
    for cell in cells:
        others = [other for other in cells if other.method == cell.method and other is not cell]
        own = [f"{k}={v}" for k, v in cell.params.items() if k != "seed" and any(o.params.get(k) != v for o in others)]
        title = METHODS[cell.method].title if cell.method in METHODS else cell.method
        names.append(f"{title} ({', '.join(own)})" if own else title)
    return names


def _known_titles(folder: Path) -> dict[frozenset[str], str]:
    """The titles of data in table.csv by their figures; empty if it cannot be read."""
    try:
        with (folder / "table.csv").open(newline="", encoding="utf-8") as file:
            rows = [(row["data"], row.get("top1_mean") or row.get("h_mean") or "") for row in csv.DictReader(file)]
    except (OSError, ValueError, KeyError, csv.Error):
        return {}  # only titles depend on it
    return {frozenset(mean for n, mean in rows if n == name and mean): name for name, _ in rows}
