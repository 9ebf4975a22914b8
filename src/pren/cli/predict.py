"""``pren predict``: label new images with a run's model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pren.cli.options import Json, RunPath
from pren.cli.output import print_json, safe, show_log, stdout
from pren.errors import PrenError


def predict(
    run: RunPath,
    inputs: Annotated[Path, typer.Argument(metavar="INPUTS", help="A .npy or .npz file, or a folder of images.")],
    out: Annotated[Path, typer.Option(metavar="FILE.csv", help="Where to write the predictions.")],
    top: Annotated[int, typer.Option(min=1, help="How many classes per image.")] = 5,
    among: Annotated[str | None, typer.Option(help="unseen, seen or all; by default as the model was fitted.")] = None,
    json: Json = False,
) -> None:
    """Label images or feature vectors; one row each, best class first."""
    show_log()
    from pren.data import read_inputs
    from pren.files import write_csv
    from pren.problem import candidates_of
    from pren.runs.folder import RunFolder, top_classes
    from pren.vision.images import ImageFolder
    from pren.vision.preprocessing import plain

    if out.exists():
        raise PrenError(f"{out} already exists: choose another --out or remove it.")
    model = RunFolder.open(run).model()
    if inputs.is_dir():
        images = ImageFolder(inputs, plain(model.sample_shape_))
        names = list(images.names)
        scores = model.scores(images)
    else:
        rows = read_inputs(inputs)
        names = [str(row) for row in range(len(rows))]
        scores = model.scores(rows)
    best, values = top_classes(scores, model.classes_, among or candidates_of(model.setting_), top)
    header = ["input", *(name for rank in range(1, best.shape[1] + 1) for name in (f"class_{rank}", f"score_{rank}"))]
    table = (
        [
            name,
            *(cell for c, s in zip(classes, points, strict=True) for cell in (model.classes_.names[c], float(s))),
        ]
        for name, classes, points in zip(names, best, values, strict=True)
    )
    write_csv(out, header, table)
    if json:
        print_json({"out": str(out), "inputs": len(names), "top": int(best.shape[1])})
    else:
        stdout().print(f"{len(names)} predictions are in {safe(out)}.", soft_wrap=True)
