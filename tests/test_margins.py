"""How far apart a head can hold classes."""

import numpy as np
import pytest

from benchmarks.margins import main, margin, margins
from pren.core.projection import LabelEmbeddings


def by_trying(differences, non_negative):
    """The same in the plane: every direction of a fine circle."""
    best = 0.0
    for angle in np.linspace(0, (0.5 if non_negative else 2) * np.pi, 20_001):
        v = np.array([np.cos(angle), np.sin(angle)])
        best = max(best, min(float(v @ d) for d in differences))
    return best


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("non_negative", [False, True])
def test_margins_by_trying_every_direction(seed, non_negative):
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=(3, 2)) + rng.normal(size=2)
    assert margin(differences, non_negative) == pytest.approx(by_trying(differences, non_negative), abs=1e-3)


def test_what_cannot_be_reached_has_no_margin():
    assert margin(np.array([[1.0, 0.0], [-1.0, 0.0]]), non_negative=False) == 0
    assert margin(np.array([[-1.0, -1.0]]), non_negative=True) == 0
    assert margin(np.array([[-1.0, -1.0]]), non_negative=False) == pytest.approx(2**0.5)


def test_who_is_compared():
    """Class 0 is against class 1 within Z, and against class 2, which lies between, among all."""
    labels = LabelEmbeddings(np.array([[[0.0, 4.0, 1.0]]]), np.array([[True, True, False]]))
    assert list(margins(labels, among_all=False, non_negative=False)) == pytest.approx([4, 4])
    assert list(margins(labels, among_all=True, non_negative=False)) == pytest.approx([1, 3])
    assert list(margins(labels, among_all=False, non_negative=True)) == pytest.approx([0, 4])


def test_the_table(capsys):
    main(["numbers", "--heads", "2"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert [row[0] for row in rows[2:]] == ["original signatures", "projected"]
    assert all(float(row[2]) <= float(row[1]) + 1e-3 for row in rows[2:])  # a bound costs
