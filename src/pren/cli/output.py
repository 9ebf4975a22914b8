"""What a verb prints: results on standard output, progress and errors on standard error.

Class and file names are hostile text. All text goes through `visible`, also the log of the library: control characters
become escapes, and rich never reads text as markup.
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

from pren.cli.options import output_option
from pren.foundation.errors import visible

PIPE_CLOSED = 128 + 13  # as programs end that SIGPIPE has ended


def stdout() -> Console:
    """Where results go."""
    return Console(highlight=False, emoji=False)


def stderr() -> Console:
    """Where progress goes."""
    return Console(stderr=True, highlight=False, emoji=False)


class _VisibleFormatter(logging.Formatter):
    """Escapes control characters in messages; a traceback below one stays as it is."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return visible(super().formatMessage(record))


@dataclass(frozen=True)
class Talk:
    """How much a verb prints while it works."""

    quiet: Annotated[bool, output_option("--quiet", "-q", help="Print only results, warnings and errors.")] = False
    verbose: Annotated[bool, output_option("--verbose", "-v", help="Print more details.")] = False


def show_log(talk: Talk) -> None:
    """Send the library's log to standard error."""
    logger = logging.getLogger("pren")
    logger.setLevel(logging.WARNING if talk.quiet else logging.DEBUG if talk.verbose else logging.INFO)
    if not logger.handlers:
        handler = RichHandler(console=stderr(), show_time=False, show_path=False, markup=False)
        handler.setFormatter(_VisibleFormatter())
        logger.addHandler(handler)


def safe(text: object) -> str:
    """Escape text for use in rich's markup."""
    return escape(visible(text))


def say(text: object, console: Console | None = None, style: str = "") -> None:
    """Print text as one line, on standard output by default."""
    (console or stdout()).print(Text(visible(text), style), soft_wrap=True)


def complain(code: str, message: str) -> None:
    """Print an error and the code of its `PrenError` as plain text, without line breaks of ours."""
    stderr().print(f"[bold red]Error[/] \\[{code}]: {escape(visible(message))}", soft_wrap=True)


def print_json(content: Any) -> None:
    """Print a result as JSON."""
    typer.echo(json.dumps(content, indent=2, allow_nan=False))


def table(header: Sequence[str], rows: Iterable[Sequence[object]], numbers_from: int = 1) -> Table:
    """A table; columns from `numbers_from` on are aligned to the right."""
    result = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(header):
        # A name that is too long for a line continues on the next: it is never cut.
        result.add_column(Text(visible(name)), justify="left" if place < numbers_from else "right", overflow="fold")
    for row in rows:
        result.add_row(*(Text(visible(cell)) for cell in row))
    return result


def percent(share: float | None) -> str:
    """0.664 as 66.4."""
    return "-" if share is None else f"{100 * share:.1f}"
