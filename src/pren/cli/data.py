"""``pren data``: show a data set, or check a folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pren.cli.options import Encoder, FollowLinks, Json, Signatures
from pren.cli.output import Talk, print_json, safe, say, show_log, stdout, table

if TYPE_CHECKING:
    from pren.data.survey import ImageCounts

app = typer.Typer(name="data", help="Check a folder of photographs, or show a data set.", no_args_is_help=True)

COUNTS = ("seen", "unseen", "trainval", "test_seen", "test_unseen")


@app.command("check")
def check(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Your folder of photographs.")],
    setting: Annotated[Literal["zsl", "gzsl"], typer.Option(help="gzsl if the pool has seen classes, too.")] = "zsl",
    signatures: Signatures = None,
    encoder: Encoder = None,
    follow_links: FollowLinks = False,
    json: Json = False,
) -> None:
    """List everything that is wrong with your folder. Every photograph is decoded."""
    show_log(Talk())
    from pren.data.folder.check import report_folder

    report = report_folder(folder, setting, signatures, encoder, follow_links)
    if json:
        print_json(asdict(report))
    else:
        for problem in report.problems:
            colour = "red" if problem.severity == "error" else "yellow"
            stdout().print(f"[{colour}]{problem.severity}[/] {safe(problem)}", soft_wrap=True)
        words = f", {report.descriptions} descriptions" if report.descriptions else ""
        words += f", vectors of {report.vectors} numbers" if report.vectors else ""
        missing = f" ({report.missing} numbers missing)" if report.missing else ""
        counts = f"{report.seen} seen and {report.unseen} unseen classes"
        say(f"{folder}: {counts}, {report.attributes} attributes{missing}{words}")
        if len(report.sources) > 1:
            weighed = "; fit finds out how much each counts" if signatures is None else ""
            say(f"described by {' and '.join(report.sources)}{weighed} (--signatures chooses)")
        given = f", {report.given} labels given" if report.given else ""
        say(f"{report.images} labelled photographs, {report.pool} unlabelled{given}, {report.answers} answers")
        if report.ignored:
            ignored = ", ".join(f"{count} {ending}" for ending, count in report.ignored.items())
            say(f"left out, not photographs: {ignored}")
        say(f"errors: {report.errors()}, warnings: {len(report.problems) - report.errors()}")
    if report.errors():
        raise typer.Exit(2)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See 'pren list datasets'.")],
    root: Annotated[str | None, typer.Option(help="The folder of the data; $PREN_DATA by default.")] = None,
    json: Json = False,
) -> None:
    """Show which files of a data set are there, which are missing and where to get them."""
    show_log(Talk())
    from pren.data.survey import survey

    found = survey(name, root)
    if json:
        print_json(asdict(found))
        return
    say(f"{found.name}: {found.summary}", style="bold")
    if found.root is not None:
        say(f"Folder: {found.root}")
    if found.splits:
        header = ["split", "folds", "seen classes", "unseen", "trainval", "test seen", "test unseen"]
        rows = []
        for split in found.splits:
            counts = [getattr(split, count) for count in COUNTS]
            folds = " ".join(map(str, split.folds)) or "-"
            rows.append([split.split, folds, *("-" if count is None else count for count in counts)])
        stdout().print(table(header, rows, 2))
    for split in found.splits:
        if split.sha256 is not None:
            say(f"sha256 of {split.split}: {split.sha256}")
    if found.signatures:
        say(f"Signatures: {', '.join(f'{name} ({shape[0]})' for name, shape in found.signatures.items())}")
    for file, shape in found.features.items():
        say(f"Features: {file} ({' x '.join(map(str, shape))})")
    if found.images is not None:
        say(f"Photographs: {_images(found.images)}")
    for what in found.missing:
        say(f"Missing: {what}")
    if found.missing and found.published:
        say(found.published)


def _images(images: ImageCounts) -> str:
    """How many photographs there are, and where to get the others."""
    if images.folder is None:
        count = "none" if images.listed is None else f"none of {images.listed}"
        return f"{count} in {', '.join(images.looked)}. {images.published}"
    if images.found is None:
        return f"in {images.folder}, but the list of their names is missing."
    missing = f" {images.published}" if images.found != images.listed else ""
    return f"{images.found} of {images.listed} in {images.folder}.{missing}"
