"""The trade-off of seen and unseen classes against a plain loop over all thresholds."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused

from pren.evaluation import Curve, Marks, best_gamma, evaluate_marks, evaluate_scores, trade_off
from pren.problem import UNKNOWN, Answers, ClassTable


class Case(NamedTuple):
    """Scores, some of them equal, of images of seen and of unseen classes."""

    scores: NDArray[np.float64]
    answers: Answers
    classes: ClassTable


@st.composite
def cases(draw: st.DrawFn) -> Case:
    seen = draw(st.lists(st.booleans(), min_size=2, max_size=5).filter(lambda s: any(s) and not all(s)))
    classes = ClassTable.build([f"class {i}" for i in range(len(seen))], np.eye(len(seen)), np.array(seen))
    one_of_each = [seen.index(True), seen.index(False)]
    others = draw(st.lists(st.sampled_from([*range(len(seen)), UNKNOWN]), max_size=12))
    labels = np.array(one_of_each + others)
    # Quarters, so that gaps are exact and often the same.
    quarter = st.integers(-8, 8).map(lambda whole: whole / 4)
    scores = np.array([[draw(quarter) for _ in seen] for _ in labels])
    return Case(scores, Answers(labels), classes)


@given(cases(), st.data())
def test_parts_of_the_images_give_the_same_figures(case, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(case.scores)), max_size=3)))
    parts = [Marks.of(part, case.classes, "gzsl") for part in np.split(case.scores, cuts)]
    whole = evaluate_scores(case.scores, case.answers, case.classes, "gzsl")
    assert evaluate_marks(Marks.joined(parts), case.answers, case.classes, "gzsl") == whole


def slow_u_and_s(case: Case, gamma: float) -> tuple[float, float]:
    """One image after the other; an image on the threshold counts as unseen."""
    right: dict[int, list[bool]] = {}
    for row, label in zip(case.scores, case.answers.labels.tolist(), strict=True):
        if label == UNKNOWN:
            continue
        best: dict[bool, tuple[float, int]] = {}
        for c, score in enumerate(row.tolist()):
            kind = bool(case.classes.seen[c])
            if kind not in best or score > best[kind][0]:
                best[kind] = (score, c)
        winner = best[True][1] if best[True][0] - gamma > best[False][0] else best[False][1]
        right.setdefault(label, []).append(winner == label)
    of = {True: [], False: []}  # type: dict[bool, list[float]]
    for label, hits in right.items():
        of[bool(case.classes.seen[label])].append(sum(hits) / len(hits))
    return sum(of[False]) / len(of[False]), sum(of[True]) / len(of[True])


def all_gammas(case: Case) -> list[float]:
    """Below, on, between and above all gaps: multiples of an eighth."""
    return [eighth / 8 for eighth in range(-34, 36)]


def curve_of(case: Case) -> Curve:
    curve = trade_off(case.scores, case.answers, case.classes)
    assert curve is not None
    return curve


def harmonic(u: float, s: float) -> float:
    return 2 * u * s / (u + s) if u + s else 0.0


@given(cases())
def test_every_level_matches_a_plain_loop(case: Case) -> None:
    curve = curve_of(case)
    for gamma in all_gammas(case):
        level = sum(gap <= gamma for gap in curve.gaps.tolist())
        assert (curve.u[level], curve.s[level]) == pytest.approx(slow_u_and_s(case, gamma), abs=1e-12)
        assert curve.h_at(np.array([gamma]))[0] == pytest.approx(harmonic(*slow_u_and_s(case, gamma)), abs=1e-12)


@given(cases())
def test_the_area_matches_a_plain_loop(case: Case) -> None:
    points = [slow_u_and_s(case, gamma) for gamma in all_gammas(case)]
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))
    assert curve_of(case).area() == pytest.approx(area, abs=1e-12)
    assert evaluate_scores(case.scores, case.answers, case.classes, "gzsl").ausuc == curve_of(case).area()


@given(st.lists(cases(), min_size=1, max_size=3))
def test_the_best_gamma_matches_a_plain_loop(several: list[Case]) -> None:
    curves = [curve_of(case) for case in several]
    gamma, mean = best_gamma(curves)
    tried = [np.mean([harmonic(*slow_u_and_s(case, g)) for case in several]) for g in all_gammas(several[0])]
    assert mean == pytest.approx(max(tried), abs=1e-12)
    assert np.mean([harmonic(*slow_u_and_s(case, gamma)) for case in several]) == pytest.approx(mean, abs=1e-12)


@given(cases())
def test_gamma_taken_off_gives_what_the_curve_says(case: Case) -> None:
    gamma, h = best_gamma([curve_of(case)])
    stacked = case.scores - gamma * case.classes.seen
    assert evaluate_scores(stacked, case.answers, case.classes, "gzsl").h == pytest.approx(h, abs=1e-12)


@given(cases(), st.integers(-8, 8))
def test_a_gamma_that_scores_contain_does_not_change_the_area(case: Case, halves: int) -> None:
    moved = case._replace(scores=case.scores - halves / 2 * case.classes.seen)
    assert curve_of(moved).area() == curve_of(case).area()


def test_what_is_easy_to_see() -> None:
    classes = ClassTable.build(["a", "b"], np.eye(2), np.array([True, False]))
    answers = Answers(np.array([0, 1]))
    apart = trade_off(np.array([[1.0, 0.0], [0.5, 0.0]]), answers, classes)  # gaps 1 and 0.5: some gamma gets both
    assert apart is not None
    assert apart.area() == 1.0
    assert best_gamma([apart]) == (0.75, 1.0)
    crossed = trade_off(np.array([[0.5, 0.0], [1.0, 0.0]]), answers, classes)
    assert crossed is not None
    assert crossed.area() == 0.0


@pytest.mark.parametrize("labels", [[0, 0], [1, 1], [0, UNKNOWN], [UNKNOWN, UNKNOWN]])
def test_one_kind_of_images_has_no_trade_off(labels: list[int]) -> None:
    classes = ClassTable.build(["a", "b"], np.eye(2), np.array([True, False]))
    assert trade_off(np.eye(2), Answers(np.array(labels)), classes) is None


def test_infinite_scores_have_no_trade_off_but_are_evaluated() -> None:
    classes = ClassTable.build(["a", "b"], np.eye(2), np.array([True, False]))
    scores, answers = np.array([[0.0, -np.inf], [0.0, 1.0]]), Answers(np.array([0, 1]))
    assert trade_off(scores, answers, classes) is None
    metrics = evaluate_scores(scores, answers, classes, "gzsl")
    assert (metrics.h, metrics.ausuc) == (1.0, None)


def test_zsl_has_no_area() -> None:
    classes = ClassTable.build(["a", "b"], np.eye(2), np.array([True, False]))
    assert evaluate_scores(np.eye(2), Answers(np.array([1, 1])), classes, "zsl").ausuc is None


def test_no_curve_at_all() -> None:
    with refused("gamma-no-trade-off"):
        best_gamma([])
