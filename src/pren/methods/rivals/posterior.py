"""The first class probabilities of UDA and DCL, from ESZSL."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from pren.methods.preparation import Matrix
from pren.methods.rivals.eszsl import ESZSL
from pren.problem import ClassTable, Problem, Setting, candidates_of
from pren.problem.inputs import ArrayInputs


def mean_length(X: Matrix) -> Matrix:
    """The root mean square of the lengths of features (n, d), as (1,); 1 where all are zero.

    Features are divided by it, so that penalties and bounds mean the same for any scaling.
    """
    return np.array([float(np.sqrt((X**2).sum(axis=1).mean())) or 1.0])


def eszsl_weights(
    X: Matrix, labels: NDArray[np.int64], classes: ClassTable, feature_reg: float, signature_reg: float
) -> Matrix:
    """ESZSL's V (d, m) for labelled features X (n, d): x V a_c scores class c."""
    # A problem needs a pool, but ESZSL does not use it.
    problem = Problem(ArrayInputs(X), labels, ArrayInputs(X[:1]), classes)
    model = ESZSL(feature_reg=feature_reg, signature_reg=signature_reg, features="raw")
    weights: Matrix = model.fit(problem).weights_
    return weights


def posterior(scores: Matrix, classes: ClassTable, setting: Setting, sharpness: float) -> Matrix:
    """Turn any scores into p(c|x) over the candidates of the setting.

    Scores have no unit, so each input's are brought to mean 0 and variance 1 before the softmax; in GZSL seen and
    unseen classes separately, because training on labelled inputs gives seen classes larger scores.

    Args:
        scores: (n, L).
        classes: The class table.
        setting: Which classes are candidates.
        sharpness: What the scores of unit variance are multiplied by.

    Returns:
        (n, L), zero for classes that are no candidates.
    """
    groups = [classes.unseen] if candidates_of(setting) == "unseen" else [classes.unseen, classes.seen]
    logits = np.full(scores.shape, -np.inf)
    for group in groups:
        part = scores[:, group] - scores[:, group].mean(axis=1, keepdims=True)
        spread = part.std(axis=1, keepdims=True)
        logits[:, group] = sharpness * np.divide(part, spread, out=np.zeros_like(part), where=spread > 0)
    probabilities: Matrix = softmax(logits, axis=1)
    return probabilities
