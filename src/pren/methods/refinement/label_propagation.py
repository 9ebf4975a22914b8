"""Label propagation on a graph of anchors: similar inputs get similar labels.

Every input is linked to its nearest anchors, which are centres of k-means, and inputs that share anchors share labels
(Liu, He & Chang, "Large graph construction for scalable semi-supervised learning", ICML 2010). Labels spread from
anchor to anchor, so nothing is quadratic in the pool.

With Z the links of the pool's inputs, Z_l those of labelled ones, Y their labels, F⁰ the shares that the method's
scores give to the classes, and Λ the sums of the columns of Z and Z_l, the shares A of the anchors and F of the inputs
solve

    F = (1 - α) Z A + α F⁰,    A = Λ⁻¹ (Zᵀ F + Z_lᵀ Y).

A new input has its own links and its own F⁰, so it gets an F too.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from pren.methods.formulas import Sides, on_arrays, squared_distances
from pren.methods.refinement.base import (
    Classes,
    Refinement,
    ScoredPool,
    Scores,
    blocks,
    register_refinement,
    shares,
)

ANCHORS_PER_CLASS = 10
INPUTS_PER_ANCHOR = 3  # at least, on average
LINKS = 3  # of an input
KEPT = 0.2  # α: how much of its start an input keeps
STEPS = 60  # 0.8^60 is a millionth


@register_refinement("label-propagation")
class LabelPropagation(Refinement):
    """Scores are shares of the classes, F, each divided by (size of the class)^balance."""

    learns: ClassVar[Sides] = {"anchors": ("A", "d"), "width": ("one",), "shares": ("A", "C"), "weights": ("C",)}

    anchors: Tensor
    width: Tensor
    shares: Tensor
    weights: Tensor

    @classmethod
    def fit(cls, pool: ScoredPool) -> LabelPropagation:
        """Find anchors, spread the labels over them, and weigh the classes."""
        count, classes = len(pool.features), int(pool.candidates.sum())
        inputs = np.concatenate([pool.features, pool.labelled])
        anchors = find_anchors(inputs, ANCHORS_PER_CLASS * classes)
        places, distances = nearest_in_blocks(inputs, anchors)
        width = np.array([distances[:, : places.shape[1]].mean() or 1.0])  # all inputs may be equal
        links = as_matrix(places, on_arrays(weights_of, distances, width), len(anchors))
        start = pool.shares()
        spread_out = spread(links[:count], start, links[count:], pool.places())
        weights = np.ones(classes)
        if pool.balance > 0:
            masses = (1 - KEPT) * np.asarray(links[:count].sum(axis=0)) @ spread_out + KEPT * start.sum(axis=0)
            weights = class_weights(masses, pool.balanced(), pool.balance)
        return cls(pool.candidates, anchors=anchors, width=width, shares=spread_out, weights=weights)

    def forward(self, scores: Tensor, features: Tensor) -> Tensor:
        """(n, L)."""
        places, distances = nearest(features, self.anchors)
        links = weights_of(distances, self.width)
        propagated = (links[:, :, None] * self.shares[places]).sum(dim=1)
        start = shares(scores[:, self.columns])
        return self.widened(((1 - KEPT) * propagated + KEPT * start) * self.weights, scores)

    @classmethod
    def restore(cls, arrays: dict[str, Scores], candidates: Classes, d: int) -> LabelPropagation:
        """See `Refinement.restore`."""
        restored = super().restore(arrays, candidates, d)
        if not len(arrays["anchors"]) or not (arrays["width"] > 0).all():
            raise ValueError("the refinement has no anchors, or their width is not positive")
        return restored


def find_anchors(X: Scores, most: int) -> Scores:
    """Different centres (A, d) of inputs X (n, d), whose order does not matter."""
    from sklearn.cluster import MiniBatchKMeans  # late, because the import takes a fifth of a second

    order = np.argsort(X @ np.cos(np.arange(X.shape[1])), kind="stable")
    count = max(1, min(most, len(X) // INPUTS_PER_ANCHOR))
    kmeans = MiniBatchKMeans(count, batch_size=max(1024, 2 * count), n_init=1, random_state=0)
    anchors: Scores = np.unique(kmeans.fit(X[order]).cluster_centers_, axis=0)
    return anchors


def nearest(x: Tensor, anchors: Tensor) -> tuple[Tensor, Tensor]:
    """Places (n, k) of the nearest anchors, nearest first, and squared distances (n, k + 1) of them and the next one.

    The distance of the next one is infinite if there is none.
    """
    count = min(LINKS, len(anchors))
    distances, places = squared_distances(x, anchors).topk(min(count + 1, len(anchors)), dim=1, largest=False)
    if len(anchors) == count:
        distances = torch.nn.functional.pad(distances, (0, 1), value=torch.inf)
    return places[:, :count], distances


def nearest_in_blocks(x: Scores, anchors: Scores) -> tuple[NDArray[np.int64], Scores]:
    """`nearest` of any number of inputs."""
    centres = torch.from_numpy(anchors)
    parts = [nearest(torch.from_numpy(x[block]), centres) for block in blocks(len(x), len(anchors))]
    places, distances = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
    return places, distances


def weights_of(distances: Tensor, width: Tensor) -> Tensor:
    """Links (n, k) of sum 1: Gaussian weights minus that of the next anchor.

    So links change continuously where an anchor leaves the nearest ones and another comes in.
    """
    gaussian = (-(distances - distances[:, :1]) / width).exp()
    weights = gaussian[:, :-1] - gaussian[:, -1:]
    weights = torch.where(weights[:, :1] == 0, torch.ones_like(weights), weights)  # all are equally near
    return weights / weights.sum(dim=1, keepdim=True)


def as_matrix(places: NDArray[np.int64], weights: Scores, anchors: int) -> csr_array:
    """The sparse (n, A) with weights (n, k) at places (n, k)."""
    ends = np.arange(len(places) + 1) * places.shape[1]
    return csr_array((weights.ravel(), places.ravel(), ends), shape=(len(places), anchors))


def spread(links: csr_array, start: Scores, held: csr_array, places: NDArray[np.int64]) -> Scores:
    """A (A, C), see the top of this file.

    Args:
        links: (N, A) of the pool's inputs.
        start: (N, C) F⁰.
        held: (n, A) the links of the labelled inputs.
        places: (n,) their classes.
    """
    labels = np.zeros((held.shape[0], start.shape[1]))
    labels[np.arange(len(places)), places] = 1.0
    sums = np.maximum(links.sum(axis=0) + held.sum(axis=0), np.finfo(np.float64).tiny)[:, None]
    steps = (links.T @ links).multiply((1 - KEPT) / sums).tocsr()
    given = (KEPT * (links.T @ start) + held.T @ labels) / sums
    found: Scores = given / KEPT
    for _ in range(STEPS):
        found = steps @ found + given
    return found


def class_weights(masses: Scores, balanced: Classes, balance: float) -> Scores:
    """(C,) factors of the shares of each class; the balanced classes together keep their mass."""
    weights = np.ones_like(masses)
    group = np.maximum(masses[balanced], np.finfo(np.float64).tiny)
    scaled = group**-balance
    weights[balanced] = scaled * group.sum() / (scaled * group).sum()
    return weights
