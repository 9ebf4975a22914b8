"""For the site: notebooks become pages, as GitHub shows them, by nothing but MkDocs itself."""

import json
from pathlib import Path

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page


class Notebook(File):
    """A notebook in the place of a page."""

    def is_documentation_page(self) -> bool:
        """It is one."""
        return True


def on_files(files: Files, config) -> Files:
    """Take every notebook for a page; links lead to it, as they do on GitHub."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            files.remove(file)
            files.append(Notebook(file.src_uri, config.docs_dir, config.site_dir, config.use_directory_urls))
    return files


def on_page_read_source(page: Page, config) -> str | None:
    """The Markdown of a notebook; other pages are read as they are."""
    if not isinstance(page.file, Notebook):
        return None
    cells = json.loads(Path(page.file.abs_src_path).read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in parts_of(cell))


def parts_of(cell: dict) -> list[str]:
    """A cell, and below it what it has put out."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [fenced(source, "python"), *(shown(output) for output in cell["outputs"])]


def shown(output: dict) -> str:
    """An output: a picture if it is one, else its text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="What the cell above shows" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    return fenced("".join(output.get("text") or data["text/plain"]), 'text title="Output"')


def fenced(text: str, language: str) -> str:
    """A block of code; four ticks, because text may hold three."""
    return f"````{language}\n{text.rstrip()}\n````"
