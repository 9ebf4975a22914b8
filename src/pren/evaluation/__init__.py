"""How good predictions are: figures from scores and the pool's answers."""

from pren.evaluation.calibration import Curve, best_gamma, trade_off
from pren.evaluation.metrics import (
    FIGURES,
    MAIN_FIGURE,
    TITLES,
    ClassResult,
    Confusion,
    Metrics,
    check_answers,
    evaluate,
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
    "Metrics",
    "Reliability",
    "best_gamma",
    "check_answers",
    "evaluate",
    "reliability",
    "round_figures",
    "trade_off",
]
