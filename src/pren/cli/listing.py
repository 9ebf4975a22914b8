"""``pren list``: list the names that other verbs take."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Literal

import typer

from pren.cli.options import Json
from pren.cli.output import print_json, say, stdout, table
from pren.foundation.errors import PrenError


def list_names(
    kind: Annotated[Literal["methods", "datasets", "backbones", "encoders"], typer.Argument(help="What to list.")],
    pattern: Annotated[str, typer.Argument(metavar="[GLOB]", help="Only names that match, such as 'pren*'.")] = "*",
    stages: Annotated[
        bool, typer.Option("--stages", help="List the stages of one backbone, for --train-from.")
    ] = False,
    json: Json = False,
) -> None:
    """List methods, data sets, backbones or text encoders."""
    if stages:
        _list_stages(kind, pattern, json)
        return
    if kind == "methods":
        from pren.methods.registry import list_methods

        rows = [(entry.name, entry.summary) for entry in list_methods(pattern)]
    elif kind == "backbones":
        from pren.images.backbones import find_backbone, list_backbones

        if not json:
            _show_tried(pattern)
        rows = [(name, find_backbone(name).summary) for name in list_backbones(pattern)]
    elif kind == "encoders":
        from pren.data.describe import list_encoders

        rows = list(list_encoders(pattern).items())
    else:
        from pren.data import DATASETS, list_datasets

        rows = [(name, DATASETS[name].summary) for name in list_datasets(pattern)]
    if json:
        print_json([{"name": name, "summary": summary} for name, summary in rows])
    else:
        stdout().print(table(["name", "what it is"], rows, 2))


def _show_tried(pattern: str) -> None:
    """Print what is known of backbones that were tried, the best first."""
    from pren.images.tried import TRIED

    tried = [(name, known) for name, known in TRIED.items() if fnmatchcase(name, pattern)]
    if not tried:
        return
    head = ["tried", "pixels", "features", "parameters", "ms each", "CUB", "trained on", "licence", "weights"]
    rows = [
        (
            name,
            *(str(known.size), str(known.features), f"{known.parameters:.1f} M"),
            *(f"{known.milliseconds:.0f}", f"{known.folds:.1f}", known.training, known.licence, known.source),
        )
        for name, known in sorted(tried, key=lambda entry: -entry[1].folds)
    ]
    stdout().print(table(head, rows, 9))
    say("CUB: right labels of validation classes, per cent. ms: of one core, in OpenVINO.")
    say("'foundation': trained on more than ImageNet-1k, maybe on the classes that play unseen ones in a benchmark.")
    say("")


def _list_stages(kind: str, name: str, json: bool) -> None:
    """List where a backbone can be cut."""
    from pren.images.finetune.tails import stages_of

    if kind != "backbones":
        raise PrenError("option-conflict", "Only backbones have stages: pren list backbones --stages NAME.")
    found = stages_of(name)
    if json:
        print_json([{"name": s.name, "shape": list(s.shape), "bytes": s.bytes_per_image} for s in found])
        return
    if not found:
        raise PrenError("stages-unknown", f"The stages of {name} are not known: train all of it, or keep it frozen.")
    count = len(found)
    rows = [
        (s.name, str(count - place), " x ".join(map(str, s.shape)), f"{s.bytes_per_image / 1024:.0f} KB")
        for place, s in enumerate(found)
    ]
    stdout().print(table(["stage", "from the end", "input", "cache per photograph"], rows))
