"""Rules that choose which inputs of the pool get a pseudo-label.

A new rule is one function with the signature of `pren.core.pseudo.top_per_class`::

    @register_selection("mine")
    def mine(scores, candidates, per_class, last, progress): ...
"""

from __future__ import annotations

import numpy as np

from pren.core.pseudo import Classes, PseudoLabels, Scores, SelectionRule, best_candidate, top_per_class
from pren.foundation.registry import Registry

SELECTIONS: Registry[SelectionRule] = Registry("selection rule")
register_selection = SELECTIONS.register

register_selection("top-per-class")(top_per_class)

LARGEST_SHARE = 0.9  # of the pool, in the last round


@register_selection("growing")
def growing(
    scores: Scores, candidates: Classes, per_class: int, last: PseudoLabels, progress: float = 1.0
) -> PseudoLabels:
    """Choose the surest inputs, more of them in every round.

    An input is sure if its best candidate is far ahead of the second. Every candidate class gets an input: the surest
    of those that are predicted as it. If there is none, it gets the input with the largest score for it, which may
    then have two pseudo-labels.

    Args:
        scores: (N, L).
        candidates: (L,) the classes that may be predicted.
        per_class: Not used.
        last: Not used.
        progress: The number of the round divided by that of the last round.
    """
    if not len(scores):
        return PseudoLabels.none()
    predicted = best_candidate(scores, candidates)
    order = np.argsort(-_ahead(scores[:, candidates]), kind="stable")
    _, first = np.unique(predicted[order], return_index=True)  # the surest input of every class
    count = int(LARGEST_SHARE * progress * len(scores) + 0.5)
    images = order[np.union1d(np.arange(count), first)]
    empty = np.setdiff1d(np.flatnonzero(candidates), predicted)  # classes
    images = np.concatenate([images, scores[:, empty].argmax(axis=0)])
    labels = np.concatenate([predicted[images[: len(images) - len(empty)]], empty])
    by_class = np.lexsort((-scores[images, labels], labels))  # best first
    return PseudoLabels(images[by_class].astype(np.int64), labels[by_class])


def _ahead(scores: Scores) -> Scores:
    """(N,) how far the largest of scores (N, C) is ahead of the second; a single class is ahead by its score."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    two = np.partition(scores, -2, axis=1)[:, -2:]
    ahead: Scores = two[:, 1] - two[:, 0]
    return ahead
