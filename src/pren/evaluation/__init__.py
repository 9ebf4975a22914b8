"""Figures of predictions, from scores and the pool's answers."""

from pren.evaluation.calibration import Curve, best_gamma, trade_off
from pren.evaluation.metrics import (
    FIGURES,
    MAIN_FIGURE,
    TITLES,
    ClassResult,
    Confusion,
    Marks,
    Metrics,
    check_answers,
    evaluate,
    evaluate_marks,
    evaluate_scores,
)
from pren.evaluation.reliability import Reliability, reliability
from pren.evaluation.rounds import round_figures

__all__ = [
    "FIGURES",
    "MAIN_FIGURE",
    "TITLES",
    "ClassResult",
    "Confusion",
    "Curve",
    "Marks",
    "Metrics",
    "Reliability",
    "best_gamma",
    "check_answers",
    "evaluate",
    "evaluate_marks",
    "evaluate_scores",
    "reliability",
    "round_figures",
    "trade_off",
]
