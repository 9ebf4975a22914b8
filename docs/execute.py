"""Execute the notebooks and keep what they put out: `make notebooks`."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))


def execute(path: Path) -> nbformat.NotebookNode:
    """A notebook with fresh outputs; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, record_timing=False, coalesce_streams=True).execute()
    notebook.metadata.language_info = {"name": "python"}  # without the version of whoever executed it
    return notebook


if __name__ == "__main__":
    for path in NOTEBOOKS:
        nbformat.write(execute(path), path)
