"""Where problems come from."""

from pren.data.arrays import load_arrays, read_inputs
from pren.data.numbers import Shift, load_numbers
from pren.data.registry import DATASETS, Dataset, list_datasets, load, recommended_params

__all__ = [
    "DATASETS",
    "Dataset",
    "Shift",
    "list_datasets",
    "load",
    "load_arrays",
    "load_numbers",
    "read_inputs",
    "recommended_params",
]
