"""Combine several sources of signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pren.data.describe.table import Signatures
from pren.foundation.errors import PrenError

Table = NDArray[np.float64]
COMBINED = "combined"  # the kind of signatures from several sources


def source_names(wanted: str) -> list[str]:
    """The sources in a text such as ``attributes,sentences``; `PrenError` if one is repeated."""
    names = [name.strip() for name in wanted.split(",")]
    if not all(names) or len(set(names)) < len(names):
        example = "different names separated by commas, such as attributes,sentences"
        raise PrenError("signatures-form", f"--signatures takes {example}, not {wanted!r}.")
    return names


def combine(
    sources: Sequence[Signatures], seen: NDArray[np.bool_], weights: Sequence[float] | None = None
) -> Signatures:
    """Concatenate sources, each scaled by the seen classes; a single source stays as it is.

    The mean of the seen classes is subtracted from each source, which is then divided by the root mean square length of
    the seen classes' rows. No statistic of the unseen classes is used.

    Args:
        sources: One or more, of the same classes in the same order.
        seen: (L,) True where the class has labelled inputs.
        weights: A factor for each source; 1 by default.

    Raises:
        PrenError: If the sources have different classes, or one of them cannot be scaled.
    """
    if weights is not None:
        _check_weights(weights, len(sources))
    first = sources[0]
    if len(sources) == 1:
        return first
    factors = [1.0] * len(sources) if weights is None else [float(weight) for weight in weights]
    for source in sources:
        if source.names != first.names:
            message = f"{_title(source)} and {_title(first)} have different classes, or the same in another order."
            raise PrenError("signatures-order", message)
        _check_rows(source)
    blocks = [w * _scaled(s.values, seen, _title(s)) for w, s in zip(factors, sources, strict=True)]
    columns = [source.attributes for source in sources]
    named = tuple(name for names in columns if names for name in names) if all(columns) else None
    record = {"kind": COMBINED, "sources": [source.record() for source in sources], "weights": factors}
    return Signatures(first.names, np.hstack(blocks), record, named)


def scaled_anew(values: Table, record: Mapping[str, Any], seen: NDArray[np.bool_]) -> Table:
    """Scale combined signatures again, by other seen classes.

    A validation fold needs this, because its held-out classes took part in the first scaling.

    Args:
        values: (L, m) rows from `combine`; rows of a single source stay as they are.
        record: Their `Signatures.record`.
        seen: (L,) True where the class counts as seen now.
    """
    if record.get("kind") != COMBINED:
        return values
    sources, weights = record["sources"], record["weights"]
    blocks = np.split(values, np.cumsum([source["width"] for source in sources])[:-1], axis=1)
    parts = zip(weights, blocks, sources, strict=True)
    return np.hstack([weight * _scaled(block, seen, str(source["kind"])) for weight, block, source in parts])


def reweighted(values: Table, record: Mapping[str, Any], weights: Sequence[float]) -> Table:
    """Signatures from `combine` with other weights.

    Args:
        values: (L, m) rows of several sources.
        record: Their `Signatures.record`.
        weights: The new weight of each source.
    """
    sources = record["sources"]
    _check_weights(weights, len(sources))
    factors = [new / old for new, old in zip(weights, record["weights"], strict=True)]
    scaled: Table = values * np.repeat(factors, [source["width"] for source in sources])
    return scaled


def varies(source: Signatures, seen: NDArray[np.bool_]) -> bool:
    """Whether a source says anything that differs between seen classes, so that it can be scaled."""
    return _centred(source.values, seen)[1] is not None


def _centred(values: Table, seen: NDArray[np.bool_]) -> tuple[Table, float | None]:
    """(L, m) -> (L, m), the seen rows with mean 0, and their root mean square length; None if they are all the same."""
    with np.errstate(over="ignore", invalid="ignore"):  # values that are too large are not finite
        centred = values - values[seen].mean(axis=0)
        length = root_mean_square(centred[seen])
    # Rounding leaves small differences between equal rows.
    equal = not np.isfinite(length) or length <= 1e-12 * np.abs(values[seen]).max()
    return centred, None if equal else length


def _scaled(values: Table, seen: NDArray[np.bool_], title: str) -> Table:
    """(L, m) -> (L, m), the seen rows with mean 0 and root mean square length 1."""
    centred, length = _centred(values, seen)
    if length is None:
        message = f"The {title} of the seen classes are all the same, or too large: leave them out."
        raise PrenError("signatures-constant", message)
    result: Table = centred / length
    return result


def root_mean_square(rows: Table) -> float:
    """The root mean square length of rows (n, m)."""
    return float(np.sqrt((rows**2).sum(axis=1).mean()))


def _title(source: Signatures) -> str:
    return str(source.source["kind"])


def _check_rows(source: Signatures) -> None:
    """Apply the checks of a single source before centring hides its faults."""
    if source.values.ndim != 2 or not source.values.size or source.values.dtype.kind not in "fiub":
        message = f"The {_title(source)} must be a table of numbers, not of shape {source.values.shape}."
        raise PrenError("signatures-kind", message)
    for fault, wrong in (
        ("NaN or infinite values", ~np.isfinite(source.values).all(axis=1)),
        ("only zeros", ~source.values.any(axis=1)),
    ):
        if wrong.any():
            name = source.names[int(wrong.argmax())]
            raise PrenError("signature-value", f"The {_title(source)} of class {name!r} hold {fault}.")


def _check_weights(weights: Sequence[float], count: int) -> None:
    if count == 1 or len(weights) != count or not all(np.isfinite(weight) and weight > 0 for weight in weights):
        rule = "give one positive number for each of several sources, none for a single source"
        message = f"The weights {list(weights)} do not fit {count} sources of signatures: {rule}."
        raise PrenError("signatures-weights", message)
