"""What each choice in PrEN is worth: ``python -m benchmarks.ablations [DATA ...] [--heads K] [--seeds N] [--jobs N]``.

DATA are `numbers` (needs nothing), `fold1` to `fold3` (CUB's validation classes), `PS` (its test classes), and each of
them with `-gzsl` behind it. Runs of the same data and seed are paired: the table shows what a choice adds. Each run is
kept under docs/results/ablations, and never computed twice. PREN_DATA says where CUB is.

What the package offers as a parameter is varied as one. The other choices are made once in `pren.core`, and are varied
here by classes that differ in that one thing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.tables import Table
from pren.core.projection import LabelEmbeddings, original, project, resolve_dim, similarity_matrix
from pren.core.pseudo import Classes, PseudoLabels, Scores, top_per_class
from pren.core.voting import Network, ScoreRule, mean_probabilities, vote_shares
from pren.data import load
from pren.evaluation import MAIN_FIGURE, evaluate
from pren.foundation.seeds import stream
from pren.methods.pren import PrEN
from pren.methods.selection import SELECTIONS
from pren.problem import Answers, Problem, Setting

STORE = Path(__file__).parent.parent / "docs" / "results" / "ablations"


class LargestAbsolute(PrEN):
    """Rows of P_k are eigenvectors of the largest |λ|: another reading of "the h largest"."""

    def _label_embeddings(self) -> LabelEmbeddings:
        labels = super()._label_embeddings()
        order = self._order()
        signatures, seen = self.classes_.signatures[order], self.classes_.seen[order]
        for k, Z in enumerate(labels.subsets):
            values, columns = np.linalg.eigh(similarity_matrix(signatures[seen], signatures[Z]))
            largest = np.argsort(-np.abs(values), kind="stable")[: labels.vectors.shape[1]]
            rows = columns.T[largest]
            rows *= np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])[:, None]
            labels.vectors[k] = rows @ signatures.T
        return labels


class SubsetShare(PrEN):
    """Z_k is another share of the unseen classes than half: a head gets those that the fewest have, by chance."""

    share = 0.5

    def _label_embeddings(self) -> LabelEmbeddings:
        order = self._order()
        signatures, seen = self.classes_.signatures[order], self.classes_.seen[order]
        unseen, rng = np.flatnonzero(~seen), stream(self.seed, "subsets")
        size = max(2, math.ceil(self.share * len(unseen)))
        subsets = np.zeros((self.heads, len(seen)), dtype=bool)
        for Z in subsets:
            covered = subsets[:, unseen].sum(axis=0) + rng.random(len(unseen))
            Z[unseen[np.argsort(covered)[:size]]] = True
        h = resolve_dim(self.dim, signatures.shape[1])
        if not self.projection:
            return original(signatures, subsets)
        return project(signatures, seen, subsets, h, self.completion, self.seed)


class Quarter(SubsetShare):
    """A quarter."""

    share = 0.25


class ThreeQuarters(SubsetShare):
    """Three quarters."""

    share = 0.75


class MeanLoss(PrEN):
    """The mean over heads instead of their sum: for Adam the same as K times its ε."""

    def _adam(self, network: Network) -> torch.optim.Adam:
        groups = self._groups(network.backbone, network.ensemble)
        return torch.optim.Adam(groups, betas=(0.9, 0.999), eps=1e-8 * self.heads, fused=True)


class ByIndex(Network):
    """Ties go to the class with the smaller number, within a head and between vote shares."""

    def scores(self, inputs: Tensor, rule: ScoreRule) -> Tensor:
        """As `zsl_scores`, without breaking ties."""
        ensemble = self.ensemble
        similarities = ensemble.similarities(ensemble.activate(ensemble(self.backbone(inputs))))
        votes = similarities.masked_fill(~ensemble.subsets[:, None, :], -torch.inf).argmax(dim=-1)
        shares, p = vote_shares(votes, ensemble.subsets), mean_probabilities(similarities, ensemble.subsets)
        return torch.where(ensemble.subsets.any(dim=0), shares, p)


class ByProbability(Network):
    """Every class scores its mean probability, in the rounds and in the end, without votes."""

    def scores(self, inputs: Tensor, rule: ScoreRule) -> Tensor:
        """As in GZSL."""
        return super().scores(inputs, "probability")


class TiesByIndex(PrEN):
    """See `ByIndex`."""

    def _build(self, tensors: dict[str, Tensor] | None) -> Network:
        network = super()._build(tensors)
        return ByIndex(network.backbone, network.ensemble, network.rule)


class NoVotes(PrEN):
    """See `ByProbability`."""

    def _build(self, tensors: dict[str, Tensor] | None) -> Network:
        network = super()._build(tensors)
        return ByProbability(network.backbone, network.ensemble, network.rule)


def accumulated(
    scores: Scores, candidates: Classes, per_class: int, last: PseudoLabels, progress: float = 1.0
) -> PseudoLabels:
    """Chosen inputs keep their labels; the best of the others join, as many as in the paper's rule."""
    fresh = top_per_class(scores, candidates, per_class, last, progress)
    new = ~np.isin(fresh.images, last.images)
    images = np.concatenate([last.images, fresh.images[new]])
    labels = np.concatenate([last.labels, fresh.labels[new]])
    return PseudoLabels(images, labels)


