"""A run in a few lines, for people and for machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pren.cli.output import percent, safe, stdout, table
from pren.evaluation import FIGURES, TITLES
from pren.methods.registry import METHODS
from pren.runs.folder import RunFolder


def run_summary(run: RunFolder) -> dict[str, Any]:
    """What a run was, how far it came and how well it did; JSON-ready."""
    config = run.config()
    metrics = run.metrics()
    return {
        "run": str(run.path),
        "finished": run.finished(),
        "data": config.data,
        "split": config.split,
        "setting": config.setting,
        "options": config.options,
        "method": config.method,
        "params": config.params,
        "record": config.record,
        "rounds_done": len(run.history()),
        "metrics": metrics,
    }


def show_summary(summary: dict[str, Any]) -> None:
    """Print a summary as a small table and what can be done next."""
    console = stdout()
    state = "finished" if summary["finished"] else f"unfinished, {summary['rounds_done']} rounds saved"
    setting = summary["setting"]
    method = METHODS[summary["method"]].title
    data = Path(summary["data"]).name  # of a file, whose path is long; a registered name is its own
    split = f" {summary['split']}" if summary["split"] else ""
    options = "".join(f", {key}={value}" for key, value in summary["options"].items())
    console.print(f"[bold]{safe(method)}[/] on {safe(data + split)} ({safe(setting + options)}, {state})")
    metrics = summary["metrics"]
    if metrics is not None:
        header = ["", *(TITLES[key] for key in FIGURES[setting])]
        row = ["per cent", *(percent(metrics.get(key)) for key in FIGURES[setting])]  # older runs have no AUSUC
        console.print(table(header, [row]))
    hashes = summary["record"].get("hashes")
    split_hash = hashes.get("split", "?") if isinstance(hashes, dict) else "?"
    console.print(f"split {safe(split_hash)}, seed {safe(summary['params'].get('seed', '-'))}")
    console.print(f"Run folder: {safe(summary['run'])}", soft_wrap=True)
