"""How well familiarity finds images of none of the classes: ``python -m benchmarks.strangers [test]``.

Problems are drawn from CUB's 150 seen classes, on which everything was chosen; ``test`` takes the proposed split's own
classes instead. The features are those of CUB's photographs through the installed backbone, through which digits, noise
and other photographs go too (`efflite0.mat` was made otherwise). PREN_DATA says where CUB is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_sample_image
from sklearn.metrics import roc_auc_score

from benchmarks.tables import Table
from pren.data import load
from pren.images.extraction import Extractor, FrozenBackbone
from pren.images.photographs import freeze
from pren.problem import ClassTable, Problem
from pren.problem.inputs import ArrayInputs
from pren.trust.familiarity import Familiarity

BACKBONE = "tf_efficientnet_lite0"
SIZES = [(100, 30, 15), (60, 20, 10), (27, 6, 6), (20, 10, 5)]  # seen, unseen and unnamed species
DRAWS = 3
SHARE = 0.1  # of the pool that are strangers
LATER = 0.2  # of the inputs of each class, which come after the fit
KINDS = ["other species", "seen classes", "digits", "noise", "other photographs"]
Features = NDArray[np.float32]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Images:
    """All of CUB's images: features (N, d), classes (N,), and the table of these; and strangers by their kind."""

    features: Features
    labels: Numbers
    classes: ClassTable
    strangers: dict[str, Features]


@dataclass(frozen=True)
class Case:
    """A problem, which of its pool are strangers (N_pool,), and images that come later (n, d): own ones and others."""

    problem: Problem
    strange: NDArray[np.bool_]
    own: Features
    others: dict[str, Features]


def everything() -> Images:
    """Extract features that are not in the cache."""
    problem, answers = freeze(*load("cub", images=True), BACKBONE)
    assert answers is not None
    parts = [inputs[np.arange(len(inputs))].numpy() for inputs in (problem.train, problem.pool)]
    labels = np.concatenate([problem.labels, answers.labels])
    return Images(np.concatenate(parts), labels, problem.classes, _other_things())


def _other_things() -> dict[str, Features]:
    frozen, rng = FrozenBackbone.load(Extractor(backbone=BACKBONE)), np.random.default_rng(0)
    numbers = load("numbers")[0].pool
    digits = [(255 * image[0]).byte().numpy() for image in numbers[np.arange(0, len(numbers), 2)]]
    grains = [int(rng.choice([7, 28, 224])) for _ in range(300)]
    noise = [rng.integers(0, 256, size=(grain, grain, 3), dtype=np.uint8) for grain in grains]
    photographs = []
    for number in range(200):
        whole = load_sample_image(("china.jpg", "flower.jpg")[number % 2])
        side = int(rng.integers(100, 300))
        top, left = (int(rng.integers(0, length - side)) for length in whole.shape[:2])
        photographs.append(whole[top : top + side, left : left + side])

    def features(photographs: list[NDArray[np.uint8]]) -> Features:
        levels = [frozen.preprocessing(Image.fromarray(each).convert("RGB")) for each in photographs]
        return frozen(torch.from_numpy(np.stack(levels)), torch.device("cpu"))

    return {kind: features(p) for kind, p in zip(KINDS[2:], (digits, noise, photographs), strict=True)}