def _centred(problem: Problem) -> Problem:
    """Signatures minus the mean of the seen classes, scaled to unit length."""
    table = problem.classes
    moved = table.signatures - table.signatures[table.seen].mean(axis=0)
    return _with_signatures(problem, moved / np.linalg.norm(moved, axis=1, keepdims=True))


def _longer(problem: Problem) -> Problem:
    """Signatures of length 4, which makes softmax four times as sharp."""
    return _with_signatures(problem, 4 * problem.classes.signatures)


def _with_signatures(problem: Problem, signatures: NDArray[np.float64]) -> Problem:
    return replace(problem, classes=replace(problem.classes, signatures=signatures))


@dataclass(frozen=True)
class Variant:
    """PrEN with a change.

    Attributes:
        title: Of its row.
        params: That differ.
        method: What to fit.
        change: What is done to the problem.
        against: The variant that it is compared with.
        setting: "zsl", "gzsl", or None for both.
    """

    title: str
    params: dict[str, Any] = field(default_factory=dict)
    method: type[PrEN] = PrEN
    change: Callable[[Problem], Problem] = lambda problem: problem
    against: str = "pren"
    setting: str | None = "zsl"


NO_PROJECTION = {"projection": False}
NO_RELU = {"output_relu": False}
VARIANTS: dict[str, Variant] = {
    "pren": Variant("PrEN, as in the paper", setting=None),
    "no-projection": Variant("without projections", NO_PROJECTION, setting=None),
    "no-relu": Variant("no output ReLU", NO_RELU),
    "no-relu-no-projection": Variant("no output ReLU: without projections", NO_RELU | NO_PROJECTION, against="no-relu"),
    "complement": Variant("completion: complement", {"completion": "complement"}),
    "none": Variant("completion: none", {"completion": "none"}),
    "lapack": Variant("completion: as LAPACK leaves it", {"completion": "lapack"}),
    "absolute": Variant("largest absolute λ instead of largest λ", method=LargestAbsolute),
    "centred": Variant("centred signatures", change=_centred),
    "centred-no-projection": Variant(
        "centred signatures: without projections", NO_PROJECTION, change=_centred, against="centred"
    ),
    "longer": Variant("signatures four times as long", change=_longer),
    "longer-no-projection": Variant(
        "signatures four times as long: without projections", NO_PROJECTION, change=_longer, against="longer"
    ),
    "quarter": Variant("Z_k: a quarter of the classes", method=Quarter),
    "three-quarters": Variant("Z_k: three quarters", method=ThreeQuarters),
    "all": Variant("Z_k: all", {"subsets": "all"}),
    "ties-by-index": Variant("ties by class number", method=TiesByIndex),
    "mean-loss": Variant("mean of the heads' losses", method=MeanLoss),
    "no-votes": Variant("mean probability instead of votes", method=NoVotes),
    "accumulated": Variant("pseudo-labels accumulate", {"selection": "accumulated"}),
    "few": Variant("N_pseudo: ρ = 0.1", {"rho": 0.1}),
    "many": Variant("N_pseudo: ρ = 0.5, at most 50", {"rho": 0.5, "n_max": 50}),
    "literal": Variant("GZSL: the printed rule", {"gzsl_rule": "literal"}, setting="gzsl"),
}


def opened(data: str) -> tuple[Problem, Answers]:
    """The problem with this name."""
    found = re.fullmatch(r"(numbers|PS|fold([123]))(-gzsl)?", data)
    if found is None:
        raise SystemExit(f"There is no {data!r}: take numbers, fold1, fold2, fold3 or PS, and -gzsl behind it.")
    setting: Setting = "gzsl" if found[3] else "zsl"
    if found[1] == "numbers":
        problem, answers = load("numbers-features", setting=setting)
    else:
        fold = None if found[2] is None else int(found[2])
        problem, answers = load("cub", features="efflite0.mat", setting=setting, fold=fold)
    assert answers is not None
    return problem, answers


