"""What features go through before a method: by name, for every method, learned within `fit` and saved with the model.

A new preparation is one class in one file of this room (or of a package of your own)::

    @register_preparation("mine")
    class Mine(Preparation): ...
"""

from pren.methods.formulas import Matrix
from pren.methods.preparation.base import PREPARATIONS, Preparation, register_preparation
from pren.methods.preparation.scaling import MinMax, Raw, Standard, UnitLength
from pren.methods.preparation.whitening import Whitened

__all__ = [
    "PREPARATIONS",
    "Matrix",
    "MinMax",
    "Preparation",
    "Raw",
    "Standard",
    "UnitLength",
    "Whitened",
    "register_preparation",
]
