"""``pren fit``: train a method and leave a run folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pren.cli import options
from pren.cli.launch import Processes, is_worker, join, run_workers, started_by_torchrun
from pren.cli.options import DataOptions, Features, Json, Root, SettingName, Split
from pren.cli.output import print_json, show_log
from pren.cli.progress import extraction, resumable, rounds
from pren.cli.vision import BackboneName, CacheFolder, GeometryName, WeightsFile, chosen, wants_images
from pren.errors import PrenError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from pren.runs.config import RunConfig


def fit(
    data: Annotated[str | None, options.Data] = None,
    root: Root = None,
    split: Split = None,
    setting: SettingName = None,
    features: Features = None,
    data_assignments: DataOptions = None,
    backbone: BackboneName = None,
    weights: WeightsFile = None,
    geometry: GeometryName = None,
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Train on the features of a backbone that stays as it is, once extracted.")
    ] = False,
    cache: CacheFolder = None,
    method: Annotated[str | None, typer.Option(help="See 'pren list methods'; pren by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same model.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder; by default a name under runs/.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run in --out.")] = False,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any parameter of the method; repeatable.")
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="Processes on this machine, each on a device of its own.")] = 1,
    nodes: Annotated[int, typer.Option(min=1, help="Machines; start the same command on each of them.")] = 1,
    node_rank: Annotated[int, typer.Option(min=0, help="Which of the machines this is, from 0.")] = 0,
    main_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where the others find machine 0.")
    ] = None,
    accelerator: options.AcceleratorName = options.Accelerator.auto,
    config: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Settings; other options win.")] = None,
    json: Json = False,
) -> None:
    """Train a method, label the pool and keep the model."""
    show_log()
    params = options.parse_assignments(assignments or [])
    data_options = options.parse_data_options(data_assignments, features)
    if seed is not None:
        params["seed"] = seed
    processes = started_by_torchrun() or Processes(devices, nodes, node_rank, main_address)
    if processes.several and not is_worker() and not started_by_torchrun():
        raise typer.Exit(run_workers(processes))

    from pren.cli.summary import run_summary, show_summary
    from pren.methods.registry import get_entry
    from pren.runs.folder import RunFolder
    from pren.runs.train import train
    from pren.vision.backbones import check_backbone

    given: dict[str, Any] = {"data": data, "root": root, "split": split, "setting": setting, "method": method}
    given["cache"] = None if cache is None else str(cache)
    vision = chosen(backbone, weights, geometry)
    if (vision or frozen) and wants_images(data, data_options):
        data_options["images"] = True
    if frozen:
        given["extractor"] = vision
    else:
        params |= vision

    def read_config() -> RunConfig:
        if vision and not frozen and not resume:
            _check_trains_a_backbone(method or "pren")
        if backbone is not None:
            check_backbone(backbone)  # before all images are looked at
        base = RunFolder.open(out).config().model_dump() if resume and out is not None else None
        return options.build_config(config, given, params, base, data_options).resolved()

    fabric = join(processes, accelerator.value)
    wanted = _agree(fabric, read_config)
    quiet = not fabric.is_global_zero
    folder = out or _default_folder(wanted)
    command = shlex.join(["pren", *sys.argv[1:]])
    title = f"{get_entry(wanted.method).title} on {wanted.data}"
    with (
        rounds(title, wanted.params.get("rounds") or wanted.params.get("epochs", 0), quiet) as on_round,
        extraction(quiet) as on_extract,
        resumable(folder, quiet),
    ):
        run = train(
            wanted, folder, resume=resume, command=command, on_round=on_round, on_extract=on_extract, fabric=fabric
        )
    if quiet:
        return
    summary = run_summary(run)
    if json:
        print_json(summary)
    else:
        show_summary(summary)


def _default_folder(config: RunConfig) -> Path:
    """A name that tells runs apart: runs/cub-PS-gzsl-fold=1-pren-0."""
    setting = [config.setting] if config.setting != "zsl" else []
    if config.extractor is not None:
        backbone = [f"frozen-{config.extractor.backbone}"]
    else:
        backbone = [config.params["backbone"]] if config.params.get("backbone") else []
    # That it is images shows in the backbone.
    options = {key: value for key, value in config.options.items() if key != "images"}
    chosen = [f"{key}={Path(str(value)).stem}" for key, value in sorted(options.items())]
    split = [config.split] if config.split else []
    seed = str(config.params.get("seed", 0))
    name = Path(config.data).resolve().stem  # also of "."
    return Path("runs") / "-".join([name, *split, *setting, *backbone, *chosen, config.method, seed])


def _check_trains_a_backbone(method: str) -> None:
    from pren.methods.end_to_end import EndToEnd
    from pren.methods.registry import get_entry

    entry = get_entry(method)
    if not issubclass(entry.method, EndToEnd):
        raise PrenError(f"{entry.title} does not train a backbone: add --frozen to give it the features of one.")


def _agree(fabric: Fabric, read_config: Callable[[], RunConfig]) -> RunConfig:
    """What to do, in every process; the first one alone needs the files that say it."""
    if fabric.world_size == 1:
        return read_config()
    from pren.processes import share_text, together, watching
    from pren.runs.config import RunConfig

    text = ""
    with watching(fabric):
        with together(fabric):
            if fabric.is_global_zero:
                text = _as_json(read_config())
        return RunConfig.model_validate_json(share_text(fabric, text)).resolved()


def _as_json(config: RunConfig) -> str:
    try:
        return config.model_dump_json()
    except ValueError as error:  # half a character in a name, for example
        raise PrenError(f"These settings cannot be passed on to other processes: {error}") from error
