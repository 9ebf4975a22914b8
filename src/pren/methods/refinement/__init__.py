"""Refinements of scores, for every method: after the method, before γ; learned in `fit` from the pool.

A refinement is saved with the model and refines any input. A new one is one class in a file of this folder or of your
own package::

    @register_refinement("mine")
    class Mine(Refinement): ...
"""

from pren.methods.refinement.base import REFINEMENTS, Refinement, ScoredPool, Scores, Unrefined, register_refinement
from pren.methods.refinement.label_propagation import LabelPropagation
from pren.methods.refinement.soft_kmeans import SoftKMeans

__all__ = [
    "REFINEMENTS",
    "LabelPropagation",
    "Refinement",
    "ScoredPool",
    "Scores",
    "SoftKMeans",
    "Unrefined",
    "register_refinement",
]
