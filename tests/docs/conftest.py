"""The pages of the documentation, and the blocks of code on them."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def name(path):
    return path.relative_to(REPOSITORY).as_posix()


def blocks_of(page):
    """(language, text) of every block; a line that ends in a backslash is one with the next."""
    text = re.sub(r" *\\\n *", " ", page.read_text(encoding="utf-8"))
    return re.findall(r"^```(\w*)\n(.*?)^```\n", text, flags=re.DOTALL | re.MULTILINE)


def blocks(*languages):
    """(page, text) of all blocks in these languages."""
    return [(page, text) for page in PAGES for language, text in blocks_of(page) if language in languages]
