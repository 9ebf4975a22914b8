"""``pren predict``: label new images with a run's model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pren.cli.options import Json, RunPath
from pren.cli.output import print_json, safe, show_log, stdout
from pren.cli.vision import CacheFolder, WeightsFile
from pren.errors import PrenError

if TYPE_CHECKING:
    from pren.inputs import Inputs
    from pren.methods.base import Method
    from pren.vision.images import ImageFiles


def predict(
    run: RunPath,
    inputs: Annotated[Path, typer.Argument(metavar="INPUTS", help="A .npy or .npz file, or a folder of images.")],
    out: Annotated[Path, typer.Option(metavar="FILE.csv", help="Where to write the predictions.")],
    top: Annotated[int, typer.Option(min=1, help="How many classes per image.")] = 5,
    weights: WeightsFile = None,
    cache: CacheFolder = None,
    among: Annotated[str | None, typer.Option(help="unseen, seen or all; by default as the model was fitted.")] = None,
    json: Json = False,
) -> None:
    """Label images or feature vectors; one row each, best class first."""
    show_log()
    from pren.data import read_inputs
    from pren.files import write_csv
    from pren.problem import candidates_of
    from pren.runs.folder import RunFolder
    from pren.scoring import top_classes

    if out.exists():
        raise PrenError(f"{out} already exists: choose another --out or remove it.")
    model = RunFolder.open(run).model()
    if inputs.is_dir():
        names, images = _readable(inputs, model)
        scores = model.scores(_as_trained(images, model, weights, cache))
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


def _readable(folder: Path, model: Method) -> tuple[list[str], ImageFiles]:
    """The names of the images that can be read, and the images; of the others, a warning speaks."""
    import logging

    import numpy as np

    from pren.vision.images import ImageFolder
    from pren.vision.photographs import unreadable_files
    from pren.vision.preprocessing import plain

    if model.extractor_ is not None:
        images = ImageFolder(folder)  # its backbone will say what to bring them to
    else:
        images = ImageFolder(folder, model.preprocessing_ or plain(model.sample_shape_))
    bad = dict(unreadable_files(images))
    for reason in bad.values():
        logging.getLogger(__name__).warning("%s", reason)
    if len(bad) == len(images):
        raise PrenError(f"None of the {len(images)} images in {folder} can be used: {bad[0]}")
    names = [name for place, name in enumerate(images.names) if place not in bad]
    return names, images.select(np.delete(np.arange(len(images)), list(bad)))


def _as_trained(images: ImageFiles, model: Method, weights: str | None, cache: Path | None) -> Inputs:
    """The images, or their features if it is those that the model was trained on."""
    if model.extractor_ is None:
        return images
    from pren.engine.processes import single_process
    from pren.vision.photographs import features_for

    return features_for(model.extractor_, images, single_process(), weights, cache)
