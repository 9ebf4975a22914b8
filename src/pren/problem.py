"""What every method is given (`Problem`), and what only the evaluation gets to see (`Answers`).

A `Problem` holds labelled images of the seen classes, a pool of unlabelled images and a table of all classes. It holds
no file name, no telling order and no label of a pool image but those that a person gives to it on purpose, so no method
can peek, whoever writes it. In the paper's transductive setting the pool *is* the test set.
"""

from __future__ import annotations

import hashlib
import logging
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pren.errors import PrenError, quoted
from pren.inputs import Array, Inputs, as_inputs, to_numpy

log = logging.getLogger(__name__)

Setting = Literal["zsl", "gzsl"]
Among = Literal["unseen", "seen", "all"]
T = TypeVar("T")
LONGEST_NAME = 255  # bytes of a class's name, as for the names of folders
UNKNOWN = -1  # the label of a pool image whose class nobody knows


def candidates_of(setting: Setting) -> Among:
    """Which classes an image can be taken for."""
    return "unseen" if setting == "zsl" else "all"


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Every class, seen and unseen: its name and its signature (the vector that describes it).

    Attributes:
        names: One per class, all different.
        signatures: (L, m) float64, one row per class (the paper's M is its transpose).
        seen: (L,) True where the class has labelled images.
        normalised: Whether the rows were scaled to unit length.
        attributes: (m,) what the columns of the signatures mean; None if they have no names.
    """

    names: tuple[str, ...]
    signatures: NDArray[np.float64]
    seen: NDArray[np.bool_]
    normalised: bool
    attributes: tuple[str, ...] | None = None

    @classmethod
    def build(
        cls,
        names: Sequence[str],
        signatures: Array,
        seen: NDArray[np.bool_],
        *,
        normalise: bool = True,
        attributes: Sequence[str] | None = None,
    ) -> ClassTable:
        """Check a table and bring its signatures to unit length (unless told not to)."""
        table = _signature_table(signatures)
        if len(names) != len(table):
            raise PrenError(f"{len(names)} class names but {len(table)} rows of signatures: give one row per class.")
        _check_names(names)
        _check_signatures(names, table)
        if not seen.any():
            raise PrenError("No class has a labelled image: give labelled images of at least one (seen) class.")
        if seen.all():
            raise PrenError("Every class has labelled images: add the signatures of classes that have none.")
        if normalise:
            table = table / np.abs(table).max(axis=1, keepdims=True)  # so that no square is too large or too small
            table = table / np.linalg.norm(table, axis=1, keepdims=True)
        _warn_of_twins(names, table)
        return cls(tuple(names), table, seen.astype(bool), normalise, None if attributes is None else tuple(attributes))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"ClassTable({self._counts()})"

    def _counts(self) -> str:
        seen, attributes = int(self.seen.sum()), self.signatures.shape[1]
        return f"{seen} seen and {len(self) - seen} unseen classes, {attributes} attributes"

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """(L,) True where nobody has labelled an image."""
        return ~self.seen

    def among(self, which: str) -> NDArray[np.bool_]:
        """(L,) the classes meant by "unseen", "seen" or "all"."""
        masks = {"unseen": self.unseen, "seen": self.seen, "all": np.ones(len(self), dtype=bool)}
        if which not in masks:
            raise PrenError(f"among must be one of {', '.join(masks)}, not {which!r}.")
        return masks[which]


@dataclass(frozen=True, eq=False)
class Answers:
    """The labels of the pool: for the evaluation, never for fitting.

    Attributes:
        labels: (N_pool,) class indices; `UNKNOWN` where nobody knows.
        names: (N_pool,) what people call each image, such as the path of its file, for reports; None if nothing. A
            name may give its class away, so it is no part of the problem.
        unreadable: Why an image is not in the pool, by its name: its file cannot be read.
        pictures: What the images look like, for reports too, where the problem holds their features.
    """

    labels: NDArray[np.int64]
    names: tuple[str, ...] | None = None
    unreadable: dict[str, str] = field(default_factory=dict)
    pictures: Inputs | None = None

    def __post_init__(self) -> None:
        if self.names is not None and len(self.names) != len(self.labels):
            raise PrenError(f"{len(self.labels)} answers but {len(self.names)} names: give one to each image.")

    def __repr__(self) -> str:
        return f"Answers({int(self.known.sum())} of {len(self.labels)} known, {len(self.unreadable)} files unreadable)"

    @property
    def known(self) -> NDArray[np.bool_]:
        """(N_pool,) True where somebody knows."""
        known: NDArray[np.bool_] = self.labels != UNKNOWN
        return known

    def without(self, unreadable: Sequence[tuple[int, str]]) -> Answers:
        """The same but for some images of the pool: the place of each, and why it cannot be read."""
        labels = np.delete(self.labels, np.array([place for place, _ in unreadable], dtype=np.int64))
        if self.names is None:
            return Answers(labels)
        reasons = {self.names[place]: reason for place, reason in unreadable}
        names = tuple(name for name in self.names if name not in reasons)
        return Answers(labels, names, {**self.unreadable, **reasons})


@dataclass(frozen=True, eq=False)
class Problem:
    """A zero-shot problem without its answers.

    Attributes:
        train: The labelled images (or their features) of the seen classes.
        labels: (N,) the class index of each.
        pool: The unlabelled images. Loaders shuffle them: a benchmark's order gives the classes away.
        classes: The class table.
        setting: "zsl" (the pool holds unseen classes only) or "gzsl" (it mixes seen and unseen ones).
        backbone: The network these inputs are made for, None for features.
        extractor: What made the features, so that a model of them can be given images; None if nobody knows.
        tail: The weights of that extractor's last stages, if they have learned the seen classes; None if not.
        source: Where the problem comes from (names, hashes, choices made); recorded with every run.
        given: (N_pool,) the classes that a person has given to some images of the pool, to learn from: candidates, and
            `UNKNOWN` elsewhere; None if to none.
        recipe: How the signatures were made (`pren.signatures.Recipe`, JSON-ready), so that a class can be added to a
            model later; {} if nobody knows.
    """

    train: Inputs
    labels: NDArray[np.int64]
    pool: Inputs
    classes: ClassTable
    setting: Setting = "zsl"
    backbone: str | None = None
    extractor: dict[str, Any] | None = None
    tail: dict[str, Tensor] | None = None
    source: dict[str, Any] = field(default_factory=dict)
    given: NDArray[np.int64] | None = None
    recipe: dict[str, Any] = field(default_factory=dict)
    _learned: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.setting not in ("zsl", "gzsl"):
            raise PrenError(f"setting must be 'zsl' or 'gzsl', not {self.setting!r}.")
        if self.train.sample_shape != self.pool.sample_shape:
            shapes = f"shape {self.train.sample_shape} each and pool inputs {self.pool.sample_shape}"
            raise PrenError(f"Training inputs have {shapes}: both must come from the same extractor.")
        if len(self.pool) == 0:
            raise PrenError("The pool is empty: there is no unlabelled image to recognise.")
        if self.labels.shape != (len(self.train),):
            raise PrenError(f"There are {len(self.train)} training inputs but labels have shape {self.labels.shape}.")
        if self.given is not None:
            self._check_given(self.given)

    def _check_given(self, given: NDArray[np.int64]) -> None:
        if given.shape != (len(self.pool),):
            raise PrenError(f"The pool has {len(self.pool)} images but given labels have shape {given.shape}.")
        rows = given[given != UNKNOWN]
        if ((rows < 0) | (rows >= len(self.classes))).any() or not self.candidates()[rows].all():
            raise PrenError("A label that is given to an image of the pool is not one of the classes it can be of.")

    def candidates(self) -> NDArray[np.bool_]:
        """(L,) the classes that an image of the pool can be taken for."""
        return self.classes.among(candidates_of(self.setting))

    def decided(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which images of the pool a person has given a class: their places (n,), and these classes (n,)."""
        given = np.empty(0, dtype=np.int64) if self.given is None else self.given
        places = np.flatnonzero(given != UNKNOWN)
        return places, given[places]

    def undecided(self) -> NDArray[np.int64]:
        """The places of all other images of the pool; of all, where every image has got a class.

        So whoever learns from the pool finds something there.
        """
        everybody, (places, _) = np.arange(len(self.pool)), self.decided()
        return np.setdiff1d(everybody, places) if len(places) < len(everybody) else everybody

    def once(self, what: str, learn: Callable[[], T]) -> T:
        """What `learn` has returned the first time it was asked for: fits of one problem share their preparation."""
        if what not in self._learned:
            self._learned[what] = learn()
        learned: T = self._learned[what]
        return learned

    def redescribed(self, signatures: NDArray[np.float64], record: dict[str, Any]) -> Problem:
        """The same with other signatures (L, m) of its classes and what is noted of them.

        What was learned of the inputs stays, as signatures have no part in it.
        """
        table = replace(self.classes, signatures=signatures)
        other = replace(self, classes=table, source={**self.source, "signatures": record}, recipe={})
        object.__setattr__(other, "_learned", self._learned)
        return other

    def __repr__(self) -> str:
        inputs = f"{type(self.train).__name__} of shape {self.train.sample_shape}"
        counts = f"{len(self.train)} labelled, {len(self.pool)} in the pool"
        return f"Problem({self.setting}, {counts}, {self.classes._counts()}, {inputs})"

    @classmethod
    def from_arrays(
        cls,
        features: Array,
        labels: Array | Sequence[str],
        signatures: Array,
        pool: Array,
        class_names: Sequence[str] | None = None,
        *,
        setting: Setting = "zsl",
        normalise: bool = True,
        backbone: str | None = None,
        source: dict[str, Any] | None = None,
        attributes: Sequence[str] | None = None,
    ) -> Problem:
        """Build a problem from arrays (NumPy or torch).

        Args:
            features: (N, D) features, or (N, C, H, W) images, of the labelled images.
            labels: (N,) row numbers of `signatures`, or class names if `class_names` is given.
            signatures: (L, m) one row per class, seen and unseen.
            pool: (N_pool, ...) the unlabelled images, in any order.
            class_names: (L,) names; "class 0", "class 1", ... if left out.
            setting: "zsl" or "gzsl".
            normalise: Whether to scale signatures to unit length, as the paper's data have them.
            backbone: The backbone that images go through; None for features.
            source: What to record about the origin of the data.
            attributes: (m,) what the columns of `signatures` mean, for reports.

        Raises:
            PrenError: If anything does not fit together; the message says what and where.
        """
        count = len(_signature_table(signatures))
        numbered = [f"class {row:0{len(str(count - 1))}d}" for row in range(count)]
        names = numbered if class_names is None else [str(name) for name in class_names]
        indices = label_indices(labels, names)
        seen = np.zeros(len(names), dtype=bool)
        seen[indices] = True
        return cls(
            train=as_inputs(features, "features"),
            labels=indices,
            pool=as_inputs(pool, "pool"),
            classes=ClassTable.build(names, signatures, seen, normalise=normalise, attributes=attributes),
            setting=setting,
            backbone=backbone,
            source={"name": "arrays", "signatures": {"kind": "array"}, **(source or {})},
        )

    def fingerprint(self) -> dict[str, str]:
        """Hashes of the data and of the split, to be kept with every result.

        The data hash covers inputs, class names and signatures; the split hash covers which classes are seen and which
        images are labelled how, so two files with the same name and different splits cannot be confused.
        """
        data = hashlib.sha256(self.train.digest() + self.pool.digest())
        split, table = hashlib.sha256(), self.classes
        for row in sorted(range(len(table)), key=table.names.__getitem__):  # the order of the classes means nothing
            data.update(f"{table.names[row]}\0".encode() + table.signatures[row].tobytes())
            split.update(f"{table.names[row]}\0{table.seen[row]}\0".encode())
        split.update(f"{self.setting}\0{len(self.pool)}\0".encode())
        split.update("\0".join(self.classes.names[label] for label in self.labels).encode())
        if self.given is not None:
            names = (*self.classes.names, "")  # the last for `UNKNOWN`
            split.update("\0".join(["", *(names[row] for row in self.given)]).encode())
        return {"data": data.hexdigest()[:16], "split": split.hexdigest()[:16]}


def label_indices(labels: Array | Sequence[str], names: Sequence[str]) -> NDArray[np.int64]:
    """Turn labels (row numbers or class names) into row numbers of the class table, checking each of them."""
    array = to_numpy(labels, "labels")
    if array.ndim != 1:
        raise PrenError(f"labels must be one per image, but have shape {array.shape}.")
    if array.dtype.kind == "U":
        rows = {name: row for row, name in enumerate(names)}
        for place, label in enumerate(array.tolist()):
            if label not in rows:
                raise PrenError(f"Label {label!r} (image {place}) has no signature: add a row for this class.")
        return np.array([rows[label] for label in array.tolist()], dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise PrenError(f"labels must be whole numbers or class names, not {array.dtype}.")
    outside = (array < 0) | (array >= len(names))
    if outside.any():
        place = int(outside.argmax())
        raise PrenError(f"Label {array[place]} (image {place}) is outside the table with rows 0 to {len(names) - 1}.")
    return array.astype(np.int64)


def _signature_table(signatures: Array) -> NDArray[np.float64]:
    table = to_numpy(signatures, "signatures")
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "fiub":
        what = f"{table.dtype} of shape {table.shape}"
        raise PrenError(f"signatures must be a table of numbers (classes, attributes), not {what}.")
    return table.astype(np.float64)


def name_fault(name: str) -> str | None:
    """What is wrong with the name of a class, None if nothing is: it must be able to be a folder's name."""
    if not name.strip():
        return "the class has no name."
    if name != name.strip() or any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name):
        return f"class {quoted(name)} begins or ends with a blank, or holds a control character: take it away."
    if "/" in name or "\\" in name or name in (".", "..") or len(name.encode()) > LONGEST_NAME:
        return f"class {quoted(name)} cannot be the name of a folder: no / or \\, at most {LONGEST_NAME} bytes."
    return None


def _check_names(names: Sequence[str]) -> None:
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if (fault := name_fault(name)) is not None:
            raise PrenError(f"Row {row} of the classes: {fault}")
        if name in first:
            raise PrenError(f"Class name {name!r} stands twice, in rows {first[name]} and {row}: names must differ.")
        first[name] = row


def _check_signatures(names: Sequence[str], table: NDArray[np.float64]) -> None:
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        raise PrenError(f"The signature of class {names[int(bad.argmax())]!r} holds NaN or infinite values.")
    zero = ~table.any(axis=1)
    if zero.any():
        name = names[int(zero.argmax())]
        raise PrenError(f"The signature of class {name!r} is all zeros: describe it, or leave the class out.")


def _warn_of_twins(names: Sequence[str], table: NDArray[np.float64]) -> None:
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    for row, original in enumerate(first[inverse.reshape(-1)]):
        if original < row:
            twins = (names[original], names[row])
            log.warning("Classes %r and %r have the same signature and cannot be told apart.", *twins)
