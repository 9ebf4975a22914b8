"""What scores go through after a method and before γ: by name, for every method, learned within `fit` from the pool.

It is saved with the model and applies to any image, one at a time or many. A new refinement is one class in one file of
this room (or of a package of your own)::

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
