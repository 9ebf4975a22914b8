"""From the result of a run to the facts of its report."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.evaluation import Metrics
from pren.images.look import Look
from pren.label.outcome import Outcome
from pren.label.result import RunResult
from pren.label.suggest import suggest_places
from pren.methods.registry import METHODS
from pren.problem import UNKNOWN, candidates_of
from pren.problem.inputs import Inputs
from pren.report.charts import Points
from pren.report.evidence import describe_apart, evidence
from pren.report.facts import Confused, Curve, Details, RunFacts, most_confused
from pren.report.gallery import PAIRS, TO_LABEL, expected_photographs
from pren.report.image import ReportedImage
from pren.report.photographs import Photographs
from pren.report.scatter import make_map
from pren.report.words import number

History = Sequence[Mapping[str, Any]]  # figures differ between methods


def collect(result: RunResult) -> RunFacts:
    """The facts of a finished run."""
    config, table, outcome = result.config, result.labels.table, result.outcome
    names = list(zip(table.names, table.seen, strict=True))
    unseen, seen = (sorted(name for name, has in names if has == wanted) for wanted in (False, True))
    images = _predicted(result) if outcome is None else _labelled(outcome)
    images.sort(key=lambda image: (-1.0 if image.confidence is None else image.confidence, image.lead), reverse=True)
    confused, inputs = confusions_of(images, result.figures), _inputs(outcome)
    own, held_out = config.record.get("source", {}).get("name") == "folder", "hold_out" in config.options
    is_file = own or config.extractor is not None if inputs is None else inputs.photographs
    return RunFacts(
        run="" if result.paths is None else str(result.paths.folder),
        method=METHODS[config.method].title,
        data=Path(config.data).name,
        setting=config.setting,
        split=config.split,
        noun="photograph" if is_file else "input",
        held_out=held_out,
        own=own,
        command=config.record.get("command") or "",
        record=_record(result),
        labels=result.summary,
        metrics=result.figures,
        forecast=result.forecast,
        names=result.names,
        curves=_curves(result),
        unseen=unseen,
        seen=seen if candidates_of(config.setting) == "all" else [],
        described=len(seen),
        images=images,
        confused=confused,
        photographs=Photographs(inputs, expected_photographs(len(unseen))),
        details=None if outcome is None else _details(outcome, confused, asks=not held_out),
        missing=result.missing,
    )


def _record(result: RunResult) -> dict[str, dict[str, str]]:
    """The settings and the record of a run."""
    config, record, asked = result.config, result.config.record, result.config.extractor
    run = {"method": METHODS[config.method].title, "data": config.data, "setting": config.setting}
    run |= {key: str(value) for key, value in config.options.items()}
    if asked is not None:
        run["features of"] = f"{asked.backbone}, {result.way_of_backbone()} (geometry {asked.geometry})"
    if (look := Look.known(record.get("source"))) is not None:
        run["labelled photographs"] = look.done()
    run |= {f"{name} hash": value for name, value in record.get("hashes", {}).items()}
    run["signatures"] = record.get("source", {}).get("signatures", {}).get("kind", "–")
    run["started"] = record.get("started", "–")
    known = result.to_dict()["params"]
    short = {name: isinstance(value, float) and abs(value) >= 0.01 for name, value in known.items()}
    params = {name: number(value) if short[name] else str(value) for name, value in known.items()}
    versions = {"python": record.get("python", "–"), **record.get("versions", {})}
    return {"Run": run, "Parameters": params, "Versions": versions}


def _predicted(result: RunResult) -> list[ReportedImage]:
    rows = [row for row in result.labels.rows() if row.label]
    return [ReportedImage(-1, row.input, row.label, "", row.confidence, row.familiarity) for row in rows]


def _labelled(outcome: Outcome) -> list[ReportedImage]:
    problem, answers, labels = outcome.problem, outcome.answers, outcome.labels
    names = problem.classes.names
    given = set(problem.decided()[0].tolist())
    truths = [-1] * len(labels.classes) if answers is None else answers.labels.tolist()
    files = None if answers is None else answers.names
    rows = zip(*(part.tolist() for part in labels), strict=True)
    return [
        ReportedImage(
            place=place,
            name=str(place) if files is None else files[place],
            label=names[row],
            runner_up="" if other == UNKNOWN else names[other],
            confidence=None if math.isnan(sure) else sure,
            familiarity=None if math.isnan(familiar) else familiar,
            lead=lead,
            truth="" if truths[place] < 0 else names[truths[place]],
            given=place in given,
        )
        for place, (row, _, sure, familiar, other, lead, _) in enumerate(rows)
    ]


def confusions_of(images: Sequence[ReportedImage], metrics: Metrics | None) -> Confused:
    """Confusions: (class, label) by the answers; else (label, runner-up) and the expected number."""
    if metrics is not None:
        return {(cell.true, cell.predicted): float(cell.count) for cell in metrics.confusion}
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for image in images:
        if image.confidence is not None and image.runner_up and not image.given:
            found[image.label, image.runner_up] += 1 - image.confidence
    return dict(found)


def _curves(result: RunResult) -> list[Curve]:
    """Figures of rounds; empty for a single round."""
    history, by_answers, metrics = result.history, result.by_answers, result.figures
    if len(history) < 2:
        return []

    def points(rows: History, name: str) -> Points:
        return [(float(row["round"]), float(row[name])) for row in rows if row.get(name) is not None]

    others = [name for name in history[-1] if name not in ("round", "changed", "agreement")]
    pseudo = [row for row in history if row.get("pseudo_labels") and row.get("changed") is not None]
    # Older versions have fewer figures by the answers.
    told = [{**known, "round": row["round"]} for row, known in zip(history, by_answers, strict=False)]
    top1 = [(after - 1, value) for after, value in points(told, "top1_before")]
    if top1 and metrics is not None:
        top1.append((float(history[-1]["round"]), metrics.top1))
    curves = [Curve(name.replace("_", "-").capitalize(), points(history, name)) for name in others]
    curves += [
        Curve("Agreement of the heads", points(history, "agreement"), share=True),
        Curve(
            "New pseudo-labels",
            [(float(row["round"]), row["changed"] / row["pseudo_labels"]) for row in pseudo],
            share=True,
        ),
        Curve("Right pseudo-labels, by the answers", points(told, "precision"), share=True),
        Curve("Top-1, by the answers", top1, share=True),
    ]
    return [curve for curve in curves if curve.points]


def _inputs(outcome: Outcome | None) -> Inputs | None:
    """The photographs of the pool, or its inputs; None if the data are missing."""
    if outcome is None:
        return None
    pictures = None if outcome.answers is None else outcome.answers.pictures
    return outcome.problem.pool if pictures is None else pictures


def _details(outcome: Outcome, confused: Confused, *, asks: bool) -> Details:
    problem = outcome.problem
    features: NDArray[np.float64] = outcome.method.embed(problem.pool)
    labels = [problem.classes.names[row] for row in outcome.labels.classes.tolist()]
    return Details(
        to_label=suggest_places(outcome, features, TO_LABEL).tolist() if asks else [],
        map=make_map(features, labels),
        evidence=evidence(outcome.method, problem, outcome.labels),
        apart={(a, b): describe_apart(problem.classes, a, b) for a, b, _ in most_confused(confused, PAIRS)},
        labelled=len(problem.train),
    )
