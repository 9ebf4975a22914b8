"""DeViSE's loss, image by image."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from pren.methods.rivals.devise import DeViSE


@given(st.integers(1, 5), st.integers(1, 6), st.floats(0.1, 5), st.integers(0, 10**6))
def test_every_violated_margin_counts(n, L, margin, seed):
    rng = np.random.default_rng(seed)
    F, y = rng.normal(size=(n, L)), rng.integers(0, L, size=n)
    losses = DeViSE(margin=margin)._loss(torch.from_numpy(F), torch.from_numpy(y))
    for i in range(n):
        expected = sum(max(0.0, margin + F[i, c] - F[i, y[i]]) for c in range(L) if c != y[i])
        assert np.isclose(losses[i], expected)


def test_the_first_step_is_the_papers_over_all_violating_classes(first_step):
    def direction(W, x, A, y):
        (W,) = W
        step = np.zeros_like(W)
        for c in range(len(A)):
            if c != y and 0.5 + x @ W @ A[c] > x @ W @ A[y]:
                step += np.outer(x, A[y] - A[c])
        return step[None]

    first_step(DeViSE, direction, margin=0.5)
