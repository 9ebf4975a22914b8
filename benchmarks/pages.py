"""Put stored results into the pages that show them: ``python -m benchmarks.pages``.

A page under docs/results marks a table by what makes it. Between ``<!-- begin: reproduction/NAME.md -->`` and
``<!-- end -->`` stands a table of `pren reproduce`, without the columns of data that are missing; after
``<!-- begin: python -m benchmarks.ablations ... -->``, or the like, what that command shows of what is stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import ablations, defaults, finetuning, minutes, through
from benchmarks.tables import Table
from pren.research.reproduction.sheets import read_sheets
from pren.research.reproduction.tables import MISSING

RESULTS = Path(__file__).parent.parent / "docs" / "results"
PAGES = tuple(RESULTS / f"{name}.md" for name in ("claims", "ablations", "comparison", "finetuning"))
BLOCK = re.compile(r"(<!-- begin: (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
COMMANDS: dict[str, Callable[[Sequence[str]], Table]] = {
    "python -m benchmarks.ablations": ablations.stored,
    "python -m benchmarks.defaults": lambda _: defaults.stored(),
    "python -m benchmarks.finetuning --stored": lambda arguments: finetuning.table(*arguments),
    "python -m benchmarks.minutes": lambda _: minutes.stored(),
    "python -m benchmarks.through": through.stored,
}


def filled(text: str) -> str:
    """A page with its tables as they are stored."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{_table(found[2])}\n\n{found[3]}", text)


def _table(made_by: str) -> str:
    command = next((command for command in COMMANDS if made_by.startswith(command)), None)
    if command is not None:
        shown = COMMANDS[command](made_by.removeprefix(command).split()).markdown()
    else:
        sheets = {f"reproduction/{sheet.name}.md": sheet for sheet in read_sheets(RESULTS / "reproduction")}
        shown = sheets[made_by].without(MISSING).markdown()
    return "\n".join(line for line in shown.splitlines() if line.startswith("|"))


def main() -> None:
    """Write the pages."""
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
