"""Label any number of inputs and write a table, in parts that survive an interruption.

`label` does all of it; `WRITERS` are the formats of the table.
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
