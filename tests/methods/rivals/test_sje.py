"""SJE's structured loss, image by image."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from pren.methods.rivals.sje import SJE


@given(st.integers(1, 5), st.integers(1, 6), st.floats(0.1, 5), st.integers(0, 10**6))
def test_only_the_worst_violation_counts(n, L, margin, seed):
    rng = np.random.default_rng(seed)
    F, y = rng.normal(size=(n, L)), rng.integers(0, L, size=n)
    losses = SJE(margin=margin)._loss(torch.from_numpy(F), torch.from_numpy(y))
    for i in range(n):
        expected = max((margin if c != y[i] else 0.0) + F[i, c] for c in range(L)) - F[i, y[i]]
        assert np.isclose(losses[i], expected)


def test_the_first_step_is_away_from_the_worst_class(first_step):
    def direction(W, x, A, y):
        (W,) = W
        worst = max(range(len(A)), key=lambda c: (0.5 if c != y else 0.0) + x @ W @ A[c])
        return np.outer(x, A[y] - A[worst])[None]

    first_step(SJE, direction, margin=0.5)
