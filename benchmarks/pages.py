"""Put stored results into the pages that show them: ``python -m benchmarks.pages``.

A page under docs/results marks a table by what makes it. Between ``<!-- begin: reproduction/NAME.md -->`` and
``<!-- end -->`` stands a table of `pren reproduce`, without the columns of data that are missing; after
``<!-- begin: python -m benchmarks.ablations ... -->`` what that command shows.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import ablations
from pren.experiments.reproduction.sheets import read_sheets
from pren.experiments.reproduction.tables import MISSING

RESULTS = Path(__file__).parent.parent / "docs" / "results"
PAGES = (RESULTS / "claims.md", RESULTS / "ablations.md")
BLOCK = re.compile(r"(<!-- begin: (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
ABLATIONS = "python -m benchmarks.ablations "


def filled(text: str) -> str:
    """A page with its tables as they are stored."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{_table(found[2])}\n\n{found[3]}", text)


def _table(made_by: str) -> str:
    if made_by.startswith(ABLATIONS):
        shown = ablations.stored(made_by.removeprefix(ABLATIONS).split()).markdown()
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
