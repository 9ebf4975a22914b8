"""Several sources of signatures at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.describe.table import Signatures
from pren.foundation.errors import PrenError

Table = NDArray[np.float64]
COMBINED = "combined"  # the kind of source that has several


def source_names(wanted: str) -> list[str]:
    """The sources in a text such as ``attributes,sentences``, each once."""
    names = [name.strip() for name in wanted.split(",")]
    if not all(names) or len(set(names)) < len(names):
        example = "different names with commas between them, such as attributes,sentences"
        raise PrenError("signatures-form", f"--signatures takes {example}, not {wanted!r}.")
    return names


def combine(
    sources: Sequence[Signatures], seen: NDArray[np.bool_], weights: Sequence[float] | None = None
) -> Signatures:
    """Put sources side by side, each brought to the same scale by the seen classes; one alone stays as it is.

    Of each source the mean of the seen classes is taken off, then it is divided by the root mean square length of the
    seen classes' rows. No statistic of the unseen classes has a part in it.

    Args:
        sources: One or more, of the same classes in the same order.
        seen: (L,) True where the class has labelled images.
        weights: What each source is multiplied with; 1 if left out.

    Raises:
        PrenError: If the sources are of different classes, or one of them cannot be scaled.
    """
    if weights is not None:
        _check_weights(weights, len(sources))
    first = sources[0]
    if len(sources) == 1:
        return first
    factors = [1.0] * len(sources) if weights is None else [float(weight) for weight in weights]
    for source in sources:
        if source.names != first.names:
            raise PrenError(
                "signatures-order",
                f"{_title(source)} and {_title(first)} are of different classes, or in another order.",
            )
        _check_rows(source)
    blocks = [w * _scaled(s.values, seen, _title(s)) for w, s in zip(factors, sources, strict=True)]
    columns = [source.attributes for source in sources]
    named = tuple(name for names in columns if names for name in names) if all(columns) else None
    record = {"kind": COMBINED, "sources": [source.record() for source in sources], "weights": factors}
    return Signatures(first.names, np.hstack(blocks), record, named)


def scaled_anew(values: Table, record: Mapping[str, Any], seen: NDArray[np.bool_]) -> Table:
    """Signatures of some classes as if these seen classes had scaled them from the start.

    A validation fold needs this: the classes that play the unseen ones have helped to scale the whole.

    Args:
        values: (L, m) rows that `combine` has made, or any other ones, which stay as they are.
        record: What was noted of them (`Signatures.record`).
        seen: (L,) True where the class counts as seen now.
    """
    if record.get("kind") != COMBINED:
        return values
    sources, weights = record["sources"], record["weights"]
    blocks = np.split(values, np.cumsum([source["width"] for source in sources])[:-1], axis=1)
    parts = zip(weights, blocks, sources, strict=True)
    return np.hstack([weight * _scaled(block, seen, str(source["kind"])) for weight, block, source in parts])


def reweighted(values: Table, record: Mapping[str, Any], weights: Sequence[float]) -> Table:
    """Signatures that `combine` has made, as if with other weights.

    Args:
        values: (L, m) rows of several sources.
        record: What was noted of them (`Signatures.record`).
        weights: What each source is to count.
    """
    sources = record["sources"]
    _check_weights(weights, len(sources))
    factors = [new / old for new, old in zip(weights, record["weights"], strict=True)]
    scaled: Table = values * np.repeat(factors, [source["width"] for source in sources])
    return scaled


def _scaled(values: Table, seen: NDArray[np.bool_], title: str) -> Table:
    """(L, m) -> (L, m), the seen rows with mean 0 and root mean square length 1."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused below
        centred = values - values[seen].mean(axis=0)
        length = root_mean_square(centred[seen])
    # Rounding leaves a little of rows that are all the same.
    if not np.isfinite(length) or length <= 1e-12 * np.abs(values[seen]).max():
        raise PrenError(
            "signatures-constant", f"The {title} of the seen classes are all the same, or too large: leave them out."
        )
    result: Table = centred / length
    return result


def root_mean_square(rows: Table) -> float:
    """The length of rows (n, m), on average."""
    return float(np.sqrt((rows**2).sum(axis=1).mean()))


def _title(source: Signatures) -> str:
    return str(source.source["kind"])


def _check_rows(source: Signatures) -> None:
    """Refuse what would be refused of a single source, before the means of the seen classes carry it everywhere."""
    if source.values.ndim != 2 or not source.values.size or source.values.dtype.kind not in "fiub":
        raise PrenError(
            "signatures-kind", f"The {_title(source)} must be a table of numbers, not of shape {source.values.shape}."
        )
    for fault, wrong in (
        ("NaN or infinite values", ~np.isfinite(source.values).all(axis=1)),
        ("nothing but zeros", ~source.values.any(axis=1)),
    ):
        if wrong.any():
            raise PrenError(
                "signature-value", f"The {_title(source)} of class {source.names[int(wrong.argmax())]!r} hold {fault}."
            )


def _check_weights(weights: Sequence[float], count: int) -> None:
    if count == 1 or len(weights) != count or not all(np.isfinite(weight) and weight > 0 for weight in weights):
        rule = "several sources have one positive number each, a single source has none"
        raise PrenError(
            "signatures-weights", f"The weights {list(weights)} do not fit {count} sources of signatures: {rule}."
        )
