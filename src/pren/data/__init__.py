"""Where problems come from."""

from pren.data.arrays import load_arrays, read_inputs
from pren.data.benchmarks.xlsa17 import load_xlsa17
from pren.data.folder.check import report_folder
from pren.data.folder.load import load_folder
from pren.data.folds import check_can_hold_out, class_folds, held_out_classes
from pren.data.numbers import Shift, load_numbers
from pren.data.registry import DATASETS, Dataset, find_dataset, is_path, list_datasets, load, register_dataset
from pren.data.survey import own_folds, survey

__all__ = [
    "DATASETS",
    "Dataset",
    "Shift",
    "check_can_hold_out",
    "class_folds",
    "find_dataset",
    "held_out_classes",
    "is_path",
    "list_datasets",
    "load",
    "load_arrays",
    "load_folder",
    "load_numbers",
    "load_xlsa17",
    "own_folds",
    "read_inputs",
    "register_dataset",
    "report_folder",
    "survey",
]
