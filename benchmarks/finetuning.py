"""What it is worth to train the last stage: ``python -m benchmarks.finetuning [CELL ...] [--stored] [--cache DIR]``.

A CELL is WAY:DATA:SEED. WAY is one of `WAYS`; where a stage learns the seen classes first, that is if it helps
held-out ones, or `=STRENGTH` stands behind it. DATA are `PS`, `SS`, `PS-gzsl`, the validation classes `fold1` to
`fold3`, or `species1` to `species3`: folders of 40 species with ten photographs each. Each cell is kept under
docs/results/finetuning, and never computed twice. PREN_DATA says where CUB's photographs are.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.tables import Table
from pren.data import load
from pren.evaluation import evaluate
from pren.images.files import image_files
from pren.methods.registry import create
from pren.research.cells import peak_memory
from pren.runs.opening import open_problem
from pren.store.config import RunConfig

STORE = Path(__file__).parent.parent / "docs" / "results" / "finetuning"
PREPARED = {"features": "whitened", "refinement": "soft-kmeans"}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "PrEN-Pool": ("pren-pool", {}),
    "ridge": ("ridge-s2v", PREPARED),
    "SJE": ("sje", PREPARED),
    "ALE": ("ale", PREPARED),
}
PREN = "pren"  # with 50 heads; slow, so only if it is named
EACH = 10  # photographs of a species
LITE0, LITE1, LITE2 = (f"tf_efficientnet_lite{size}" for size in range(3))
WAYS: dict[str, dict[str, Any]] = {  # settings of the extractor
    "frozen": {"backbone": LITE0},
    "first": {"backbone": LITE0, "finetune": {}},  # the last stage learns the seen classes; with =0 it is frozen
    "first-two": {"backbone": LITE0, "finetune": {}, "until": "2"},  # the last two stages
    "whole": {"backbone": LITE0, "finetune": {"epochs": 1}, "until": "7"},  # all stages, once over the images
    "jointly": {"backbone": LITE0, "until": "1"},  # PrEN trains the last stage in its rounds
    "mirrored": {"backbone": LITE0, "mirrored": True},
    "lite1": {"backbone": LITE1},
    "lite1-first": {"backbone": LITE1, "finetune": {}},
    "two": {"backbone": f"{LITE0}+{LITE1}"},
    "two-mirrored": {"backbone": f"{LITE0}+{LITE1}", "mirrored": True},
    "three": {"backbone": f"{LITE0}+{LITE1}+{LITE2}"},
    "three-mirrored": {"backbone": f"{LITE0}+{LITE1}+{LITE2}", "mirrored": True},
}
TITLES = {
    "frozen": "Lite0, frozen",
    "mirrored": "Lite0, mirrored",
    "first": "Lite0, last stage learns first",
    "first-two": "Lite0, last two stages learn first",
    "whole": "Lite0, all stages learn first, one epoch",
    "jointly": "Lite0, last stage learns in PrEN's rounds",
    "lite1": "Lite1, frozen",
    "lite1-first": "Lite1, last stage learns first",
    "two": "Lite0 + Lite1, frozen",
    "two-mirrored": "Lite0 + Lite1, mirrored",
    "three": "Lite0 + Lite1 + Lite2, frozen",
    "three-mirrored": "Lite0 + Lite1 + Lite2, mirrored",
}


@contextmanager
def opened(data: str) -> Iterator[RunConfig]:
    """The data of a name, as photographs."""
    if data.startswith("species"):
        with tempfile.TemporaryDirectory() as folder:
            yield RunConfig(data=str(_species(Path(folder, "birds"), int(data[-1]))))
        return
    split, _, setting = data.partition("-")
    options: dict[str, Any] = {"images": True}
    if split.startswith("fold"):
        options["fold"], split = int(split[-1]), "PS"
    yield RunConfig(data="cub", split=split, setting="gzsl" if setting else "zsl", options=options)


def _species(folder: Path, number: int) -> Path:
    """The folders of docs/results/own-photographs.md, with fewer photographs: 32 seen species and 8 unseen ones."""
    problem, answers = load("cub", split="PS", images=True)
    assert answers is not None
    table, start = problem.classes, {1: (5, 0), 2: (1, 1), 3: (3, 2)}[number]
    by_name = np.argsort(np.array(table.names))
    unseen = by_name[table.unseen[by_name]][start[0] :: 6][:8]
    seen = by_name[table.seen[by_name]][start[1] :: 4][:32]
    lines, known = [], ["file,class"]
    for row in [*seen, *unseen]:
        name, labels = table.names[row], problem.labels if table.seen[row] else answers.labels
        files = image_files(problem.train if table.seen[row] else problem.pool)
        for count, place in enumerate(np.flatnonzero(labels == row)[:EACH]):
            source = files.path(int(place))
            assert source is not None
            to = folder / "images" / name / f"{count}.jpg" if table.seen[row] else folder / "unlabelled"
            to = to if table.seen[row] else to / f"{row}-{count}.jpg"
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, to)
            known += [] if table.seen[row] else [f"{to.name},{name}"]
        lines.append(",".join([name, *map(repr, table.signatures[row].tolist())]))
    attributes = ",".join(f"a{place}" for place in range(table.signatures.shape[1]))
    (folder / "signatures.csv").write_text("\n".join([f"class,{attributes}", *lines, ""]))
    (folder / "answers.csv").write_text("\n".join([*known, ""]))
    return folder


def compute(way: str, data: str, seed: int, cache: str | None, methods: Sequence[str]) -> dict[str, Any]:
    """The figures of a cell, and its time."""
    kind, _, strength = way.partition("=")
    extractor = dict(WAYS[kind])
    if "finetune" in extractor:
        how = {"strength": float(strength)} if strength else {}
        extractor["finetune"] = {**extractor["finetune"], "seed": seed, **how}
    began = time.process_time()
    with opened(data) as config:
        asked = RunConfig.model_validate({**config.model_dump(), "extractor": extractor, "cache": cache})
        names = [PREN] if kind == "jointly" else list(methods)
        problem, answers = open_problem(asked, methods=[METHODS.get(name, (name, {}))[0] for name in names])
        assert answers is not None
        found: dict[str, Any] = {}
        prepared = time.process_time() - began
        for name in names:
            method, params = METHODS.get(name, (name, {}))
            fitted = create(method, **params, **({"seed": seed} if "seed" in create(method).params else {}))
            began = time.process_time()
            fitted.fit(problem)
            took = time.process_time() - began
            figures = evaluate(fitted, problem, answers)
            shown = {key: getattr(figures, key) for key in ("top1", "u", "s", "h", "ausuc")}
            found[name] = {"seconds": round(took), **shown}
    note = problem.source.get("finetuning", {})
    cost = {"seconds": round(prepared), "threads": torch.get_num_threads(), "peak_bytes": peak_memory()}
    return {"note": note, **cost, "figures": found}


def _file(way: str, data: str, seed: int) -> Path:
    return STORE / f"{way.replace('=', '-')}_{data}_{seed}.json"


def table(data: str) -> Table:
    """Every way on some data: mean over seeds of Top-1, or of AUSUC in GZSL."""
    figure = "ausuc" if data.endswith("gzsl") else "top1"
    known: dict[str, dict[str, list[float]]] = {}
    for file in sorted(STORE.glob(f"*_{data}_*.json")):
        content = json.loads(file.read_text())
        way = _row(file.name.split("_")[0], content["note"])
        for name, found in content["figures"].items():
            known.setdefault(way, {}).setdefault(name, []).append(100 * found[figure])
    names = [name for name in (*METHODS, PREN) if any(name in row for row in known.values())]
    made = Table(f"{data}: {'AUSUC' if figure == 'ausuc' else 'Top-1'} (per cent)", ["", *names])
    order = list(TITLES.values())
    for way, row in sorted(known.items(), key=lambda item: (order.index(item[0].split(": ")[0]), item[0])):
        made.rows.append((way, *(_shown(row.get(name, [])) for name in names)))
    return made


def _row(way: str, note: dict[str, Any]) -> str:
    """The name of a way. Fine-tuning with strength 0 leaves a network frozen."""
    parts = re.fullmatch(r"(.*?)(-[\d.]+)?", way)
    assert parts is not None
    title = TITLES[parts[1]]
    if not note:
        return title
    if note["strength"] == 0:
        return TITLES["frozen"] if parts[2] else f"{title}: switched off"
    return f"{title}: strength {note['strength']:g}"


def _shown(values: list[float]) -> str:
    if not values:
        return "–"
    spread = f" ± {np.std(values, ddof=1):.1f} ({len(values)})" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{spread}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute missing cells, and show all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.finetuning")
    parser.add_argument("cells", nargs="*", metavar="CELL", help="WAY:DATA:SEED")
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated; also any registered name")
    parser.add_argument("--cache", default=os.environ.get("PREN_CACHE"))
    parser.add_argument(
        "--stored", nargs="*", metavar="DATA", help="show stored results of these data, or all, and compute nothing"
    )
    options = parser.parse_args(arguments)
    STORE.mkdir(parents=True, exist_ok=True)
    for cell in options.cells if options.stored is None else []:
        way, data, seed = cell.split(":")
        file = _file(way, data, int(seed))
        known = json.loads(file.read_text()) if file.exists() else {"figures": {}}
        wanted = [name for name in options.methods.split(",") if name not in known["figures"]]
        if wanted and not (way == "jointly" and known["figures"]):
            found = compute(way, data, int(seed), options.cache, wanted)
            found = found | known | {"figures": known["figures"] | found["figures"]}  # what it took the first time
            file.write_text(json.dumps(found, indent=1) + "\n")
            print(cell, json.dumps(found["figures"]), file=sys.stderr, flush=True)
    for data in options.stored or dict.fromkeys(file.name.split("_")[1] for file in sorted(STORE.glob("*_*.json"))):
        print(table(data).markdown(), end="\n\n")


if __name__ == "__main__":
    main()
