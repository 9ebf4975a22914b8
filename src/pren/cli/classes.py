"""``pren classes``: list the classes of a model, or make a model with one more or one less."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pren.cli.options import Json
from pren.cli.output import Talk, print_json, say, show_log, stdout, table
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.runs.classes import Model

app = typer.Typer(name="classes", help="List the classes of a model, add one or remove one.", no_args_is_help=True)

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a folder that 'pren classes' wrote.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the class.")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="The new folder; by default beside the old one.")]


@app.command("list")
def list_classes(run: Run, json: Json = False) -> None:
    """List the classes of a model."""
    show_log(Talk())
    from pren.runs.classes import open_model

    known = open_model(run).method.classes_
    rows = [(known.names[row], "seen" if known.seen[row] else "unseen") for row in range(len(known))]
    if json:
        print_json([{"class": title, "seen": kind == "seen"} for title, kind in rows])
    else:
        stdout().print(table(["class", "has labelled photographs"], rows, 2))


@app.command("add")
def add(
    run: Run,
    name: Name,
    description: Annotated[
        list[str] | None, typer.Option("--description", metavar="TEXT", help="A sentence about the class. Repeat.")
    ] = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option("--attributes", metavar="NAME=NUMBER,...", help="Its attributes. Others get the average."),
    ] = None,
    signature: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .npy file with all numbers of the class, or a table like signatures.csv."),
    ] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Write a new model that knows one more class. The old model stays."""
    show_log(Talk())
    from pren.runs.classes import Description, add_class, open_model

    said = Description(signature, _numbers(attributes or []), description or [])
    _save(add_class(open_model(run), name, said), out or _beside(run, "with", name), json)


@app.command("remove")
def remove(run: Run, name: Name, out: Out = None, json: Json = False) -> None:
    """Write a new model that knows one class less. The old model stays."""
    show_log(Talk())
    from pren.runs.classes import open_model, remove_class

    _save(remove_class(open_model(run), name), out or _beside(run, "without", name), json)


def _beside(run: Path, how: str, name: str) -> Path:
    return run.absolute().with_name(f"{run.absolute().name}-{how}-{name}")


def _save(model: Model, out: Path, json: bool) -> None:
    from pren.runs.classes import save_beside

    save_beside(model, out)
    count = len(model.method.classes_)
    if json:
        print_json({"out": str(out), "classes": count})
    else:
        say(f"The new model, with {count} classes, is in {out}. Use it with 'pren predict'. It gives no confidence.")


def _numbers(assignments: list[str]) -> dict[str, float]:
    """Turn ``["striped=1,hooves=0"]`` into names and numbers."""
    numbers: dict[str, float] = {}
    for part in (part for text in assignments for part in text.split(",")):
        key, _, text = part.partition("=")
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not key.strip() or not math.isfinite(number):
            raise PrenError("option-value", f"--attributes takes NAME=NUMBER, such as striped=1,tail=0, not {part!r}.")
        numbers[key.strip()] = number
    return numbers
