"""Load problems from registered data sets or the user's own folder or file. Loaders are imported when used."""

from pren.data.folds import check_can_hold_out, class_folds, held_out_classes, how_to_rehearse
from pren.data.registry import DATASETS, Dataset, find_dataset, is_path, list_datasets, load, register_dataset

__all__ = [
    "DATASETS",
    "Dataset",
    "check_can_hold_out",
    "class_folds",
    "find_dataset",
    "held_out_classes",
    "how_to_rehearse",
    "is_path",
    "list_datasets",
    "load",
    "register_dataset",
]
