"""Every rival with its defaults, without tuning: ``python -m benchmarks.defaults [METHOD ...] [--stored]``.

On the validation classes of `numbers-features` and on CUB's three validation folds (PREN_DATA says where CUB is); no
test class takes part. Each run is kept as a cell in a folder of its data under docs/results/defaults, and is computed
once, or taken from a trial of the kept studies that has the same parameters. A cell of other defaults than those of
today is not shown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.tables import Table
from pren.evaluation import evaluate_scores
from pren.methods.registry import METHODS
from pren.research.cells import Result, Task, data_hashes, make_task
from pren.research.folder import STUDY_FILE
from pren.research.store import Store
from pren.research.tuning import Study
from pren.runs.opening import open_problem
from pren.store.config import RunConfig

RESULTS = Path(__file__).parent.parent / "docs" / "results"
STORE, STUDIES = RESULTS / "defaults", RESULTS / "cub-ps-zsl" / "tuned"
FOLDS = tuple(f"fold{fold}" for fold in (1, 2, 3))
DATA = {
    "numbers": RunConfig(data="numbers-features", split="val"),
    **{
        name: RunConfig(data="cub", split="PS", options={"features": "efflite0.mat", "fold": int(name[-1])})
        for name in FOLDS
    },
}
# Not PrEN and its variants; CLIP needs features and signatures of one CLIP model.
OTHERS = {"pren-pool", "pren-vote", "pren", "pren-no-projection", "progressive", "clip"}
RIVALS = tuple(name for name in METHODS if name not in OTHERS)


def task(method: str, data: str, hashes: dict[str, str]) -> Task:
    """A method on some data, with seed 0 if it has randomness."""
    seed = 0 if "seed" in METHODS[method].method.params else None
    return make_task(DATA[data].model_copy(update={"method": method}), hashes, seed)


def tried(wanted: Task) -> float | None:
    """The Top-1 of `pren tune` for this cell; None if it has no such trial."""
    cell, file = wanted.cell, STUDIES / wanted.cell.method / STUDY_FILE
    study = Study.model_validate_json(file.read_bytes()) if file.exists() else None
    if study is None or cell.hashes not in study.what["folds"]:
        return None
    for trial in study.trials:
        same = cell.model_copy(update={"params": {**study.what["fixed"], **trial.params}})
        if same.key() == cell.key() and trial.folds:
            return float(trial.folds[study.what["folds"].index(cell.hashes)])
    return None


def compute(methods: Sequence[str]) -> None:
    """Compute missing results in this process."""
    for data, config in DATA.items():
        problem, answers = open_problem(config)
        assert answers is not None
        hashes, folder = data_hashes(problem, answers), STORE / data
        folder.mkdir(parents=True, exist_ok=True)
        for method in methods:
            wanted, store = task(method, data, hashes), Store(folder)
            if store.get(wanted.cell) is None:
                began = time.process_time()
                top1 = tried(wanted)
                if top1 is None:
                    scores = wanted.config.create_method().fit(problem).scores(problem.pool)
                    top1 = evaluate_scores(scores, answers, problem.classes, problem.setting).top1
                store.put(wanted.cell, Result(figures={"top1": top1}))
                taken = time.process_time() - began
                print(data, method, f"{100 * top1:.1f} ({taken:.0f} s)", file=sys.stderr, flush=True)


def figures(data: str) -> dict[str, float]:
    """The stored Top-1 of every method with its present defaults, per cent."""
    found = {}
    for cell, result in Store.read(STORE / data):
        top1 = result.figures["top1"]
        if top1 is not None and task(cell.method, data, cell.hashes).cell.key() == cell.key():
            found[cell.method] = 100 * top1
    return found


def table(methods: Sequence[str]) -> Table:
    """A row for each method."""
    made = Table("Top-1 with defaults (per cent)", ["method", "fold 1", "fold 2", "fold 3", "mean", "`numbers`, val"])
    known = {data: figures(data) for data in DATA}
    for method in methods:
        folds = [known[fold][method] for fold in FOLDS if method in known[fold]]
        mean = f"{np.mean(folds):.1f}" if len(folds) == len(FOLDS) else "–"
        shown = {data: f"{found[method]:.1f}" if method in found else "–" for data, found in known.items()}
        made.rows.append((METHODS[method].title, *(shown[fold] for fold in FOLDS), mean, shown["numbers"]))
    return made


def stored() -> Table:
    """The stored results."""
    return table(RIVALS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute and show."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults")
    parser.add_argument("methods", nargs="*", metavar="METHOD", default=RIVALS, help="default: all rivals")
    parser.add_argument("--stored", action="store_true", help="show stored results and compute nothing")
    options = parser.parse_args(arguments)
    if not options.stored:
        compute(options.methods)
    print(table(options.methods).markdown())


if __name__ == "__main__":
    main()
