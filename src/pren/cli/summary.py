"""A run in a few lines, for people and for machines."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from pren.cli.output import percent, safe, stdout, table
from pren.evaluation import FIGURES, TITLES
from pren.methods.registry import METHODS
from pren.methods.storage import MODEL_FILE
from pren.runs.folder import RunFolder

# What a method does with images; it has no effect on the features of a frozen backbone.
OF_IMAGES = {
    "backbone",
    "weights",
    "geometry",
    "backbone_lr",
    "augmentation",
    "precision",
    "train_statistics",
}


def run_summary(run: RunFolder) -> dict[str, Any]:
    """What a run was, how far it came, how well it did and where its results are; JSON-ready."""
    config, history, finished = run.config(), run.history(), run.finished()
    without_effect = OF_IMAGES if config.extractor is not None else set()
    return {
        "run": str(run.path),
        "finished": finished,
        "data": config.data,
        "split": config.split,
        "setting": config.setting,
        "options": config.options,
        "extractor": None if config.extractor is None else config.extractor.model_dump(mode="json"),
        "method": config.method,
        "params": {key: value for key, value in config.params.items() if key not in without_effect},
        "record": config.record,
        "rounds_done": history[-1]["round"] if history else None,
        "rounds": config.params.get("rounds") or config.params.get("epochs") or 0,
        "metrics": run.metrics(),
        "model": str(run.path / MODEL_FILE) if finished else None,
        "predictions": str(run.path / "predictions.csv") if finished else None,
    }


def show_summary(summary: dict[str, Any]) -> None:
    """Print a summary as a small table, and where the results are."""
    console = stdout()
    setting = summary["setting"]
    method = METHODS[summary["method"]].title
    data = Path(summary["data"]).name  # of a file, whose path is long; a registered name is its own
    split = f" {summary['split']}" if summary["split"] else ""
    options = "".join(f", {key}={value}" for key, value in summary["options"].items())
    console.print(f"[bold]{safe(method)}[/] on {safe(data + split)} ({safe(setting + options)}, {_state(summary)})")
    if summary["extractor"] is not None:
        asked = summary["extractor"]
        weights = f"weights {asked['weights']}" if asked["weights"] else "trained weights"
        console.print(
            safe(f"features of {asked['backbone']}, frozen ({weights}, geometry {asked['geometry']})"), soft_wrap=True
        )
    metrics = summary["metrics"]
    if metrics is not None:
        header = ["", *(TITLES[key] for key in FIGURES[setting])]
        row = ["per cent", *(percent(metrics.get(key)) for key in FIGURES[setting])]  # older runs have no AUSUC
        console.print(table(header, [row]))
    hashes = summary["record"].get("hashes")
    split_hash = hashes.get("split", "?") if isinstance(hashes, dict) else "?"
    console.print(f"split {safe(split_hash)}, seed {safe(summary['params'].get('seed', '-'))}")
    if summary["finished"]:
        console.print(f"Model: {safe(summary['model'])}", soft_wrap=True)
        labelled = _counted(Path(summary["predictions"]))
        console.print(f"Labels: {safe(summary['predictions'])} ({labelled})", soft_wrap=True)


def _state(summary: dict[str, Any]) -> str:
    if summary["finished"]:
        return "finished"
    if summary["rounds_done"] is None:
        return "unfinished, no round done"
    unit = "rounds" if "rounds" in summary["params"] else "epochs"
    return f"unfinished, {summary['rounds_done']} of {summary['rounds']} {unit}"


def _counted(predictions: Path) -> str:
    """How many images have a row, and how many of them could not be read."""
    with predictions.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    if "error" not in header:
        return f"{len(rows)} images"
    bad = sum(bool(row[header.index("error")]) for row in rows)
    return f"{len(rows)} photographs{f', {bad} of them cannot be read' if bad else ''}"
