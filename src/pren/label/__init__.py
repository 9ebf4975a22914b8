"""Labels of any number of images, as files: in parts that survive an interruption, then as one table.

`label` does all of it; `WRITERS` are the forms that the table can have.
"""

from pren.label.formats import WRITERS, find_writer
from pren.label.job import Labelled, Wanted, label
from pren.label.parts import parts_folder, was_finished
from pren.label.records import Record, records
from pren.label.sorting import How, Sorter

__all__ = [
    "WRITERS",
    "How",
    "Labelled",
    "Record",
    "Sorter",
    "Wanted",
    "find_writer",
    "label",
    "parts_folder",
    "records",
    "was_finished",
]
