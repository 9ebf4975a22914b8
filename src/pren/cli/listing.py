"""``pren list``: what there is."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from pren.cli.options import Json
from pren.cli.output import print_json, stdout, table


def list_names(
    kind: Annotated[Literal["methods", "datasets", "backbones", "encoders"], typer.Argument(help="What to list.")],
    pattern: Annotated[str, typer.Argument(metavar="[GLOB]", help="Only names that match, such as 'pren*'.")] = "*",
    json: Json = False,
) -> None:
    """List methods, data sets, backbones or text encoders."""
    if kind == "methods":
        from pren.methods.registry import list_methods

        rows = [(entry.name, entry.summary) for entry in list_methods(pattern)]
    elif kind == "backbones":
        from pren.vision.backbones import find_backbone, list_backbones

        rows = [(name, find_backbone(name).summary) for name in list_backbones(pattern)]
    elif kind == "encoders":
        from pren.signatures import list_encoders

        rows = list(list_encoders(pattern).items())
    else:
        from pren.data import DATASETS, list_datasets

        rows = [(name, DATASETS[name].summary) for name in list_datasets(pattern)]
    if json:
        print_json([{"name": name, "summary": summary} for name, summary in rows])
    else:
        stdout().print(table(["name", "what it is"], rows, 2))