def advice(data: str) -> dict[str, Any]:
    """Parameters for the data: `numbers` has h = 10, the number of classes of a Z_k, and smaller layers."""
    return {"dim": 10, "hidden": (128, 128)} if data.startswith("numbers") else {}


def figure(name: str, data: str, heads: int, seed: int) -> float:
    """The main figure of one run: Top-1, or H in GZSL."""
    variant = VARIANTS[name]
    if "accumulated" not in SELECTIONS:
        SELECTIONS.register("accumulated")(accumulated)
    problem, answers = opened(data)
    problem = variant.change(problem)
    method = variant.method(**{**advice(data), **variant.params, "heads": heads, "seed": seed}).fit(problem)
    metrics = evaluate(method, problem, answers)
    return float(getattr(metrics, MAIN_FIGURE[problem.setting]))


def _file(name: str, data: str, heads: int, seed: int) -> Path:
    return STORE / f"{data}-K{heads}" / f"{name}-{seed}.json"


def _wanted(data: Sequence[str], names: Sequence[str], heads: int, seeds: int) -> Iterator[tuple[str, str, int, int]]:
    for seed in range(seeds):
        for name in names:
            for place in data:
                setting = "gzsl" if place.endswith("-gzsl") else "zsl"
                if VARIANTS[name].setting in (None, setting):
                    yield name, place, heads, seed


def compute(data: Sequence[str], names: Sequence[str], heads: int, seeds: int, jobs: int) -> None:
    """Compute missing runs, each in its own process with one thread."""

    def run(cell: tuple[str, str, int, int]) -> None:
        name, place, _, seed = cell
        arguments = ["--one", name, place, "--heads", str(heads), "--seeds", str(seed)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run([sys.executable, "-m", "benchmarks.ablations", *arguments], check=True, env=environment)

    with ThreadPoolExecutor(jobs) as pool:
        missing = [cell for cell in _wanted(data, names, heads, seeds) if not _file(*cell).exists()]
        for cell, _ in zip(missing, pool.map(run, missing), strict=True):
            print(*cell, f"{100 * json.loads(_file(*cell).read_text()):.1f}", file=sys.stderr, flush=True)


def table(data: Sequence[str], names: Sequence[str], heads: int, seeds: int) -> Table:
    """The mean of every variant, and its difference from the variant it is compared with."""
    made = Table(f"{', '.join(data)}: {heads} heads (per cent)", ["", "runs", "figure", "adds", "± of what it adds"])
    known: dict[str, dict[tuple[str, int], float]] = {}
    for name, place, _, seed in _wanted(data, list(VARIANTS), heads, seeds):
        file = _file(name, place, heads, seed)
        if file.exists():
            known.setdefault(name, {})[place, seed] = 100 * json.loads(file.read_text())
    for name, found in ((name, found) for name, found in known.items() if name in names):
        against = known.get(VARIANTS[name].against, {}) if name != "pren" else {}
        added = [found[run] - against[run] for run in found if run in against]
        spread = f"{np.std(added, ddof=1):.1f}" if len(added) > 1 else "–"
        adds = f"{np.mean(added):+.1f}" if added else "–"
        made.rows.append((VARIANTS[name].title, str(len(found)), f"{np.mean(list(found.values())):.1f}", adds, spread))
    made.notes.append("What a row adds is against the first row or, after a colon, against the row without that.")
    return made


def stored(arguments: Sequence[str]) -> Table:
    """The table of stored results."""
    options = _parser().parse_args(arguments)
    return table(options.data, options.variants.split(","), options.heads, options.seeds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute and show."""
    options = _parser().parse_args(arguments)
    if options.one:
        cell = (options.one, options.data[0], options.heads, options.seeds)
        _file(*cell).parent.mkdir(parents=True, exist_ok=True)
        _file(*cell).write_text(json.dumps(figure(*cell)))
        return
    names = options.variants.split(",")
    if not options.stored:
        compute(options.data, names, options.heads, options.seeds, options.jobs)
    print(table(options.data, names, options.heads, options.seeds).markdown())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablations")
    parser.add_argument("data", nargs="*", default=["numbers"])
    parser.add_argument("--variants", default=",".join(VARIANTS), help="comma-separated")
    parser.add_argument("--heads", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stored", action="store_true", help="show stored results and compute nothing")
    parser.add_argument("--one", metavar="VARIANT", help=argparse.SUPPRESS)  # a run; its seed is --seeds
    return parser


if __name__ == "__main__":
    main()
