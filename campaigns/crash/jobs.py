"""The commands that are killed during writes: all that write files."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from campaigns.crash.comparison import differences
from campaigns.crash.talks import LABELS, Talk, heard, predict, review
from campaigns.fuzz.templates import TWO, draw_photographs, problem
from pren.cli.options import parse_assignments
from pren.images.cache import ROWS_FILE
from pren.images.extraction import Extractor
from pren.images.torchvision_operators import import_timm
from pren.label.job import ROWS
from pren.label.parts import parts_folder
from pren.runs.run import run_config
from pren.store.config import RunConfig

SMALL = (
    "heads=4",
    "dim=2",
    "hidden=[16]",
    "rounds=3",
    "initial_batches=2",
    "batches=1",
    "batch_size=8",
    "first_rounds=1",
)
NOT_COMPARABLE = ("seconds", "bytes", "started", "command", "record", "since")  # in the names of keys and columns


@dataclass(frozen=True)
class Job:
    """A command that is killed and resumed.

    Attributes:
        name: For the table.
        command: How it is started; {data}, {many}, {photographs}, {weights}, {out}, {cache} and `RUNS` are
            filled in.
        again: How it goes on once there is a run; None for the same command.
        compare: What differs between two folders that it has written.
        given: Which of `RUNS` is in its folder before it starts; "" for none.
        table: What it makes in its folder, and would refuse to make again; "" for nothing of that kind.
        talk: What is said to it, if it is a server.
    """

    name: str
    command: tuple[str, ...]
    again: tuple[str, ...] | None
    compare: Callable[[Path, Path], Sequence[str]]
    given: str = ""
    table: str = ""
    talk: Talk | None = None

    def ended(self, out: Path) -> bool:
        """Whether the job is finished, so that the command would be refused."""
        table = out / self.table
        return bool(self.table) and table.exists() and not parts_folder(table).exists()

    def make_place(self, place: Path, places: dict[str, str]) -> None:
        """Make its working folder."""
        place.mkdir(parents=True)
        if self.given:
            shutil.copytree(places[self.given], place / "out")

    def arguments(self, places: dict[str, str]) -> list[str]:
        """The arguments of ``pren``."""
        begun = (Path(places["out"]) / "config.yaml").is_file()
        command = self.again if self.again is not None and begun else self.command
        return [argument.format(**places) if "{" in argument else argument for argument in command]


def same_run(reference: Path, folder: Path) -> list[str]:
    """Differences between two runs, except for the place of the cache."""
    return [line for line in differences(reference, folder) if line != "config.yaml: cache differs"]


def _fit(name: str, *arguments: str, again: tuple[str, ...] = ()) -> Job:
    return Job(name, ("fit", *arguments, *again, "--out", "{out}"), ("fit", "--resume", "{out}", *again), same_run)


def same_results(reference: Path, folder: Path) -> list[str]:
    """What differs between the folders of two experiments: names, figures and choices, but no times."""
    names = [
        {path.relative_to(where).as_posix() for path in where.rglob("*") if not path.is_dir()}
        for where in (reference, folder)
    ]
    found = [f"{name} is there in one only" for name in sorted(names[0] ^ names[1])]
    for name in sorted(names[0] & names[1]):
        read = {".json": _json, ".csv": _csv}.get(Path(name).suffix)
        if read is not None and read(reference / name) != read(folder / name):
            found.append(f"{name} differs")
    return found


def _comparable(name: str) -> bool:
    return not any(part in name for part in NOT_COMPARABLE)


def _json(path: Path) -> Any:
    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(part) for key, part in value.items() if _comparable(key)}
        return [bare(part) for part in value] if isinstance(value, list) else value

    return bare(json.loads(path.read_text()))


def _csv(path: Path) -> Any:
    with path.open(newline="") as file:
        return [{key: cell for key, cell in row.items() if _comparable(key)} for row in csv.DictReader(file)]


def same_features(reference: Path, folder: Path) -> list[str]:
    """What differs between two caches of features."""
    files = [sorted(where.rglob(ROWS_FILE)) for where in (reference, folder)]
    if [len(part) for part in files] != [1, 1]:
        return [f"there are {len(files[1])} files with features"]
    return [] if files[0][0].read_bytes() == files[1][0].read_bytes() else ["features differ"]


def same_words(reference: Path, folder: Path) -> list[str]:
    """Differences between what two servers of a run have said, or done to it."""
    said = [] if heard(reference.parent) == heard(folder.parent) else ["other answers"]
    return said + same_run(reference, folder)


def same_review(reference: Path, folder: Path) -> list[str]:
    """Differences between two reviews: journals, labels of the data, and what was learned from them."""
    parts = (f"{part}/{line}" for part in ("run", "photographs") for line in same_run(reference / part, folder / part))
    learned = [(out.parent / LABELS).read_text() for out in (reference, folder)]
    return [*parts, *(["other labels"] if learned[0] != learned[1] else [])]


def _once(name: str, table: str, *command: str, given: str = "") -> Job:
    return Job(name, (*command, "--out", f"{{out}}/{table}"), None, same_run, given=given, table=table)


_PREN = ("--method", "pren", *(f"--set={setting}" for setting in SMALL))
_FROZEN = ("--backbone", "test_resnet", "--weights", "{weights}")
_ESZSL = ("--method", "eszsl", "--rehearsals", "0", "--cache", "{out}-cache")  # what is written there counts, too
_SORTED = ("--cache={cache}", "--sort-into={out}/sorted", "--sort-as=copy")
_BRIEFLY = ("--finetune-epochs", "1", "--finetune-strength", "0.5")
_HERE = ("--no-browser", "--data", "{out}/photographs", "--cache", "{kept}")
_QUICK = (
    _fit("fit", "{data}", *_PREN, "--setting", "gzsl"),
    Job("tune", ("tune", "{data}", "--method", "eszsl", "--trials", "4", "--out", "{out}"), None, same_results),
    _fit("fit, rehearsed", "{data}", *_PREN, "--rehearsals", "2"),
    Job("extract", ("extract", "{photographs}", *_FROZEN, "--cache", "{out}"), None, same_features),
    _fit("fit, continued", "--continue", "{rounds}"),
    Job("report", ("report", "{out}"), None, same_run, given="shown"),
    _once("predict", "labels.csv", "predict", "{out}", "{many}", given="rounds"),
    _fit("fit on photographs", "{photographs}", *_PREN, "--set=backbone=small-cnn"),
    _once("predict, sorted", "labels.parquet", "predict", "{out}", "{photographs}/unlabelled", *_SORTED, given="shown"),
    _fit("fit at once", "{data}", "--method", "eszsl", "--rehearsals", "3"),
    _fit("fit, frozen", "{photographs}", *_PREN, "--frozen", *_FROZEN, "--cache", "{cache}"),
    Job("review", ("review", "{out}/run", *_HERE), None, same_review, given="pile", talk=review),
    Job("serve", ("serve", "{out}", "--port", "0"), None, same_words, given="rounds", talk=predict),
    _once("export", "model.pt2", "export", "{rounds}", "--format", "torch"),
    _once("classes", "new", "classes", "remove", "{rounds}", "a"),
    _fit("fit, finetuned", "{photographs}", *_ESZSL, *_FROZEN, "--finetune", *_BRIEFLY),
    _fit("fit, two backbones", "{photographs}", *_ESZSL, *TWO),
)
# These start processes, which import everything anew: they come once while the others come twice.
_SLOW = (
    # With another number of processes the last bits may differ.
    _fit("fit, two processes", "{data}", *_PREN, "--rehearsals", "0", again=("--devices", "2")),
    Job("compare", ("compare", "{data}", "--methods", "eszsl,sae", "--out", "{out}"), None, same_results),
    Job("reproduce", ("reproduce", "zsl", "--seeds=1", "--params={tiny}", "--out={out}"), None, same_results),
)
JOBS = (*_QUICK, *_SLOW)
ORDER = (*_QUICK, _SLOW[0], *_QUICK, *_SLOW[1:])  # every kind comes early
RUNS = ("rounds", "shown", "pile")
TINY_METHODS = ("pren", "pren-no-projection", "progressive")
TINY = {"heads": 2, "rounds": 1, "hidden": [8], "initial_batches": 1, "batches": 1}


def prepare(folder: Path) -> dict[str, str]:
    """Make the data that all jobs share; returns where they are, by what stands for them in commands."""
    arrays = problem(6)
    np.savez(folder / "data.npz", **arrays)  # type: ignore[arg-type]  # NumPy's stub takes no mapping
    np.save(folder / "many.npy", np.resize(arrays["pool"], (2 * ROWS + 9, *arrays["pool"].shape[1:])))  # three parts
    draw_photographs(folder / "photographs")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        save_file(import_timm().create_model("test_resnet").state_dict(), folder / "weights.safetensors")
    (folder / "tiny.yaml").write_text(json.dumps(dict.fromkeys(TINY_METHODS, TINY)))
    places = {name: str(folder / name) for name in ("photographs", "kept", *RUNS)}
    files = {"data": "data.npz", "many": "many.npy", "weights": "weights.safetensors", "tiny": "tiny.yaml"}
    places |= {name: str(folder / file) for name, file in files.items()}
    params = parse_assignments([*SMALL])
    run_config(RunConfig(data=places["data"], method="pren", params=params, rehearsals=0), places["rounds"])
    extractor = Extractor(backbone="test_resnet", weights=places["weights"])
    own = RunConfig(data=places["photographs"], method="eszsl", rehearsals=2, extractor=extractor, cache=places["kept"])
    run_config(own, places["shown"])
    for part, source in (("run", "shown"), ("photographs", "photographs")):
        shutil.copytree(places[source], folder / "pile" / part)
    return places
