"""``pren extract``: compute the features of photographs and keep them."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pren.cli import options
from pren.cli.bundles import bundled
from pren.cli.launch import Processes, launch
from pren.cli.options import BackboneChoice, Json, Root, parse_assignments, settings_of
from pren.cli.output import Talk, print_json, say, show_log
from pren.cli.progress import extraction
from pren.foundation.errors import PrenError

if TYPE_CHECKING:
    from pren.images.files import ImageFiles
    from pren.runs.settings import Settings
    from pren.training.processes import Fabric


@bundled
def extract(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A folder of photographs, or a name of 'pren list datasets'.")
    ],
    *,
    json: Json = False,
    talk: Talk,
    vision: BackboneChoice,
    root: Root = None,
    data_assignments: options.DataOptions = None,
    workers: Annotated[
        int | None, options.running_option(min=0, help="Processes that decode; chosen by default.")
    ] = None,
    strict: Annotated[
        bool, options.running_option("--strict", help="Stop at the first file that cannot be read.")
    ] = False,
    devices: Annotated[int, options.running_option(min=1, help="Processes that share the files, one per device.")] = 1,
    accelerator: options.Accelerator = "auto",
    threads: options.Threads = None,
) -> None:
    """Compute the features of photographs and keep them in the cache for 'pren fit'."""
    show_log(talk)
    data_options = parse_assignments(data_assignments, "--option", "images=DIR")
    fabric = launch(Processes(devices), accelerator)
    settings = replace(settings_of(vision, data=data, root=root), options=data_options)
    if vision.finetune:
        if strict or workers is not None:
            raise PrenError("option-conflict", "--strict and --workers have no effect with --finetune: omit them.")
        report, show = _finetuned(settings, fabric, talk.quiet), _show_finetuned
    else:
        report, show = _frozen(settings, fabric, talk.quiet, workers, strict), _show
    if fabric.is_global_zero:
        (print_json if json else show)(report)


def _frozen(settings: Settings, fabric: Fabric, quiet: bool, workers: int | None, strict: bool) -> dict[str, Any]:
    """Keep the features of a frozen backbone."""
    from pren.images.duration import announce
    from pren.images.side_by_side import FeatureStore, SideBySide
    from pren.training.processes import agreed

    with agreed(fabric):
        parts = _files(settings)
        frozen = SideBySide.load(settings.extractor())
        store = FeatureStore(settings.cache, frozen)
        if fabric.is_global_zero:
            announce(store, parts, fabric.device, fabric.world_size)
    started = time.perf_counter()
    with extraction(quiet or not fabric.is_global_zero) as on_progress:
        done = [store.extract(files, fabric, workers, strict, on_progress) for files in parts]
    return {
        "images": sum(map(len, parts)),
        "extracted": sum(part.fresh for part in done),
        "seconds": round(time.perf_counter() - started, 3),
        "width": math.prod(frozen.shape),
        "folder": str(store.folder),
        "problems": [reason for part in done for _, reason in part.problems],
        "facts": frozen.facts,
    }


def _finetuned(settings: Settings, fabric: Fabric, quiet: bool) -> dict[str, Any]:
    """Train the backbone on the seen classes, and keep its features."""
    from pren.runs.opening import open_problem

    config = settings.with_backbone(settings.config())
    started = time.perf_counter()
    with extraction(quiet or not fabric.is_global_zero) as on_progress:
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
    say(f"{report['images']} photographs in {report['seconds']:.0f} s, {report['width']} features each.")
    say(f"The backbone is fine-tuned from {how['from']} on, with strength {how['strength']:g}.")
    say("'pren fit DATA --finetune' with the same options uses it and the features.")


def _show(report: dict[str, Any]) -> None:
    fresh, seconds, problems = report["extracted"], report["seconds"], report["problems"]
    rate = f", {fresh / seconds:.0f} photographs/s" if fresh else ""
    say(f"{report['images']} photographs, {fresh} of them extracted now ({seconds:.0f} s{rate}).")
    say(f"Their features ({report['width']} each) are in {report['folder']}.")
    if problems:
        say(f"{len(problems)} files cannot be read and are left out:")
        for reason in problems:
            say(f"  {reason}")


def _files(settings: Settings) -> list[ImageFiles]:
    """The photographs of a data set, or of any folder."""
    data, data_options = str(settings.data), dict(settings.options)
    from pren.data import DATASETS, load
    from pren.data.folder.class_tables import SIGNATURES
    from pren.images.files import ImageFolder, image_files
    from pren.images.photographs import has_photographs
    from pren.runs.settings import wants_images

    if data not in DATASETS and Path(data).is_dir() and not (Path(data) / SIGNATURES).exists():
        return [ImageFolder(data)]
    if wants_images(data, data_options):
        data_options = {**data_options, "images": True}
    problem, _ = load(data, root=settings.root, **data_options)
    if not has_photographs(problem):
        raise PrenError("no-photographs", f"{data} has no photographs to extract features from.")
    return [image_files(problem.train), image_files(problem.pool)]
