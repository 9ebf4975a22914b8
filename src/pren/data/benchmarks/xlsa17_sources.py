"""The sources of signatures of a benchmark in the form of xlsa17: attributes, sentences, or both."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pren.data.benchmarks.mat import Shapes, mat_shapes, read_mat, texts
from pren.data.benchmarks.partition import Indices
from pren.data.benchmarks.xlsa17_files import LISTS, SPLITS_FILE, AttributeScale, Place, Splits
from pren.data.describe import Signatures, source_names
from pren.data.registry import ATTRIBUTES
from pren.foundation.errors import PrenError

log = logging.getLogger(__name__)

SENTENCES = "sentences"
FILES = {ATTRIBUTES: SPLITS_FILE, SENTENCES: "sent_splits.mat"}


class Source(NamedTuple):
    """Signatures of all classes, their file, and the training data of their encoder."""

    signatures: Signatures
    file: Path
    trained_on: Splits | None = None  # the encoder was trained on the seen classes of this split; None without encoder

    def warn(self, labels: Indices, unseen: Indices) -> None:
        """Warn if the encoder was trained on images of classes that are unseen here, as in folds and in SS."""
        if self.trained_on is not None:
            known = np.intersect1d(self.trained_on.lists(labels).seen(), unseen)
            if known.size:
                log.warning(
                    "%s: its encoder was trained on images of %d of the %d classes that are unseen here: "
                    "results may be too high.",
                    self.file.name,
                    known.size,
                    len(unseen),
                )


def read_sources(place: Place, splits: Splits, wanted: str, scale: AttributeScale) -> list[Source]:
    """The requested sources, such as "attributes,sentences", in this order.

    Raises:
        PrenError: If there is no such source, or its file is missing or has other classes.
    """
    sources = []
    for name in source_names(wanted):
        path = _path(place, name)
        if path is None or not path.is_file():
            has = f"It has {', '.join(there(place))}."
            if path is None:
                hint = " How attributes are scaled is the option scale." if name in ("normalised", "original") else ""
                raise PrenError("signatures-unknown", f"{place.name} has no signatures {name!r}. {has}{hint}")
            message = f"{place.name} has no signatures {name!r}: there is no file {path}. {has}"
            raise PrenError("signatures-unknown", message)
        if name == ATTRIBUTES:
            sources.append(Source(splits.signatures(scale), path))
        else:
            sources.append(_sentences(path, place, splits))
    return sources


def there(place: Place) -> Shapes:
    """The sources whose files exist and can be read, with their shapes (m, L)."""
    found: Shapes = {}
    for name in FILES:
        path = _path(place, name)
        if path is not None and path.is_file():
            try:
                shapes = mat_shapes(path)
            except PrenError:
                continue
            found |= {name: shapes["att"]} if "att" in shapes else {}
    return found


def _path(place: Place, name: str) -> Path | None:
    """The file of a source; sources that do not depend on the split are beside the features."""
    if name not in FILES:
        return None
    return (place.folder if name == ATTRIBUTES else place.features) / FILES[name]


def _sentences(path: Path, place: Place, splits: Splits) -> Source:
    """Class means of sentence embeddings, in the order of the `att_splits.mat` beside them."""
    arrays = read_mat(path, ("att",), ("allclasses_names", *LISTS))
    beside = splits if place.features == place.folder else Splits.read(place._replace(folder=place.features))
    _check_same_classes(path, arrays, beside)
    if beside.names != splits.names:
        where = f"{place.features / SPLITS_FILE} and {place.folder / SPLITS_FILE}"
        message = f"{where} order the classes differently: {path.name} cannot be used with this split."
        raise PrenError("signatures-order", message)
    table = arrays["att"]
    if table.ndim != 2 or table.shape[1] != len(splits.names):
        raise PrenError("mat-shape", f"{path}: att has shape {table.shape}, but must be (m, {len(splits.names)}).")
    source = {"kind": SENTENCES, "file": path.name, "key": "att"}
    return Source(Signatures(tuple(splits.names), table.T, source), path, beside)


def _check_same_classes(path: Path, arrays: dict[str, NDArray[Any]], beside: Splits) -> None:
    """Refuse a file that differs from the split beside it in the order of classes or in a list of images."""
    checked = False
    if "allclasses_names" in arrays:
        names, checked = texts(arrays["allclasses_names"], f"{path}: allclasses_names"), True
        if names != beside.names:
            pairs = zip(names, beside.names, strict=False)
            first = next((pair for pair in pairs if pair[0] != pair[1]), None)
            counts = f"{len(names)} classes for {len(beside.names)}"
            what = counts if first is None else f"{first[0]!r} for {first[1]!r}"
            message = f"{path}: its classes are not those of {SPLITS_FILE} in the same order ({what})."
            raise PrenError("signatures-order", message)
    for key in LISTS:
        if key in arrays and key in beside.arrays:
            checked = True
            if not np.array_equal(np.sort(arrays[key], axis=None), np.sort(beside.arrays[key], axis=None)):
                message = f"{path}: {key} is not that of {SPLITS_FILE}: it was made for another split."
                raise PrenError("signatures-split", message)
    if not checked:
        message = f"{path} does not name its classes: add allclasses_names, or the split's lists."
        raise PrenError("signatures-order", message)
