"""The data of a method (`Problem`), and the labels that only the evaluation sees (`Answers`)."""

from pren.problem.class_table import ClassTable, label_indices, name_fault
from pren.problem.problem import UNKNOWN, Answers, Problem, Setting, candidates_of

__all__ = [
    "UNKNOWN",
    "Answers",
    "ClassTable",
    "Problem",
    "Setting",
    "candidates_of",
    "label_indices",
    "name_fault",
]
