"""``pren data``: what is known about data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pren.cli.options import Json
from pren.cli.output import print_json, safe, show_log, stdout, table

if TYPE_CHECKING:
    from pren.data.survey import ImageCounts

app = typer.Typer(name="data", help="Look at data sets.", no_args_is_help=True, rich_markup_mode=None)

COUNTS = ("seen", "unseen", "trainval", "test_seen", "test_unseen")


@app.callback()
def _group() -> None:
    """Look at data sets."""  # without a callback, a single command would take the group's place


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See 'pren list datasets'.")],
    root: Annotated[str | None, typer.Option(help="The folder with the data; $PREN_DATA by default.")] = None,
    json: Json = False,
) -> None:
    """Show what there is of a data set, what is missing and where it is published."""
    show_log()
    from pren.data import survey

    found = survey(name, root)
    if json:
        print_json(found.to_dict())
        return
    console = stdout()
    console.print(f"[bold]{safe(found.name)}[/]: {safe(found.summary)}", soft_wrap=True)
    if found.root is not None:
        console.print(f"Folder: {safe(found.root)}", soft_wrap=True)
    if found.splits:
        header = ["split", "folds", "seen classes", "unseen", "trainval images", "test seen", "test unseen"]
        rows = [
            [
                split.split,
                " ".join(map(str, split.folds)) or "-",
                *("-" if getattr(split, count) is None else getattr(split, count) for count in COUNTS),
            ]
            for split in found.splits
        ]
        console.print(table(header, rows, 2))
    for split in found.splits:
        if split.sha256 is not None:
            console.print(f"sha256 of {safe(split.split)}: {split.sha256}", soft_wrap=True)
    for file, shape in found.features.items():
        console.print(f"Features: {safe(file)} ({' x '.join(map(str, shape))})", soft_wrap=True)
    if found.images is not None:
        console.print(f"Images: {safe(_images(found.images))}", soft_wrap=True)
    for sentence in found.missing:
        console.print(f"Missing: {safe(sentence)}", soft_wrap=True)
    if found.missing and found.published:
        console.print(safe(found.published), soft_wrap=True)


def _images(images: ImageCounts) -> str:
    """How many photographs there are, and where the others can be had."""
    if images.folder is None:
        count = "none" if images.listed is None else f"none of {images.listed}"
        return f"{count}, looked for in {', '.join(images.looked)}. {images.published}"
    if images.found is None:
        return f"in {images.folder}, but nothing says which is which."
    missing = f" {images.published}" if images.found != images.listed else ""
    return f"{images.found} of {images.listed} in {images.folder}.{missing}"
