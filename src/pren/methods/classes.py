"""Add a class to a copy of a fitted method, or remove one.

Scores of the other classes stay the same, unless classes compete for probabilities or votes.
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
    """A copy with one more unseen class, at the end of the class table.

    Args:
        method: Fitted; it does not change.
        name: The name of the class.
        signature: (m,) as its source gives it; it is brought to unit length if the others were.

    Raises:
        PrenError: If there is such a class, the signature does not fit, or the method cannot add a class.
    """
    method._check_fitted()
    known = method.classes_
    if name in known.names:
        raise PrenError("class-twice", f"The model already has a class {name!r}: remove it, or choose another name.")
    if signature.shape != known.signatures.shape[1:]:
        message = f"The signature of {name!r} needs {known.signatures.shape[1]} numbers, not {signature.size}."
        raise PrenError("signature-size", message)
    if known.normalised and np.isfinite(signature).all() and signature.any():
        signature = signature / np.abs(signature).max()
        signature = signature / np.linalg.norm(signature)
    if method.refinement_.changes_scores:
        message = f"refinement={method.refinement} cannot add {name!r}: fit again with it, or with refinement=none."
        raise PrenError("class-refined", message)
    rows = np.vstack([known.signatures, signature])
    table = ClassTable.build((*known.names, name), rows, np.append(known.seen, False), normalise=False)
    grown = copy(method)
    grown.classes_ = replace(table, normalised=known.normalised)
    grown.refinement_ = type(method.refinement_)(grown._candidates())
    grown._take_in()
    return grown


def without_class(method: Fitted, name: str) -> Fitted:
    """A copy without one unseen class.

    Raises:
        PrenError: If there is no such class, it is a seen class, or it is the only unseen class.
    """
    method._check_fitted()
    known = method.classes_
    if name not in known.names:
        raise PrenError("class-unknown", f"The model has no class {name!r}: 'pren classes list' has them.")
    row = known.names.index(name)
    if known.seen[row]:
        raise PrenError("class-seen", f"{name!r} is a seen class, so the model needs it: fit again without it.")
    if known.unseen.sum() == 1:
        raise PrenError("class-last", f"{name!r} is the only unseen class: add another one first.")
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
    """A copy of a model with the unseen classes of a table, and without refinement.

    Raises:
        PrenError: If a class has another signature, or has changed from seen to unseen or back.
    """
    known, unchanged = method.classes_, copy(method)
    unchanged.refinement_ = Unrefined(method._candidates())
    place = {name: row for row, name in enumerate(known.names)}
    new = [name for name in table.names if name not in place]
    for row, name in enumerate(table.names):
        before = place.get(name)
        if (before is None and table.seen[row]) or (before is not None and table.seen[row] != known.seen[before]):
            raise PrenError("class-changed", f"{name!r} has gained or lost labelled inputs since the fit: fit again.")
        if before is not None and not np.allclose(table.signatures[row], known.signatures[before], rtol=0, atol=1e-6):
            raise PrenError("class-changed", f"The signature of {name!r} has changed since the fit: fit again.")
    changed = unchanged
    for name in new:
        changed = with_class(changed, name, table.signatures[table.names.index(name)])
    for name in (name for name in known.names if name not in table.names):
        changed = without_class(changed, name)
    if changed is unchanged:
        changed.network_ = deepcopy(method.network_)
    return changed


def _deleted(array: Matrix, sides: tuple[str, ...], rows: dict[str, int]) -> NDArray[np.float64]:
    """An array without one row along every side of classes."""
    for axis, side in enumerate(sides):
        if side in rows:
            array = np.delete(array, rows[side], axis)
    return array
