"""Where UDA and DCL start: which class an image may have, as ESZSL sees it."""

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

    Divided by it, images have length 1 on average, so that penalties and bounds mean the same whatever the scaling.
    """
    return np.array([float(np.sqrt((X**2).sum(axis=1).mean())) or 1.0])


def eszsl_weights(
    X: Matrix, labels: NDArray[np.int64], classes: ClassTable, feature_reg: float, signature_reg: float
) -> Matrix:
    """ESZSL's V (d, m) for labelled features X (n, d): x V a_c scores class c."""
    # The pool is a part of every problem, but ESZSL does not look at it.
    problem = Problem(ArrayInputs(X), labels, ArrayInputs(X[:1]), classes)
    model = ESZSL(feature_reg=feature_reg, signature_reg=signature_reg, features="raw")
    weights: Matrix = model.fit(problem).weights_
    return weights


def posterior(scores: Matrix, classes: ClassTable, setting: Setting, sharpness: float) -> Matrix:
    """Turn any scores into p(c|x) over the candidates of the setting.

    Scores have no natural unit, so an image's are brought to mean 0 and variance 1 before the softmax. In GZSL seen and
    unseen classes are brought there apart: whatever was trained on labelled images gives seen classes larger scores,
    and unseen ones would come away empty-handed.

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
