"""What the scores of a pool go through after a method and before γ: by name, for every method.

A new refinement is one function in one file of this room (or of a package of your own)::

    @register_refinement("mine")
    def mine(pool: ScoredPool) -> Scores: ...
"""

from pren.refinement.base import REFINEMENTS, Refinement, ScoredPool, Scores, register_refinement
from pren.refinement.soft_kmeans import soft_kmeans

__all__ = ["REFINEMENTS", "Refinement", "ScoredPool", "Scores", "register_refinement", "soft_kmeans"]
