"""A run in a few lines, for people and for machines."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from pren.cli.output import percent, safe, say, stdout, table
from pren.evaluation import FIGURES, TITLES
from pren.methods.registry import METHODS
from pren.methods.storage import MODEL_FILE
from pren.runs.folder import RunFolder

# What a method does with images; it has no effect on the features of a frozen backbone.
OF_IMAGES = set("backbone weights geometry backbone_lr augmentation precision train_statistics".split())


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
    setting, metrics, asked = summary["setting"], summary["metrics"], summary["extractor"]
    method = METHODS[summary["method"]].title
    data = Path(summary["data"]).name  # of a file, whose path is long; a registered name is its own
    split = f" {summary['split']}" if summary["split"] else ""
    options = "".join(f", {key}={value}" for key, value in summary["options"].items())
    what = safe(f"on {data}{split} ({setting}{options}, {_state(summary)})")
    stdout().print(f"[bold]{safe(method)}[/] {what}", soft_wrap=True)
    if asked is not None:
        weights = f"weights {asked['weights']}" if asked["weights"] else "trained weights"
        say(f"features of {asked['backbone']}, frozen ({weights}, geometry {asked['geometry']})")
    if metrics is not None:
        header = ["", *(TITLES[key] for key in FIGURES[setting])]
        stdout().print(table(header, [["per cent", *(percent(metrics.get(key)) for key in FIGURES[setting])]]))
    hashes = summary["record"].get("hashes")
    split_hash = hashes.get("split", "?") if isinstance(hashes, dict) else "?"
    say(f"split {split_hash}, seed {summary['params'].get('seed', '-')}")
    if summary["finished"]:
        say(f"Model: {summary['model']}")
        say(f"Labels: {summary['predictions']} ({_counted(Path(summary['predictions']))})")


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
