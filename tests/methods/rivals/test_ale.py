"""ALE's weighted ranking loss, image by image."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from pren.methods.rivals.ale import ALE, weighted_ranking


@given(st.integers(1, 5), st.integers(1, 6), st.floats(0.1, 5), st.integers(0, 10**6))
def test_violated_margins_count_by_rank(n, L, margin, seed):
    rng = np.random.default_rng(seed)
    F, y = rng.normal(size=(n, L)), rng.integers(0, L, size=n)
    losses = weighted_ranking(torch.from_numpy(F), torch.from_numpy(y), margin)
    for i in range(n):
        amounts = [margin + F[i, c] - F[i, y[i]] for c in range(L) if c != y[i]]
        violated = [amount for amount in amounts if amount > 0]
        r = len(violated)
        expected = sum(1 / j for j in range(1, r + 1)) / r * sum(violated) if r else 0.0
        assert np.isclose(losses[i], expected)


def test_one_violation_counts_in_full_and_many_count_less_each():
    F, y = torch.tensor([[0.0, 0.5, -9.0, -9.0], [0.0, 0.5, 0.5, 0.5]]), torch.tensor([0, 0])
    one, three = weighted_ranking(F, y, 1.0)
    assert np.isclose(one, 1.5)
    assert np.isclose(three, 1.5 * (1 + 1 / 2 + 1 / 3))


def test_the_first_step_is_weighted_by_rank(first_step):
    def direction(W, x, A, y):
        (W,) = W
        violating = [c for c in range(len(A)) if c != y and 0.5 + x @ W @ A[c] > x @ W @ A[y]]
        beta = sum(1 / j for j in range(1, len(violating) + 1))
        step = sum((np.outer(x, A[y] - A[c]) for c in violating), np.zeros_like(W))
        return beta / max(len(violating), 1) * step[None]

    first_step(ALE, direction, margin=0.5)
