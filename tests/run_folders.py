"""Runs of a configuration that are looked at on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pren.images.extraction import OnProgress
from pren.runs.run import OnRound, Progress, run_config
from pren.store.config import RunConfig
from pren.store.folder import RunFolder


def run_folder(
    config: RunConfig,
    out: str | Path,
    *,
    on_round: OnRound | None = None,
    on_extract: OnProgress | None = None,
    report: bool = False,
    **options: Any,
) -> RunFolder:
    """Run a configuration, without a report unless asked for; returns its folder, closed."""
    run_config(config, out, report=report, progress=Progress(on_round, on_extract), **options)
    return RunFolder.open(out)
