"""``pren migrate``: bring what an older version wrote up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pren.cli.output import safe, show_log, stdout


def migrate(
    old: Annotated[Path, typer.Argument(metavar="FOLDER", help="A run or model folder of an older version.")],
    out: Annotated[Path, typer.Option(help="Where to write it anew; must not exist yet.")],
) -> None:
    """Write a run or model of an older version of pren as this one writes it; the old one stays."""
    show_log()
    from pren.runs.migrate import migrate as write_anew

    stdout().print(f"Migrated to {safe(write_anew(old, out))}.", soft_wrap=True)
