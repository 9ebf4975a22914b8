"""How far fine-tuning goes: what held-out classes say, and when that could be chance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.runs.finetuning import DRAWS, STRENGTHS, Trials

COUNT = len(STRENGTHS)
FIGURES = st.lists(st.lists(st.floats(0, 1), min_size=DRAWS, max_size=DRAWS), min_size=COUNT, max_size=COUNT)


def trials(gains):
    """Draws that begin at 0.5, 0.6 and 0.7, with these gains."""
    rows = [(0.0,) * DRAWS, gains]
    return Trials(figures=tuple(tuple(0.5 + 0.1 * place + gain for place, gain in enumerate(row)) for row in rows))


@pytest.mark.parametrize(
    ("gains", "strength"),
    [
        ((0.0, 0.0, 0.0), 0.0),
        ((0.02, 0.03, 0.04), 0.25),
        ((0.09, -0.04, -0.04), 0.0),  # one draw in three
        ((-0.01, -0.01, -0.01), 0.0),
    ],
)
def test_what_is_clearly_better(gains, strength):
    assert trials(gains).best() == strength


@given(FIGURES)
def test_what_is_chosen_never_looks_worse(figures):
    found = Trials(figures=tuple(map(tuple, figures)))
    chosen = STRENGTHS.index(found.best())
    assert found.means()[chosen] >= found.means()[0]
    assert found.means() == [pytest.approx(sum(row) / DRAWS) for row in figures]
