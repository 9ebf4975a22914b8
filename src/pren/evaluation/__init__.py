"""How good predictions are: figures from scores and the pool's answers."""

from pren.evaluation.metrics import ClassResult, Confusion, Metrics, check_answers, evaluate, evaluate_predictions

__all__ = ["ClassResult", "Confusion", "Metrics", "check_answers", "evaluate", "evaluate_predictions"]
