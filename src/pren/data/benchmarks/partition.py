"""Which images of a benchmark are learned from, and which are the pool: the protocols of the field."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.foundation.errors import PrenError
from pren.foundation.seeds import stream
from pren.problem import Setting

DATA_SEED = 2017  # the pool's order and the seen images held out are part of the data: no run's seed moves them
HELD_OUT = 0.2  # the paper's share of each seen class's images, in generalised zero-shot learning

TrainOn = Literal["all", "trainval"]
SeenTest = Literal["fixed", "random"]
Indices = NDArray[np.int64]


class Lists(NamedTuple):
    """A benchmark's own lists of images, counted from 0."""

    labels: Indices  # (N,) the class of every image
    trainval: Indices  # images of the seen classes to learn from
    test_unseen: Indices
    test_seen: Indices | None  # other images of the seen classes; None where the benchmark has no such list

    def seen(self) -> Indices:
        """The seen classes, rising."""
        return np.unique(self.labels[self.trainval])

    def unseen(self) -> Indices:
        """The unseen classes, rising."""
        return np.unique(self.labels[self.test_unseen])


class Partition(NamedTuple):
    """What a problem is made of."""

    train: Indices  # (N_train,) images to learn from, rising
    pool: Indices  # (N_pool,) images to recognise, shuffled: benchmarks list them by class
    seen: Indices  # the classes learned from, rising
    unseen: Indices  # the classes to be recognised without labels, rising
    train_on: TrainOn
    seen_test: SeenTest | None  # how the pool's images of seen classes were chosen; None in "zsl"


def partition(
    lists: Lists,
    setting: Setting,
    train_on: TrainOn | None = None,
    seen_test: SeenTest | None = None,
    fold: tuple[Indices, Indices] | None = None,
) -> Partition:
    """Divide a benchmark's images by its own lists.

    A fold divides the images of `trainval` by classes, so nothing of the test has a part in it. The benchmarks' own
    `train_loc` and `val_loc` are of no use for this, because they contain test images of the seen classes.

    Args:
        lists: The lists.
        setting: "zsl" (the pool holds the unseen classes) or "gzsl" (held-out images of the seen classes too).
        train_on: "all" images of the seen classes (the paper's choice, and the default), or "trainval" (always so in a
            fold).
        seen_test: "gzsl" only: "fixed" holds out the benchmark's list (the default), "random" a fifth of each class
            (always so in a fold).
        fold: The seen classes that stay so, and those that play the unseen ones; None for the test itself.
    """
    if setting != "gzsl" and seen_test is not None:
        raise PrenError(
            "seen-test", f"seen_test={seen_test!r} is for the setting 'gzsl': in 'zsl' no seen class is tested."
        )
    if fold is not None and (train_on == "all" or seen_test == "fixed"):
        raise PrenError(
            "fold-uses-test", "A fold must not use test images: leave out train_on='all' and seen_test='fixed'."
        )
    if fold is None:
        train_on, seen_test = train_on or "all", seen_test or "fixed"
        seen, unseen, targets = lists.seen(), lists.unseen(), lists.test_unseen
        usable = lists.trainval if train_on == "trainval" else np.flatnonzero(np.isin(lists.labels, seen))
    else:
        train_on, seen_test = "trainval", "random"
        seen, unseen = fold
        usable, targets = (lists.trainval[np.isin(lists.labels[lists.trainval], classes)] for classes in fold)
    if setting != "gzsl":
        return Partition(np.unique(usable), shuffled(targets), seen, unseen, train_on, None)
    held_out = random_share(lists.labels, usable) if seen_test == "random" else lists.test_seen
    if held_out is None:
        raise PrenError(
            "seen-test", "This split has no list of seen test images (test_seen_loc): use seen_test='random'."
        )
    train, pool = np.setdiff1d(usable, held_out), shuffled(np.concatenate([targets, held_out]))
    return Partition(train, pool, seen, unseen, train_on, seen_test)


def random_share(labels: Indices, usable: Indices, share: float = HELD_OUT) -> Indices:
    """A share of each class's images (at least one, but never all), the same every time."""
    chosen = []
    for label in np.unique(labels[usable]):
        images = np.sort(usable[labels[usable] == label])
        count = min(max(1, round(share * len(images))), len(images) - 1)
        chosen.append(stream(DATA_SEED, "seen test", int(label)).choice(images, size=count, replace=False))
    return np.concatenate(chosen)


def shuffled(images: Indices) -> Indices:
    """An order that tells nothing, whatever the order of the list was."""
    result: Indices = stream(DATA_SEED, "pool order").permutation(np.sort(images))
    return result
