"""A run in a few lines, for people."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from pren.cli.output import percent, safe, say, stdout, table
from pren.evaluation import FIGURES, TITLES
from pren.methods.registry import METHODS
from pren.runs.ending import in_lines
from pren.runs.summary import way_of_backbone
from pren.trust import Forecast


def show_summary(summary: dict[str, Any], every_class: bool = False) -> None:
    """Print a summary as a small table, and where the results are.

    Args:
        summary: What `run_summary` returns.
        every_class: Whether to tell of every class how many images it has got, however many classes there are.
    """
    setting, metrics, asked = summary["setting"], summary["metrics"], summary["extractor"]
    method = METHODS[summary["method"]].title
    data = Path(summary["data"]).name  # of a file, whose path is long; a registered name is its own
    split = f" {summary['split']}" if summary["split"] else ""
    options = "".join(f", {key}={value}" for key, value in summary["options"].items())
    what = safe(f"on {data}{split} ({setting}{options}, {_state(summary)})")
    stdout().print(f"[bold]{safe(method)}[/] {what}", soft_wrap=True)
    if asked is not None:
        weights = f"weights {asked['weights']}" if asked["weights"] else "trained weights"
        say(f"features of {asked['backbone']}, {way_of_backbone(summary)} ({weights}, geometry {asked['geometry']})")
    if metrics is not None:
        header = ["", *(TITLES[key] for key in FIGURES[setting])]
        stdout().print(table(header, [["per cent", *(percent(metrics.get(key)) for key in FIGURES[setting])]]))
    hashes = summary["record"].get("hashes")
    split_hash = hashes.get("split", "?") if isinstance(hashes, dict) else "?"
    say(f"split {split_hash}, seed {summary['params'].get('seed', '-')}")
    if summary["finished"]:
        _show_labels(summary, every_class)


def _show_labels(summary: dict[str, Any], every_class: bool) -> None:
    """What to expect of the labels, what to look at, and where they are."""
    facts, run, forecast = summary["labels"], summary["run"], summary["forecast"]
    say("")
    if forecast is not None:
        say(Forecast.model_validate(forecast).in_words(), style="bold")
    else:
        say("Nobody knows how many of these labels are right: --rehearsals 10 tells, at the price of ten more fits.")
    believed = (summary["metrics"] or {}).get("reliability")
    if believed is not None:
        say(f"Confidence is off by {percent(believed['ece'])} points in the mean (expected calibration error).")
    for line in in_lines(facts, every_class):
        say(line)
    say("")
    say(f"Labels: {summary['predictions']} ({_counted(facts)})")
    say(f"Model: {summary['model']}")
    if summary["report"] is not None:
        say(f"Report, to open in a browser: {summary['report']}")
    if "hold_out" in summary["options"]:
        say("To label photographs, or for the model to keep: fit once more without --hold-out.")
    else:
        say(f"What to look at first: pren suggest {shlex.quote(run)}")


def _state(summary: dict[str, Any]) -> str:
    if summary["finished"]:
        return "finished"
    if summary["rounds_done"] is None:
        return "unfinished, no round done"
    unit = "rounds" if "rounds" in summary["params"] else "epochs"
    return f"unfinished, {summary['rounds_done']} of {summary['rounds']} {unit}"


def _counted(facts: dict[str, Any]) -> str:
    """How many images have a row, and how many of them could not be read."""
    bad = facts["unreadable"]
    return f"{facts['images']} images{f', {bad} of them cannot be read' if bad else ''}"
