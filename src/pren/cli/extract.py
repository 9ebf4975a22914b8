"""``pren extract``: the features of photographs, once and for all."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pren.cli import options
from pren.cli.launch import Processes, launch
from pren.cli.options import DataOptions, Json, Root
from pren.cli.output import print_json, say, show_log
from pren.cli.progress import extraction
from pren.cli.vision import (
    BackboneChoice,
    BackboneName,
    Epochs,
    Finetune,
    GeometryName,
    MirroredToo,
    Strength,
    TargetsName,
    TrainFrom,
    WeightsFile,
    wants_images,
)
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from pren.images.files import ImageFiles


def extract(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A registered name, or a folder with images.")],
    backbone: BackboneName = None,
    weights: WeightsFile = None,
    geometry: GeometryName = None,
    mirrored: MirroredToo = False,
    root: Root = None,
    data_assignments: DataOptions = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to keep them; $PREN_CACHE or ~/.cache/pren by default.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Processes that read and decode; as many as suit by default.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first file that cannot be read.")] = False,
    devices: Annotated[int, typer.Option(min=1, help="Processes, each on a device of its own, share the files.")] = 1,
    finetune: Finetune = False,
    train_from: TrainFrom = None,
    strength: Strength = None,
    epochs: Epochs = None,
    targets: TargetsName = None,
    accelerator: options.Accelerator = "auto",
    threads: options.Threads = None,
    json: Json = False,
) -> None:
    """Turn photographs into features with a frozen backbone; 'pren fit DATA --backbone NAME --frozen' uses them."""
    show_log()
    data_options = options.parse_assignments(data_assignments or [], "--option", "images=DIR")
    fabric = launch(Processes(devices), accelerator)
    choice = BackboneChoice(
        backbone, weights, geometry, False, out, train_from, finetune, strength, epochs, targets, mirrored
    )
    if finetune:
        if strict or workers is not None:
            raise PrenError(
                "option-conflict", "--strict and --workers are for features of a frozen backbone: leave them out."
            )
        found = _finetuned(data, root, data_options, choice, fabric)
        if fabric.is_global_zero:
            (print_json if json else _show_finetuned)(found)
        return
    from pren.images.extraction import WORKERS
    from pren.images.side_by_side import FeatureStore, SideBySide
    from pren.training.processes import agreed

    with agreed(fabric):
        parts = _files(data, root, data_options)
        frozen = SideBySide.load(choice.extractor())
        store = FeatureStore(out, frozen)
    started, number = time.perf_counter(), WORKERS if workers is None else workers
    with extraction(not fabric.is_global_zero) as on_progress:
        done = [store.extract(files, fabric, number, strict, on_progress) for files in parts]
    if fabric.is_global_zero:
        report = {
            "images": sum(map(len, parts)),
            "extracted": sum(part.fresh for part in done),
            "seconds": round(time.perf_counter() - started, 3),
            "width": math.prod(frozen.shape),
            "folder": str(store.folder),
            "problems": [reason for part in done for _, reason in part.problems],
            "facts": frozen.facts,
        }
        (print_json if json else _show)(report)


def _finetuned(
    data: str, root: str | None, data_options: dict[str, Any], choice: BackboneChoice, fabric: Fabric
) -> dict[str, Any]:
    """Let the backbone learn the seen classes of a data set, and keep the features that it makes then."""
    from pren.runs.config import RunConfig
    from pren.runs.opening import open_problem

    config = choice.applied(RunConfig(data=data, root=root, options=data_options))
    started = time.perf_counter()
    with extraction(not fabric.is_global_zero) as on_progress:
        problem, _ = open_problem(config, fabric, on_progress)
    return {
        "images": len(problem.train) + len(problem.pool),
        "seconds": round(time.perf_counter() - started, 3),
        "width": math.prod(problem.train.sample_shape),
        "finetuning": problem.source["finetuning"],
        "facts": (problem.extractor or {})["facts"],
    }


def _show_finetuned(report: dict[str, Any]) -> None:
    how = report["finetuning"]
    say(f"{report['images']} images in {report['seconds']:.0f} s, {report['width']} features each.")
    say(f"The backbone has learned the seen classes from {how['from']} on, with strength {how['strength']:g}.")
    say("'pren fit DATA --finetune' with the same options finds what it has learned, and the features.")


def _show(report: dict[str, Any]) -> None:
    fresh, seconds, problems = report["extracted"], report["seconds"], report["problems"]
    rate = f", {fresh / seconds:.0f} images/s" if fresh else ""
    say(f"{report['images']} images, {fresh} of them extracted now ({seconds:.0f} s{rate}).")
    say(f"Their features ({report['width']} each) are in {report['folder']}.")
    if problems:
        say(f"{len(problems)} files cannot be read, and will be left out:")
        for reason in problems:
            say(f"  {reason}")


def _files(data: str, root: str | None, data_options: dict[str, Any]) -> list[ImageFiles]:
    """The photographs of a data set, or of any folder."""
    from pren.data import DATASETS, load
    from pren.data.folder.class_tables import SIGNATURES
    from pren.images.files import ImageFolder, image_files
    from pren.images.photographs import has_photographs

    if data not in DATASETS and Path(data).is_dir() and not (Path(data) / SIGNATURES).exists():
        return [ImageFolder(data)]
    if wants_images(data, data_options):
        data_options = {**data_options, "images": True}
    problem, _ = load(data, root=root, **data_options)
    if not has_photographs(problem):
        raise PrenError("no-photographs", f"{data} has no photographs to extract features from.")
    return [image_files(problem.train), image_files(problem.pool)]
