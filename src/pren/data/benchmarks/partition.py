"""Divide the images of a benchmark into training images and pool, by the usual protocols."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.foundation.errors import PrenError
from pren.foundation.seeds import stream
from pren.problem import Setting

DATA_SEED = 2017  # the order of the pool and the held-out seen images do not depend on a run's seed
HELD_OUT = 0.2  # the paper's share of each seen class's images, in generalised zero-shot learning

TrainOn = Literal["all", "trainval"]
SeenTest = Literal["fixed", "random"]
Indices = NDArray[np.int64]


class Lists(NamedTuple):
    """A benchmark's own lists of images, counted from 0."""

    labels: Indices  # (N,) the class of every image
    trainval: Indices  # training images of the seen classes
    test_unseen: Indices
    test_seen: Indices | None  # other images of the seen classes; None where the benchmark has no such list

    def seen(self) -> Indices:
        """The seen classes, ascending."""
        return np.unique(self.labels[self.trainval])

    def unseen(self) -> Indices:
        """The unseen classes, ascending."""
        return np.unique(self.labels[self.test_unseen])


class Partition(NamedTuple):
    """The parts of a problem."""

    train: Indices  # (N_train,) training images, ascending
    pool: Indices  # (N_pool,) images to recognise, shuffled, because benchmarks list them by class
    seen: Indices  # ascending
    unseen: Indices  # ascending
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

    A fold divides the images of `trainval` by classes, so it has no test images. The benchmarks' own `train_loc` and
    `val_loc` contain test images of the seen classes and are not used.

    Args:
        lists: The lists.
        setting: "zsl" (the pool holds the unseen classes) or "gzsl" (held-out images of the seen classes too).
        train_on: "all" images of the seen classes (the paper's choice, and the default), or "trainval" (always so in a
            fold).
        seen_test: "gzsl" only: "fixed" holds out the benchmark's list (the default), "random" a fifth of each class
            (always so in a fold).
        fold: The seen classes that stay seen, and those that count as unseen; None for the test itself.
    """
    if setting != "gzsl" and seen_test is not None:
        raise PrenError("seen-test", f"seen_test={seen_test!r} needs the setting 'gzsl': choose it, or leave this out.")
    if fold is not None and (train_on == "all" or seen_test == "fixed"):
        message = "A fold must not use test images: leave out train_on='all' and seen_test='fixed'."
        raise PrenError("fold-uses-test", message)
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
        message = "This split has no list of seen test images (test_seen_loc): use seen_test='random'."
        raise PrenError("seen-test", message)
    train, pool = np.setdiff1d(usable, held_out), shuffled(np.concatenate([targets, held_out]))
    return Partition(train, pool, seen, unseen, train_on, seen_test)


def random_share(labels: Indices, usable: Indices, share: float = HELD_OUT) -> Indices:
    """A share of each class's images (at least one, never all), always the same."""
    chosen = []
    for label in np.unique(labels[usable]):
        images = np.sort(usable[labels[usable] == label])
        count = min(max(1, round(share * len(images))), len(images) - 1)
        chosen.append(stream(DATA_SEED, "seen test", int(label)).choice(images, size=count, replace=False))
    return np.concatenate(chosen)


def shuffled(images: Indices) -> Indices:
    """A fixed random order, which does not depend on the order of the list."""
    result: Indices = stream(DATA_SEED, "pool order").permutation(np.sort(images))
    return result
