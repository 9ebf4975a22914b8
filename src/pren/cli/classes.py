"""``pren classes``: which classes a model knows, and a new model with one more or one less."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import typer

from pren.cli.options import Json
from pren.cli.output import print_json, say, show_log, stdout, table
from pren.foundation.errors import PrenError


def classes(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a model that this verb has written.")],
    action: Annotated[Literal["list", "add", "remove"], typer.Argument(help="What to do.")] = "list",
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The class.")] = None,
    signature: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Its numbers: a .npy file, or a table like signatures.csv that has it."),
    ] = None,
    attributes: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=NUMBER,...", help="Its attributes; others are average.")
    ] = None,
    description: Annotated[
        list[str] | None, typer.Option("--description", metavar="TEXT", help="It in words; repeatable.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the new model goes; by default beside the old one.")
    ] = None,
    json: Json = False,
) -> None:
    """List the classes of a model, or write a model with one more or one less; the old one stays."""
    show_log()
    from pren.runs.classes import Description, add_class, open_model, remove_class, save_beside

    if action != "list" and name is None:
        raise PrenError("class-missing", f"Say which class: pren classes {run} {action} NAME.")
    if action != "add" and (signature is not None or attributes or description):
        raise PrenError("option-conflict", "--signature, --set and --description are for 'add'.")
    model = open_model(run)
    if action == "list" or name is None:
        known = model.method.classes_
        rows = [(known.names[row], "seen" if known.seen[row] else "unseen") for row in range(len(known))]
        if json:
            print_json([{"class": title, "seen": kind == "seen"} for title, kind in rows])
        else:
            stdout().print(table(["class", "has labelled images"], rows, 2))
        return
    if action == "add":
        said = Description(signature, _numbers(attributes or []), description or [])
        changed = add_class(model, name, said)
    else:
        changed = remove_class(model, name)
    there = out or run.absolute().with_name(f"{run.absolute().name}-{'with' if action == 'add' else 'without'}-{name}")
    save_beside(changed, there)
    count = len(changed.method.classes_)
    if json:
        print_json({"out": str(there), "classes": count})
    else:
        say(f"The new model, with {count} classes, is in {there}: 'pren predict' takes it. It gives no confidence.")


def _numbers(assignments: list[str]) -> dict[str, float]:
    """``["striped=1,hooves=0"]`` as names and numbers."""
    numbers: dict[str, float] = {}
    for part in (part for text in assignments for part in text.split(",")):
        key, _, text = part.partition("=")
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not key.strip() or not math.isfinite(number):
            raise PrenError(
                "option-value", f"--set takes attributes and numbers, such as --set striped=1,hooves=0, not {part!r}."
            )
        numbers[key.strip()] = number
    return numbers
