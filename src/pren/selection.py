"""Rules by name that choose which images of the pool get a pseudo-label.

A new rule is one function with the signature of `pren.core.pseudo.top_per_class`, under a name of its own::

    @register_selection("mine")
    def mine(scores, candidates, per_class, last): ...
"""

from __future__ import annotations

from pren.core.pseudo import SelectionRule, top_per_class
from pren.registry import Registry

SELECTIONS: Registry[SelectionRule] = Registry("selection rule")
register_selection = SELECTIONS.register

register_selection("top-per-class")(top_per_class)