def draw(images: Images, classes: tuple[Numbers, Numbers, Numbers], kind: str | None, rng: np.random.Generator) -> Case:
    """A problem of some seen and unseen classes, with strangers of a kind in its pool, None for no strangers.

    Args:
        images: What to draw from.
        classes: Rows of the class table: seen, unseen and unnamed.
        kind: One of `KINDS`.
        rng: Which images come later, and in which order the pool stands.
    """
    seen, unseen, unnamed = classes
    train, known_later = _divided(images, seen, rng)
    pool, own = _divided(images, unseen, rng)
    named = np.concatenate([seen, unseen])
    rows = np.flatnonzero(np.isin(images.labels, unnamed))
    others = {"other species": images.features[rows], "seen classes": images.features[known_later]}
    others = {name: rng.permutation(features) for name, features in (others | images.strangers).items()}
    inside = images.features[:0]
    if kind is not None:
        count = min(round(len(pool) * SHARE / (1 - SHARE)), len(others[kind]) // 2)
        inside, others[kind] = others[kind][:count], others[kind][count:]
    order = rng.permutation(len(pool) + len(inside))
    place = {row: place for place, row in enumerate(named)}
    table = ClassTable(
        tuple(images.classes.names[row] for row in named),
        images.classes.signatures[named],
        np.arange(len(named)) < len(seen),
        True,
    )
    problem = Problem(
        ArrayInputs(images.features[train]),
        np.array([place[label] for label in images.labels[train]]),
        ArrayInputs(np.concatenate([images.features[pool], inside])[order]),
        table,
    )
    return Case(problem, order >= len(pool), images.features[own], others)


def _divided(images: Images, classes: Numbers, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
    """The inputs of some classes for the fit, and those that come later."""
    now, later = [], []
    for row in classes:
        mine = rng.permutation(np.flatnonzero(images.labels == row))
        count = max(1, round(LATER * len(mine)))
        later.append(mine[:count])
        now.append(mine[count:])
    return np.concatenate(now), np.concatenate(later)


def drawn_classes(images: Images, test: bool) -> Iterator[tuple[str, tuple[Numbers, Numbers, Numbers], int]]:
    """A title, the classes, and a seed, of every problem."""
    seen, unseen = np.flatnonzero(images.classes.seen), np.flatnonzero(images.classes.unseen)
    if test:
        for start in range(DRAWS):
            unnamed = unseen[start::5]
            yield f"{len(seen)} + {len(unseen) - len(unnamed)}", (seen, np.setdiff1d(unseen, unnamed), unnamed), start
        return
    for sizes in SIZES:
        for number in range(DRAWS):
            rows = np.random.default_rng([*sizes, number]).permutation(seen)[: sum(sizes)]
            a, b, c = np.split(rows, np.cumsum(sizes)[:2])
            yield f"{sizes[0]} + {sizes[1]}", (a, b, c), number


def measure(case: Case, kind: str | None) -> dict[str, float]:
    """AUROC (per cent) of strangers against own images, and shares (per cent) that are called strange."""
    familiarity = Familiarity.learn(case.problem)
    assert familiarity is not None
    of_pool, of_own = familiarity.of(case.problem.pool), familiarity.of(case.own)
    if kind is None:
        found = {f"{kind}, never met": _auroc(of_own, familiarity.of(later)) for kind, later in case.others.items()}
        found |= {f"own below {level}": 100 * float((of_pool < level).mean()) for level in (0.01, 0.05)}
        return {**found, "own later, below 0.05": 100 * float((of_own < 0.05).mean())}
    own, strange = of_pool[~case.strange], of_pool[case.strange]
    return {
        f"{kind}, in the pool": _auroc(own, strange),
        f"{kind}, later": _auroc(of_own, familiarity.of(case.others[kind])),
        f"{kind}, in the pool, below 0.05": 100 * float((strange < 0.05).mean()),
        f"own below 0.05 with {kind}": 100 * float((own < 0.05).mean()),
    }


def _auroc(own: NDArray[np.float64], strange: NDArray[np.float64]) -> float:
    labels = np.arange(len(own) + len(strange)) >= len(own)
    return 100 * float(roc_auc_score(labels, -np.concatenate([own, strange])))


def run(test: bool) -> Table:
    """Means of the draws."""
    images, figures = everything(), dict[str, dict[str, list[float]]]()
    for title, classes, number in drawn_classes(images, test):
        for kind in (None, *KINDS):
            case = draw(images, classes, kind, np.random.default_rng([number, 1]))
            for name, value in measure(case, kind).items():
                figures.setdefault(name, {}).setdefault(title, []).append(value)
            print(title, number, kind, file=sys.stderr, flush=True)
    columns = list(next(iter(figures.values())))
    what = (
        "the proposed split, a fifth of the test classes unnamed" if test else "problems drawn from CUB's seen classes"
    )
    table = Table(f"Strangers (per cent) on {what} (seen + unseen): mean of {DRAWS}", ["", *columns])
    table.rows += [(name, *(f"{np.mean(cells[title]):.1f}" for title in columns)) for name, cells in figures.items()]
    return table


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(run(sys.argv[1:] == ["test"]).markdown())
