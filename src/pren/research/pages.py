"""The report of what experiments keep: tables with bars, error bars and seeds; studies; what was reproduced."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pren.evaluation import FIGURES, MAIN_FIGURE, TITLES
from pren.foundation.errors import PrenError
from pren.foundation.files import write_bytes
from pren.foundation.version import __version__
from pren.methods.registry import METHODS
from pren.problem import Setting
from pren.report.html import Html, counted, join, number, percent, tag
from pren.report.opening import card
from pren.report.page import Section, page, table
from pren.report.run import Written
from pren.report.svg import Series, line_chart, spread_bar
from pren.research.cells import Cell, Result
from pren.research.folder import CELLS, SHEETS_FILE, STUDY_FILE
from pren.research.reproduction.page import sheet_sections, verdicts
from pren.research.reproduction.sheets import read_sheets
from pren.research.store import Store
from pren.research.summary import Row, Spread, summarise
from pren.research.tables import percent_spread
from pren.research.tuning import Study, Trial, read_study
from pren.runs.store.folder import REPORT_FILE, RunFolder

DEPTH = 3  # how far below a folder studies are looked for


@dataclass(frozen=True)
class Line:
    """A row of a comparison, and what each of its seeds gave."""

    row: Row
    seeds: list[int]
    values: list[float]


def is_experiment(folder: Path) -> bool:
    """Whether a folder holds what `pren compare`, `pren tune` or `pren reproduce` keeps."""
    if (folder / CELLS).is_dir() or any((folder / name).is_file() for name in (STUDY_FILE, SHEETS_FILE)):
        return True
    return not RunFolder(folder).holds_run() and bool(_studies(folder))


def report_experiments(folder: Path, out: Path | None = None) -> Written:
    """Write the report of a folder of experiments; by default as `report.html` in it.

    Raises:
        PrenError: If a result is damaged, there is none, or the report cannot be written.
    """
    sections: list[Section] = []
    cards: list[Html] = []
    sheets = read_sheets(folder)
    sections += sheet_sections(sheets)
    cards += verdicts(sheets)
    groups = {} if sheets else _groups(Store.read(folder))  # a reproduction's tables say what its cells are for
    titles = _titles(folder, groups)
    for place, ((setting, _), lines) in enumerate(groups.items()):
        sections.append(_comparison(f"data-{place}", titles[place], setting, lines))
        cards.append(_best(titles[place], setting, lines))
    studies = {path.parent.name: read_study(path) for path in _studies(folder)}
    studies = {name: study for name, study in studies.items() if study.trials}
    if studies:
        sections.append(_study_section(studies))
        cards += [_chosen(name, study) for name, study in studies.items()] if len(studies) <= 3 else []
    if len(studies) == 1:
        sections += [_trials(study) for study in studies.values()]
    if not sections:
        raise PrenError("no-results", f"{folder} holds no result yet: 'pren compare', 'tune' and 'reproduce' fill it.")
    name = folder.resolve().name
    kind = "Comparison" if groups else "Reproduction" if sheets else "Parameters, chosen on validation classes"
    cells = sum(row.row.runs for lines in groups.values() for row in lines)
    said = [counted(cells, "fit")] if cells else []
    said += [counted(len(studies), "study", "studies")] if studies else []
    opening = tag("div", tag("div", cards, class_="cards"), class_="opening")
    footer = f"Made by pren {__version__} from {folder}. This page asks nobody for anything."
    content = page(name, kind, ", ".join(said), opening, sections, footer).encode()
    path = out or folder / REPORT_FILE
    write_bytes(path, content)
    return Written(path, len(content), 0)


def _studies(folder: Path) -> list[Path]:
    """The studies in a folder and a little below."""
    return [path for depth in range(DEPTH) for path in sorted(folder.glob("*/" * depth + STUDY_FILE)) if path.is_file()]


def _groups(cells: Sequence[tuple[Cell, Result]]) -> dict[tuple[Setting, str], list[Line]]:
    """Results by setting and data; in each the methods with their parameters, the best first."""
    found: dict[tuple[Setting, str], dict[str, list[tuple[Cell, Result]]]] = {}
    for cell, result in cells:
        data = found.setdefault((cell.setting, json.dumps(cell.hashes, sort_keys=True)), {})
        params = {key: value for key, value in cell.params.items() if key != "seed"}
        data.setdefault(json.dumps([cell.method, params], sort_keys=True), []).append((cell, result))
    groups = {}
    for (setting, hashes), rows in found.items():
        names = _names([members[0][0] for members in rows.values()])
        lines = [_line(name, setting, members) for name, members in zip(names, rows.values(), strict=True)]
        groups[setting, hashes] = sorted(lines, key=lambda line: -_mean(line.row.figures[MAIN_FIGURE[setting]]))
    return groups


def _line(name: str, setting: Setting, members: Sequence[tuple[Cell, Result]]) -> Line:
    results = [result for _, result in members]
    values = [result.figures.get(MAIN_FIGURE[setting]) for result in results]
    seeds = sorted(cell.seed for cell, _ in members if cell.seed is not None)
    return Line(summarise("", name, False, results), seeds, [value for value in values if value is not None])


def _names(cells: Sequence[Cell]) -> list[str]:
    """What rows are called: the method, and what sets it apart from others of the same method."""
    names = []
    for cell in cells:
        others = [other for other in cells if other.method == cell.method and other is not cell]
        own = [f"{k}={v}" for k, v in cell.params.items() if k != "seed" and any(o.params.get(k) != v for o in others)]
        title = METHODS[cell.method].title if cell.method in METHODS else cell.method
        names.append(f"{title} ({', '.join(own)})" if own else title)
    return names


def _titles(folder: Path, groups: dict[tuple[Setting, str], list[Line]]) -> list[str]:
    """What the data are called: as in table.csv where its figures are the same, else by their hash."""
    said: dict[frozenset[str], str] = {}
    try:
        with (folder / "table.csv").open(newline="", encoding="utf-8") as file:
            rows = [(row["data"], row.get("top1_mean") or row.get("h_mean") or "") for row in csv.DictReader(file)]
        said = {frozenset(mean for n, mean in rows if n == name and mean): name for name, _ in rows}
    except (OSError, ValueError, KeyError, csv.Error):
        pass  # it is only for names
    titles = []
    for (setting, hashes), lines in groups.items():
        means = {str(_mean(line.row.figures[MAIN_FIGURE[setting]])) for line in lines}
        fits = [name for known, name in said.items() if known and known <= means]
        titles.append(fits[0] if fits else f"data {json.loads(hashes).get('data', '?')}")
    return titles


def _mean(spread: Spread | None) -> float:
    return -1.0 if spread is None else spread.mean


def _comparison(id: str, title: str, setting: Setting, lines: Sequence[Line]) -> Section:
    main, names = MAIN_FIGURE[setting], FIGURES[setting]
    end = max((s.mean + (s.std or 0.0) for line in lines if (s := line.row.figures[main]) is not None), default=1.0)
    header = ["method", TITLES[main], *(TITLES[name] for name in names), "seeds", "fit, s", "predict, s", "peak, MB"]
    header[1] = f"{TITLES[main]}, mean ± deviation"
    noted = any(line.row.note() for line in lines)
    rows = []
    for line in lines:
        row, spread = line.row, line.row.figures[main]
        chart = "–" if spread is None else spread_bar(spread.mean, spread.std, line.values, max(end, *line.values))
        cells: list[object] = [row.method, (chart, _mean(spread))]
        cells += [(percent_spread(row.figures[name]), _mean(row.figures[name])) for name in names]
        cells += [(_seeds(line.seeds), len(line.seeds)), _cost(row.fit_seconds), _cost(row.predict_seconds)]
        rows.append([*cells, _cost(row.peak_bytes, 1e-6), *([row.note() or "–"] if noted else [])])
    header += ["note"] if noted else []
    made = table(header, rows, id=f"{id}-table", caption=title, texts={0, *([len(header) - 1] if noted else [])})
    intro = "Per cent. A bar is the mean over seeds, the line on it the standard deviation, each dot a seed."
    return Section(id, title, f"{title} ({setting})", made, intro)


def _seeds(seeds: Sequence[int]) -> str:
    if not seeds:
        return "none needed"
    whole = len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}–{seeds[-1]}" if whole else ", ".join(map(str, seeds))


def _cost(spread: Spread | None, factor: float = 1.0) -> tuple[str, float]:
    if spread is None:
        return "–", -1.0
    mean = factor * spread.mean
    return f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}", spread.mean


def _best(title: str, setting: Setting, lines: Sequence[Line]) -> Html:
    main, best = MAIN_FIGURE[setting], lines[0].row
    failed = sum(bool(line.row.failed) for line in lines)
    said: list[object] = [f"{TITLES[main]} of {best.method}, the best of {counted(len(lines), 'row')}."]
    said += [f"{counted(failed, 'row has', 'rows have')} fits that failed."] if failed else []
    return card(title, f"{percent_spread(best.figures[main])} %", said)


def _chosen(name: str, study: Study) -> Html:
    best = study.best() if any(trial.value is not None for trial in study.trials) else None
    title = TITLES[MAIN_FIGURE[study.what["setting"]]]
    value = "failed" if best is None else percent(best.value, 1)
    said = f"{title}, the mean over the folds, in the best of {counted(len(study.trials), 'trial')}."
    return card(name, value, [said])


def _study_section(studies: dict[str, Study]) -> Section:
    rows = []
    for name, study in studies.items():
        best = study.best() if any(trial.value is not None for trial in study.trials) else None
        failed = sum(trial.value is None for trial in study.trials)
        value = (percent(None if best is None else best.value, 1), -1.0 if best is None else best.value or 0.0)
        figure = TITLES[MAIN_FIGURE[study.what["setting"]]]
        rows.append([name, _params(best), figure, value, len(study.trials), failed, study.what.get("seed", "–")])
    header = ["study", "best parameters", "figure", "value", "trials", "failed", "seed"]
    made = table(header, rows, id="studies-table", caption="Studies", texts=(0, 1, 2))
    charts = [_progress(name, study) for name, study in studies.items()]
    content = join([tag("div", charts, class_="charts small"), made])
    intro = "Dots are trials, the line is the best so far. No image and no class of the test has a part in this."
    return Section("studies", "Studies", "Parameters, chosen on validation classes", content, intro)


def _progress(name: str, study: Study) -> Html | None:
    points = [(float(place + 1), t.value) for place, t in enumerate(study.trials) if t.value is not None]
    if not points:
        return None
    best = [(place, max(value for _, value in points[: row + 1])) for row, (place, _) in enumerate(points)]
    lines = [Series("best so far", best), Series("trial", points, dots=True)]
    return line_chart(name, lines, x="trial", show_y=percent, whole=True)


def _trials(study: Study) -> Section:
    names = list(dict.fromkeys(name for trial in study.trials for name in trial.params))
    rows = [
        [
            str(place + 1),
            (percent(trial.value, 1), -1.0 if trial.value is None else trial.value),
            ", ".join(percent(fold, 1) for fold in trial.folds) or trial.error or "–",
            *(_shown(trial.params.get(name)) for name in names),
            number(trial.seconds),
        ]
        for place, trial in enumerate(study.trials)
    ]
    header = ["trial", "mean", "folds", *names, "seconds"]
    words = [place for place, name in enumerate(names, 3) if isinstance(study.trials[0].params.get(name), str)]
    made = table(header, rows, id="trials-table", caption="Trials", texts={2, *words})
    return Section("trials", "Trials", "Every trial", made)


def _params(trial: Trial | None) -> str:
    return "–" if trial is None else ", ".join(f"{name}={_shown(value)}" for name, value in trial.params.items())


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
