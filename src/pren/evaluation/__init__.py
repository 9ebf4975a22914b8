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

__all__ = [
    "FIGURES",
    "MAIN_FIGURE",
    "TITLES",
    "ClassResult",
    "Confusion",
    "Curve",
    "Metrics",
    "best_gamma",
    "check_answers",
    "evaluate",
    "trade_off",
]
