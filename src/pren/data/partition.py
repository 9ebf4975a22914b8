"""Which images of a benchmark are learned from, and which are the pool: the protocols of the field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pren.errors import PrenError
from pren.problem import Setting
from pren.seeds import stream

DATA_SEED = 2017  # the pool's order and the seen images held out are part of the data: no run's seed moves them
HELD_OUT = 0.2  # the paper's share of each seen class's images, in generalised zero-shot learning

TrainOn = Literal["all", "trainval"]
SeenTest = Literal["fixed", "random"]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lists:
    """A benchmark's own lists of images, counted from 0.

    Attributes:
        labels: (N,) the class of every image.
        trainval: Images of the seen classes to learn from.
        test_unseen: Images of the unseen classes.
        test_seen: Other images of the seen classes; None where the benchmark has no such list.
    """

    labels: Indices
    trainval: Indices
    test_unseen: Indices
    test_seen: Indices | None

    def seen(self) -> Indices:
        """The seen classes, rising."""
        return np.unique(self.labels[self.trainval])

    def unseen(self) -> Indices:
        """The unseen classes, rising."""
        return np.unique(self.labels[self.test_unseen])


@dataclass(frozen=True, eq=False)
class Partition:
    """What a problem is made of.

    Attributes:
        train: (N_train,) images to learn from, rising.
        pool: (N_pool,) images to recognise, shuffled: benchmarks list them by class.
        seen: The classes learned from, rising.
        unseen: The classes to be recognised without labels, rising.
        train_on: Which images of the seen classes took part.
        seen_test: How the pool's images of seen classes were chosen; None in conventional zero-shot learning.
    """

    train: Indices
    pool: Indices
    seen: Indices
    unseen: Indices
    train_on: TrainOn
    seen_test: SeenTest | None


def partition(
    lists: Lists, setting: Setting, train_on: TrainOn | None = None, seen_test: SeenTest | None = None
) -> Partition:
    """Divide a benchmark's images by its own lists.

    Args:
        lists: The lists.
        setting: "zsl" (the pool holds the unseen classes) or "gzsl" (held-out images of the seen classes too).
        train_on: "all" images of the seen classes (the paper's choice, and the default), or those of `trainval`.
        seen_test: "gzsl" only: "fixed" holds out the benchmark's list (the default), "random" a fifth of each class.
    """
    seen, unseen = lists.seen(), lists.unseen()
    usable = np.flatnonzero(np.isin(lists.labels, seen)) if train_on != "trainval" else lists.trainval
    held_out, seen_test = _held_out(lists, usable, setting, seen_test, default="fixed")
    return Partition(
        train=np.setdiff1d(usable, held_out),
        pool=shuffled(np.concatenate([lists.test_unseen, held_out])),
        seen=seen,
        unseen=unseen,
        train_on=train_on or "all",
        seen_test=seen_test,
    )


def validation_partition(
    lists: Lists,
    train_classes: Indices,
    val_classes: Indices,
    setting: Setting,
    train_on: TrainOn | None = None,
    seen_test: SeenTest | None = None,
) -> Partition:
    """Divide the images of `trainval` by classes: some of the seen classes play the unseen ones.

    No image and no class of the test has a part in it. The benchmarks' own `train_loc` and `val_loc` are of no use for
    this, because they contain test images of the seen classes.

    Args:
        lists: The lists.
        train_classes: Seen classes that stay so.
        val_classes: Seen classes that play the unseen ones.
        setting: "zsl" or "gzsl".
        train_on: Only "trainval" is possible: "all" would take in test images.
        seen_test: Only "random" is possible, for the same reason.
    """
    if train_on == "all":
        raise PrenError("A validation fold uses trainval images only: leave out train_on='all'.")
    if seen_test == "fixed":
        raise PrenError("A validation fold must not use the list of seen test images: take seen_test='random'.")
    label_of_trainval = lists.labels[lists.trainval]
    usable = lists.trainval[np.isin(label_of_trainval, train_classes)]
    pool = lists.trainval[np.isin(label_of_trainval, val_classes)]
    held_out, seen_test = _held_out(lists, usable, setting, seen_test, default="random")
    return Partition(
        train=np.setdiff1d(usable, held_out),
        pool=shuffled(np.concatenate([pool, held_out])),
        seen=np.unique(train_classes),
        unseen=np.unique(val_classes),
        train_on="trainval",
        seen_test=seen_test,
    )


def _held_out(
    lists: Lists, usable: Indices, setting: Setting, seen_test: SeenTest | None, default: SeenTest
) -> tuple[Indices, SeenTest | None]:
    """The images of the seen classes that go to the pool, and how they were chosen."""
    if setting != "gzsl":
        if seen_test is not None:
            raise PrenError(f"seen_test={seen_test!r} is for the setting 'gzsl': in 'zsl' no seen class is tested.")
        return np.empty(0, dtype=np.int64), None
    if (seen_test or default) == "random":
        return random_share(lists.labels, usable), "random"
    if lists.test_seen is None:
        raise PrenError(
            "This split has no list of seen test images (test_seen_loc): use another split, or "
            "seen_test='random', which holds out a fifth of each seen class."
        )
    return lists.test_seen, "fixed"


def random_share(labels: Indices, usable: Indices) -> Indices:
    """A fifth of each class's images (at least one, but never all), the same every time."""
    chosen = []
    for label in np.unique(labels[usable]):
        images = np.sort(usable[labels[usable] == label])
        count = min(max(1, round(HELD_OUT * len(images))), len(images) - 1)
        chosen.append(stream(DATA_SEED, "seen test", int(label)).choice(images, size=count, replace=False))
    return np.concatenate(chosen)


def shuffled(images: Indices) -> Indices:
    """An order that tells nothing, whatever the order of the list was."""
    result: Indices = stream(DATA_SEED, "pool order").permutation(np.sort(images))
    return result
