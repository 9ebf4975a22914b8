"""Labels of any number of images, as files: in parts that survive an interruption, then as one table.

`label` does all of it; `WRITERS` are the forms that the table can have.
"""

from pren.label.formats import WRITERS, find_writer, write_labels
from pren.label.job import Labelled, Wanted, label
from pren.label.parts import parts_folder, was_finished
from pren.label.predictions import Predictions, Row
from pren.label.sorting import How, Sorter

__all__ = [
    "WRITERS",
    "How",
    "Labelled",
    "Predictions",
    "Row",
    "Sorter",
    "Wanted",
    "find_writer",
    "label",
    "parts_folder",
    "was_finished",
    "write_labels",
]
