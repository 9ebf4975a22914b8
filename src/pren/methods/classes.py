"""Classes that come or go after training: a copy of a fitted method that knows one more, or one less.

Scores of the other classes stay what they were, but for what competition changes in a method whose classes share
probabilities or votes.
"""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pren.foundation.errors import PrenError
from pren.methods.base import Method
from pren.methods.params import Learned, declared
from pren.methods.preparation import Matrix
from pren.methods.refinement.base import Unrefined
from pren.problem import ClassTable

Fitted = TypeVar("Fitted", bound=Method)


def with_class(method: Fitted, name: str, signature: Matrix) -> Fitted:
    """A copy that knows one more unseen class, at the end of the class table.

    Args:
        method: Fitted; it stays as it is.
        name: What the class is called.
        signature: (m,) as its source gives it: it is brought to unit length if the others were.

    Raises:
        PrenError: If there is such a class, the signature does not fit, or the method cannot take one in.
    """
    method._check_fitted()
    known = method.classes_
    if name in known.names:
        raise PrenError(
            "class-twice", f"The model has a class {name!r} already: remove it first, or choose another name."
        )
    if signature.shape != known.signatures.shape[1:]:
        raise PrenError(
            "signature-size", f"A signature has {known.signatures.shape[1]} numbers here, not {signature.size}."
        )
    if known.normalised and np.isfinite(signature).all() and signature.any():
        signature = signature / np.abs(signature).max()
        signature = signature / np.linalg.norm(signature)
    if method.refinement_.changes_scores:
        raise PrenError(
            "class-refined",
            f"refinement={method.refinement} was learned from the pool, where {name!r} has no place: fit again with "
            "the class, or with refinement=none.",
        )
    rows = np.vstack([known.signatures, signature])
    table = ClassTable.build((*known.names, name), rows, np.append(known.seen, False), normalise=False)
    grown = copy(method)
    grown.classes_ = replace(table, normalised=known.normalised)
    grown.refinement_ = type(method.refinement_)(grown._candidates())
    grown._take_in()
    return grown


def without_class(method: Fitted, name: str) -> Fitted:
    """A copy that does not know an unseen class any more.

    Raises:
        PrenError: If there is no such class, its images were learned from, or no other unseen class is left.
    """
    method._check_fitted()
    known = method.classes_
    if name not in known.names:
        raise PrenError("class-unknown", f"The model has no class {name!r}: 'pren classes list' has them.")
    row = known.names.index(name)
    if known.seen[row]:
        raise PrenError(
            "class-seen", f"{name!r} is a seen class, which the model has learned from: fit again without it."
        )
    if known.unseen.sum() == 1:
        raise PrenError("class-last", f"{name!r} is the only unseen class: there would be nothing to recognise.")
    place = int(method._candidates()[:row].sum())
    left = copy(method)
    names = tuple(other for other in known.names if other != name)
    left.classes_ = ClassTable(names, np.delete(known.signatures, row, 0), np.delete(known.seen, row), known.normalised)
    for learned, declaration in declared(type(method), Learned).items():
        setattr(left, learned, _deleted(getattr(method, learned), declaration.shape, {"L": row}))
    kind = type(method.refinement_)
    arrays = {
        key: _deleted(array, kind.learns[key], {"L": row, "C": place})
        for key, array in method.refinement_.arrays.items()
    }
    left.refinement_ = kind(left._candidates(), **arrays)
    left._leave_out(int(np.argsort(method._order())[row]))
    return left


def with_classes_of(method: Fitted, table: ClassTable) -> Fitted:
    """A copy of a model that knows the unseen classes of a table, and no other ones; what refines its scores is gone.

    Raises:
        PrenError: If a class is described otherwise than before, or has become a seen one or an unseen one.
    """
    known, unchanged = method.classes_, copy(method)
    unchanged.refinement_ = Unrefined(method._candidates())
    place = {name: row for row, name in enumerate(known.names)}
    new = [name for name in table.names if name not in place]
    for row, name in enumerate(table.names):
        before = place.get(name)
        if (before is None and table.seen[row]) or (before is not None and table.seen[row] != known.seen[before]):
            raise PrenError(
                "class-changed",
                f"{name!r} has got labelled images, or lost them, since the model was fitted: fit anew.",
            )
        if before is not None and not np.allclose(table.signatures[row], known.signatures[before], rtol=0, atol=1e-6):
            raise PrenError(
                "class-changed", f"{name!r} is described otherwise than when the model was fitted: fit anew."
            )
    changed = unchanged
    for name in new:
        changed = with_class(changed, name, table.signatures[table.names.index(name)])
    for name in (name for name in known.names if name not in table.names):
        changed = without_class(changed, name)
    if changed is unchanged:
        changed.network_ = deepcopy(method.network_)
    return changed


def _deleted(array: Matrix, sides: tuple[str, ...], rows: dict[str, int]) -> NDArray[np.float64]:
    """An array without one place of every side that is about classes."""
    for axis, side in enumerate(sides):
        if side in rows:
            array = np.delete(array, rows[side], axis)
    return array
