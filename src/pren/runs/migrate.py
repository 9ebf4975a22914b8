"""Bring run folders and models of older versions up to date: into a new folder, the old one stays as it is.

Format 1 (before 0.2): no checksums, no identity, and `accelerator` among PrEN's parameters.
Format 2: see `pren.runs.folder`.

A new format adds one function to `STEPS`, which takes a folder from the format before it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pren.errors import PrenError
from pren.files import WRITING, check_links, new_folder, read_bytes, write_bytes
from pren.methods.storage import MODEL_FILE, load_model, read_model, write_model
from pren.runs.checkpoint import FILES, latest_checkpoint
from pren.runs.config import MOST_BYTES, parse_config, yaml_mapping
from pren.runs.folder import CONFIG_FILE, RunFolder, result_files
from pren.runs.lock import LOCK
from pren.runs.manifest import FORMAT, check_format, with_checksum, write_manifest


def migrate(old: str | Path, new: str | Path) -> Path:
    """Write what an older version left in `old` to `new`, as this version writes it.

    Args:
        old: A run folder, or a folder with a model.
        new: A folder that does not exist yet.

    Returns:
        The new folder, which has been read back.

    Raises:
        PrenError: If there is nothing to do, or `old` is damaged, or `new` is there already.
    """
    source, target = Path(old), Path(new)
    is_run = (source / CONFIG_FILE).is_file()
    if not is_run and not (source / MODEL_FILE).is_file():
        raise PrenError(f"{old} holds neither a run nor a model: there is nothing to migrate.")
    if target.exists():
        raise PrenError(f"{new} is there already: choose another folder with --out.")
    if target.resolve().is_relative_to(source.resolve()):
        raise PrenError(f"{new} is within {old}, which stays as it is: choose another folder with --out.")
    check_links(source)
    number = _format(source, is_run)
    if not isinstance(number, int) or number not in STEPS:
        if isinstance(number, int):
            check_format(max(number, FORMAT), old)
        raise PrenError(
            f"{old} is of format {number!r}, and this version of pren writes format {FORMAT}: nothing to do."
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrenError(f"Cannot make the folder {target.parent}: {error.strerror or error}.") from error
    with new_folder(target) as writing:
        # Links stay links, so that one to its own parent is not followed for ever; reading back refuses them.
        ignored = shutil.ignore_patterns(LOCK, f"{WRITING}*")
        shutil.copytree(source, writing, symlinks=True, dirs_exist_ok=True, ignore=ignored)
        try:
            while number in STEPS:
                STEPS[number](writing)
                number += 1
            _read_back(writing, is_run)
        except PrenError as error:  # what is wrong with the copy is wrong with what the user knows
            raise PrenError(str(error).replace(str(writing), str(source))) from error
    return target


def _format(source: Path, is_run: bool) -> Any:
    if is_run:
        path = source / CONFIG_FILE
        return yaml_mapping(read_bytes(path, MOST_BYTES), path).get("format", 1)
    return read_model(source / MODEL_FILE)[1].get("format")


def _read_back(folder: Path, is_run: bool) -> None:
    if is_run:
        run = RunFolder.open(folder)
        run.checkpoint()
    if (folder / MODEL_FILE).exists():
        load_model(folder)


def _from_1(folder: Path) -> None:
    for path in sorted({*folder.glob(MODEL_FILE), *folder.glob(f"checkpoint/*/{MODEL_FILE}")}):
        tensors, facts = read_model(path)
        params = facts.get("params")
        if not isinstance(params, dict):
            raise PrenError(f"{path} is damaged or was not written by pren: it names no parameters.")
        params.pop("accelerator", None)
        write_model(path, tensors, {**facts, "format": 2})
    path = folder / CONFIG_FILE
    if not path.is_file():
        return
    content = yaml_mapping(read_bytes(path, MOST_BYTES), path)
    if isinstance(content.get("params"), dict):
        content["params"].pop("accelerator", None)
    config = parse_config({**content, "format": 2}, str(path))
    config = config.settled(config.record)
    write_bytes(path, with_checksum(config.to_yaml().encode()))
    run = config.record["id"]
    latest = latest_checkpoint(folder / "checkpoint")
    if latest is not None:
        write_manifest(latest, FILES, run)
    if (folder / "predictions.csv").is_file():  # which is how format 1 marked the end
        write_manifest(folder, result_files(folder), run)


STEPS: dict[int, Callable[[Path], None]] = {1: _from_1}
