"""Preparations of features, for every method: learned in `fit` and saved with the model.

A new preparation is one class in a file of this folder or of your own package::

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
