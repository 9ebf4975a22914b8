"""The data of a method (`Problem`), and the labels that only the evaluation sees (`Answers`).

A `Problem` holds labelled inputs of the seen classes, a pool of unlabelled inputs and a table of all classes. It holds
no file names, no order that reveals classes, and no labels of the pool except those that a person gives on purpose, so
no method can see the answers. In the paper's transductive setting the pool *is* the test set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pren.foundation.errors import PrenError
from pren.problem.class_table import ClassTable, label_indices, signature_table
from pren.problem.inputs import Array, Inputs, as_inputs

Setting = Literal["zsl", "gzsl"]
Among = Literal["unseen", "seen", "all"]
T = TypeVar("T")
UNKNOWN = -1  # the label of an input whose class is not known


def candidates_of(setting: Setting) -> Among:
    """Which classes can be predicted."""
    return "unseen" if setting == "zsl" else "all"


@dataclass(frozen=True, eq=False)
class Answers:
    """The labels of the pool: for the evaluation, never for fitting.

    Attributes:
        labels: (N_pool,) class indices; `UNKNOWN` where the class is not known.
        names: (N_pool,) a name of each input for reports, such as its path; None if there is none. A name can reveal
            the class, so it is not part of the problem.
        unreadable: Why a photograph cannot be read and is not in the pool, by its name.
        pictures: The photographs, for reports, where the problem holds their features.
    """

    labels: NDArray[np.int64]
    names: tuple[str, ...] | None = None
    unreadable: dict[str, str] = field(default_factory=dict)
    pictures: Inputs | None = None

    def __post_init__(self) -> None:
        if self.names is not None and len(self.names) != len(self.labels):
            message = f"{len(self.labels)} answers but {len(self.names)} names: give one per input."
            raise PrenError("answers-shape", message)

    def __repr__(self) -> str:
        return f"Answers({int(self.known.sum())} of {len(self.labels)} known, {len(self.unreadable)} files unreadable)"

    @property
    def known(self) -> NDArray[np.bool_]:
        """(N_pool,) True where the class is known."""
        known: NDArray[np.bool_] = self.labels != UNKNOWN
        return known

    def without(self, unreadable: Sequence[tuple[int, str]]) -> Answers:
        """The answers without unreadable photographs: the place of each in the pool, and the reason."""
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
        train: The labelled inputs of the seen classes.
        labels: (N,) the class index of each.
        pool: The unlabelled inputs. Loaders shuffle them, because the order of a benchmark reveals the classes.
        classes: The class table.
        setting: "zsl" (the pool holds unseen classes only) or "gzsl" (it mixes seen and unseen ones).
        backbone: The network for these inputs, None for features.
        extractor: The extractor that made the features, so that a model can read photographs; None if not known.
        tail: The weights of the extractor's last stages if they were fine-tuned; None if not.
        source: Where the problem comes from (names, hashes, choices), recorded with every run.
        given: (N_pool,) the classes that a person has given to inputs of the pool, for training; `UNKNOWN` elsewhere.
            They must be candidates. None if there are none.
        recipe: How the signatures were made (`pren.data.describe.Recipe`, JSON-ready), to add a class to a model later;
            {} if not known.
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
            raise PrenError("unknown-name", f"setting must be 'zsl' or 'gzsl', not {self.setting!r}.")
        if self.train.sample_shape != self.pool.sample_shape:
            shapes = f"shape {self.train.sample_shape} and pool inputs {self.pool.sample_shape}"
            raise PrenError("inputs-shape", f"Training inputs have {shapes}: make both with the same extractor.")
        if len(self.pool) == 0:
            raise PrenError("pool-empty", "The pool is empty: add unlabelled inputs.")
        if self.labels.shape != (len(self.train),):
            message = f"There are {len(self.train)} training inputs but labels have shape {self.labels.shape}."
            raise PrenError("labels-shape", message)
        if self.given is not None:
            self._check_given(self.given)

    def _check_given(self, given: NDArray[np.int64]) -> None:
        if given.shape != (len(self.pool),):
            message = f"The pool has {len(self.pool)} inputs but the given labels have shape {given.shape}."
            raise PrenError("given-shape", message)
        rows = given[given != UNKNOWN]
        if ((rows < 0) | (rows >= len(self.classes))).any() or not self.candidates()[rows].all():
            raise PrenError("given-unknown", "A given label of the pool is not a class that can be predicted.")

    def candidates(self) -> NDArray[np.bool_]:
        """(L,) the classes that can be predicted for the pool."""
        return self.classes.among(candidates_of(self.setting))

    def decided(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The inputs of the pool that a person has given a class: their places (n,) and classes (n,)."""
        given = np.empty(0, dtype=np.int64) if self.given is None else self.given
        places = np.flatnonzero(given != UNKNOWN)
        return places, given[places]

    def undecided(self) -> NDArray[np.int64]:
        """The places of all other inputs of the pool; of the whole pool if every input has a class.

        So methods that learn from the pool always find inputs.
        """
        everything, (places, _) = np.arange(len(self.pool)), self.decided()
        return np.setdiff1d(everything, places) if len(places) < len(everything) else everything

    def once(self, what: str, learn: Callable[[], T]) -> T:
        """The first result of `learn` for the name `what`: fits of one problem share their preparation."""
        if what not in self._learned:
            self._learned[what] = learn()
        learned: T = self._learned[what]
        return learned

    def redescribed(self, signatures: NDArray[np.float64], record: dict[str, Any]) -> Problem:
        """The same with other signatures (L, m) and a record of them.

        The results of `once` stay, because they do not depend on signatures.
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
            features: (N, D) features or (N, C, H, W) images, labelled.
            labels: (N,) row numbers of `signatures`, or class names if `class_names` is given.
            signatures: (L, m) one row per class, seen and unseen.
            pool: (N_pool, ...) unlabelled features or images, in any order.
            class_names: (L,) names; "class 0", "class 1", ... by default.
            setting: "zsl" or "gzsl".
            normalise: Whether to scale signatures to unit length, as in the paper's data.
            backbone: The backbone for images; None for features.
            source: What to record about the origin of the data.
            attributes: (m,) names of the columns of `signatures`, for reports.

        Raises:
            PrenError: If the arrays do not fit together.
        """
        count = len(signature_table(signatures))
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
        """Hashes of the data and of the split, recorded with every result.

        The data hash covers inputs, class names and signatures; the split hash covers which classes are seen and the
        labels, so that different splits in files of the same name are not confused.
        """
        data = hashlib.sha256(self.train.digest() + self.pool.digest())
        split, table = hashlib.sha256(), self.classes
        for row in sorted(range(len(table)), key=table.names.__getitem__):  # hashes ignore the order of the classes
            data.update(f"{table.names[row]}\0".encode() + table.signatures[row].tobytes())
            split.update(f"{table.names[row]}\0{table.seen[row]}\0".encode())
        split.update(f"{self.setting}\0{len(self.pool)}\0".encode())
        split.update("\0".join(self.classes.names[label] for label in self.labels).encode())
        if self.given is not None:
            names = (*self.classes.names, "")  # the last for `UNKNOWN`
            split.update("\0".join(["", *(names[row] for row in self.given)]).encode())
        return {"data": data.hexdigest()[:16], "split": split.hexdigest()[:16]}
