"""Eq. 5-7: the heads vote, and the votes become scores.

Head k votes for the class of its own subset Z_k with the largest v · E_k[:, c] (Eq. 5). φ(x, c) is the share of the
heads with c ∈ Z_k that voted for c (Eq. 7), and the prediction is the class with the largest φ (Eq. 6).

Two kinds of ties are common, and the order of the classes must not decide them:

- within a head: where the output ReLU sets every informative unit to 0, all classes of Z_k score exactly 0. The score
  before the ReLU decides.
- between classes: φ takes few values. Where it is equal, the mean of p_k(c|x) over the heads with c ∈ Z_k decides. Two
  different vote shares differ by at least 1/n², where n is the largest number of heads of a class, so φ + ε p with
  ε < 1/n² has this order.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from pren.core.ensemble import Ensemble

GzslRule = Literal["literal", "probability"]
ScoreRule = Literal["votes", "literal", "probability"]


def head_votes(ensemble: Ensemble, raw: Tensor) -> Tensor:
    """Eq. 5: the class that each head votes for.

    Args:
        ensemble: The heads.
        raw: (K, N, h) embeddings before the output ReLU.

    Returns:
        (K, N) class indices, each in the head's own Z_k.
    """
    outside = ~ensemble.subsets[:, None, :]
    scores = ensemble.similarities(ensemble.activate(raw)).masked_fill(outside, -torch.inf)
    best = scores == scores.amax(dim=-1, keepdim=True)
    before_relu = ensemble.similarities(raw)
    return before_relu.masked_fill(~best, -torch.inf).argmax(dim=-1)


def vote_shares(votes: Tensor, subsets: Tensor) -> Tensor:
    """Eq. 7: φ(x, c), zero for classes in no subset.

    Args:
        votes: (K, N) class indices.
        subsets: (K, L) True for c ∈ Z_k.

    Returns:
        (N, L) float64.
    """
    images, classes = votes.shape[1], subsets.shape[1]
    counts = torch.zeros(images, classes, dtype=torch.float64, device=votes.device)
    counts.scatter_add_(1, votes.T, torch.ones_like(votes.T, dtype=torch.float64))
    return counts / subsets.sum(dim=0).clamp(min=1)


def mean_probabilities(similarities: Tensor, subsets: Tensor) -> Tensor:
    """The mean of p_k(c|x), over the heads with c ∈ Z_k for unseen classes and over all heads for seen ones.

    Args:
        similarities: (K, N, L).
        subsets: (K, L); a class in no subset counts as seen.

    Returns:
        (N, L) float64.
    """
    p = similarities.softmax(dim=-1).double()
    counted = (subsets | ~subsets.any(dim=0)).double()
    return torch.einsum("knl,kl->nl", p, counted / counted.sum(dim=0))


def tie_break_weight(subsets: Tensor) -> Tensor:
    """ε: less than the smallest difference between two vote shares."""
    most = subsets.sum(dim=0).max().double()  # a tensor, so that the network can be exported
    return 1 / (most**2 + 1)


def zsl_scores(ensemble: Ensemble, raw: Tensor) -> Tensor:
    """φ + ε p for unseen classes; the mean of p_k for seen ones, which are not candidates in ZSL.

    Args:
        ensemble: The heads.
        raw: (K, N, h) embeddings before the output ReLU.

    Returns:
        (N, L) float64.
    """
    subsets = ensemble.subsets
    p = mean_probabilities(ensemble.similarities(ensemble.activate(raw)), subsets)
    phi = vote_shares(head_votes(ensemble, raw), subsets)
    return torch.where(subsets.any(dim=0), phi + tie_break_weight(subsets) * p, p)


def gzsl_scores(ensemble: Ensemble, raw: Tensor, rule: GzslRule) -> Tensor:
    """Scores over S ∪ U, before γ is subtracted from those of seen classes.

    Args:
        ensemble: The heads.
        raw: (K, N, h) embeddings before the output ReLU.
        rule: "literal": unseen classes score φ (ties broken as in `zsl_scores`), a seen class scores the average over
            the heads of v · E_k[:, c], as the paper prints it. "probability": every class scores the mean of p_k(c|x).

    Returns:
        (N, L) float64.
    """
    seen = ~ensemble.subsets.any(dim=0)
    similarities = ensemble.similarities(ensemble.activate(raw))
    if rule == "probability":
        return mean_probabilities(similarities, ensemble.subsets)
    return torch.where(seen, similarities.double().mean(dim=0), zsl_scores(ensemble, raw))


class Network(nn.Module):
    """A backbone f_v (the identity where inputs are features) and the ensemble on top of it.

    Args:
        backbone: (N, ...) -> (N, d).
        ensemble: The heads.
        rule: How images are scored: "votes" in ZSL, otherwise a rule of `gzsl_scores`.
    """

    def __init__(self, backbone: nn.Module, ensemble: Ensemble, rule: ScoreRule = "votes") -> None:
        super().__init__()
        self.backbone = backbone
        self.ensemble = ensemble
        self.rule = rule

    def forward(self, inputs: Tensor) -> Tensor:
        """The scores (N, L) of all classes."""
        return self.scores(inputs, self.rule)

    def scores(self, inputs: Tensor, rule: ScoreRule) -> Tensor:
        """The scores (N, L) by another rule."""
        raw = self.ensemble(self.backbone(inputs))
        return zsl_scores(self.ensemble, raw) if rule == "votes" else gzsl_scores(self.ensemble, raw, rule)

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Eq. 3 for a batch."""
        return self.ensemble.loss(self.backbone(inputs), targets)
