"""What people see: results on standard output, progress and complaints on standard error.

Class and file names are hostile text: control characters (which could drive the terminal) are shown as escapes, and
rich never reads them as markup. All that is shown goes through `visible`: what is said here, and what the library logs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pren.foundation.text import visible


def stdout() -> Console:
    """Where results go."""
    return Console(highlight=False, emoji=False)


def stderr() -> Console:
    """Where progress goes."""
    return Console(stderr=True, highlight=False, emoji=False)


class _VisibleFormatter(logging.Formatter):
    """Every message as one line that drives no terminal; a traceback below it stays as it is."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return visible(super().formatMessage(record))


@dataclass(frozen=True)
class Talk:
    """How much a command says on the way."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say only the result and what goes wrong.")] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more on the way.")] = False


def show_log(talk: Talk) -> None:
    """Send the library's log to standard error."""
    logger = logging.getLogger("pren")
    logger.setLevel(logging.WARNING if talk.quiet else logging.DEBUG if talk.verbose else logging.INFO)
    if not logger.handlers:
        handler = RichHandler(console=stderr(), show_time=False, show_path=False, markup=False)
        handler.setFormatter(_VisibleFormatter())
        logger.addHandler(handler)


def safe(text: object) -> str:
    """Any text for use among rich's markup."""
    return escape(visible(text))


def say(text: object, console: Console | None = None, style: str = "") -> None:
    """Print any text as one line, on standard output if nothing else is said."""
    (console or stdout()).print(Text(visible(text), style), soft_wrap=True)


def complain(code: str, message: str) -> None:
    """Say what went wrong, as plain lines that can be searched and copied; the code is that of `PrenError`."""
    stderr().print(f"[bold red]Error[/] \\[{code}]: {escape(visible(message))}", soft_wrap=True)


def print_json(content: Any) -> None:
    """Write a result for machines."""
    typer.echo(json.dumps(content, indent=2, allow_nan=False))


def table(header: Sequence[str], rows: Iterable[Sequence[object]], numbers_from: int = 1) -> Table:
    """A table with text on the left and, from column `numbers_from` on, figures on the right."""
    result = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(header):
        # Where a line is too narrow for a name, the rest of it stands below.
        result.add_column(Text(visible(name)), justify="left" if place < numbers_from else "right", overflow="fold")
    for row in rows:
        result.add_row(*(Text(visible(cell)) for cell in row))
    return result


def percent(share: float | None) -> str:
    """0.664 as 66.4, as the field's tables have it."""
    return "-" if share is None else f"{100 * share:.1f}"
