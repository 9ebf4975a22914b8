"""PrEN with its whole backbone: ``python -m benchmarks.through [RUN ...] [--stored DATA | --rounds CELL]``.

A RUN is a folder of `pren fit`, finished or not; what it has found is kept as a cell under docs/results/through.
``--models DIR`` says where copies of its checkpoints are (round-0000, round-0001, ...), of which `pren` keeps the last:
with them the cell also says how far the pool lies from the labelled photographs after each round. PREN_DATA says
where they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Table
from pren.methods.registry import create
from pren.methods.storage import load_model
from pren.problem import Problem
from pren.store.config import RunConfig
from pren.store.folder import RunFolder

STORE = Path(__file__).parent.parent / "docs" / "results" / "through"
LOOKED_AT = 600  # photographs of each side
SPLITS = 20  # of the seen classes, to compare with
Features = NDArray[np.float64]


def keep(folder: Path, models: Path | None = None) -> Path:
    """Keep the cell of a run."""
    run = RunFolder.open(folder)
    config, state = run.config(), run.checkpoint()
    assert state is not None
    usual = create(config.method).get_params()
    changed = {name: value for name, value in config.params.items() if value != usual[name] and name != "seed"}
    rounds = [row | known for row, known in zip(run.history(), run.rounds_by_answers(), strict=True)]
    figures = run.figures()
    cell = {
        "method": config.method,
        "changed": changed,
        "rounds_wanted": config.params["rounds"],
        "seconds": round(sum(state.state.timings)),
        "top1": None if figures is None else figures.top1,
        "rounds": rounds,
        "away": [] if models is None else list(_away(config, models)),
    }
    data = f"fold{config.options['fold']}" if "fold" in config.options else config.split
    short = "".join(f"-{name}={value}" for name, value in sorted(changed.items()) if name not in ("backbone", "heads"))
    file = STORE / f"{config.method}{short}_{data}_{config.params['seed']}.json"
    STORE.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(cell, indent=1) + "\n")
    return file


def _away(config: RunConfig, models: Path) -> Iterator[dict[str, float]]:
    """For each checkpoint: how far the pool's centre is from that of the labelled photographs."""
    problem, _ = config.load_data()
    rng = np.random.default_rng(31)
    ours, theirs = (np.sort(rng.permutation(len(part))[:LOOKED_AT]) for part in (problem.train, problem.pool))
    for folder in sorted(models.glob("round-*")):
        yield {"round": int(folder.name[-4:]), **centres(load_model(folder), problem, ours, theirs)}


def centres(method: Any, problem: Problem, ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> dict[str, float]:
    """Squared distance of two centres of features, as a share of the spread of photographs.

    Returns:
        "pool": labelled photographs and those of the pool; "seen": those of as large a share of the seen classes and of
        the other seen ones, drawn several times, which is what other classes alone explain.
    """
    train, pool = method.embed(problem.train.select(ours)), method.embed(problem.pool.select(theirs))
    spread, labels, rng = float(train.var(axis=0).sum()), problem.labels[ours], np.random.default_rng(7)
    seen = np.unique(labels)
    part = max(1, round(len(seen) * float(problem.classes.unseen.mean())))
    splits = [np.isin(labels, rng.permutation(seen)[:part]) for _ in range(SPLITS)]
    chance = [_apart(train[~some], train[some]) for some in splits]
    return {"pool": _apart(train, pool) / spread, "seen": float(np.mean(chance)) / spread}


def _apart(a: Features, b: Features) -> float:
    return float(((a.mean(axis=0) - b.mean(axis=0)) ** 2).sum())


def runs(data: str) -> Table:
    """The runs on some data, a row each."""
    made = Table(
        f"Whole backbone, {data}", ["method, parameters", "seed", "rounds", "loss", "right pseudo-labels", "Top-1"]
    )
    for file in sorted(STORE.glob(f"*_{data}_*.json")):
        cell = json.loads(file.read_text())
        last = cell["rounds"][-1]
        said = ", ".join(f"{name}={value}" for name, value in cell["changed"].items() if name != "backbone")
        made.rows.append(
            [
                ", ".join(filter(None, [cell["method"], said])),
                file.stem.rsplit("_", 1)[1],
                f"{last['round']} of {cell['rounds_wanted']}",
                f"{last['loss']:.1f}",
                _per_cent(last.get("precision")),
                _per_cent(cell["top1"]),
            ]
        )
    return made


def by_round(name: str) -> Table:
    """The rounds of a cell, a row each."""
    cell = json.loads((STORE / f"{name}.json").read_text())
    away = {row["round"]: row for row in cell["away"]}
    header = ["round", "loss", "Top-1 before it", "right pseudo-labels", "heads that agree", "pool away", "by chance"]
    made = Table(name, header)
    for row in cell["rounds"]:
        here = away.get(row["round"], {})
        shares = [
            row.get("top1_before"),
            row.get("precision"),
            row.get("agreement"),
            here.get("pool"),
            here.get("seen"),
        ]
        made.rows.append([str(row["round"]), f"{row['loss']:.1f}", *map(_per_cent, shares)])
    return made


def _per_cent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def stored(arguments: Sequence[str]) -> Table:
    """What is kept, of data or of a cell: ``--stored DATA`` or ``--rounds CELL``."""
    option, name = arguments
    return runs(name) if option == "--stored" else by_round(name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Keep the cells of runs, and show what is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.through")
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="a folder of 'pren fit'")
    parser.add_argument("--models", type=Path, metavar="DIR", help="copies of the checkpoints of the RUN")
    parser.add_argument("--stored", metavar="DATA", help="show the runs on PS, SS, fold1, ...")
    parser.add_argument("--rounds", metavar="CELL", help="show the rounds of a cell")
    options = parser.parse_args(arguments)
    for folder in options.runs:
        print(keep(folder, options.models))
    for option in ("stored", "rounds"):
        if (name := getattr(options, option)) is not None:
            print(stored((f"--{option}", name)).markdown(), end="\n\n")


if __name__ == "__main__":
    main()
