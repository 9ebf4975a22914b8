"""Labels of any number of images, as files: in parts that survive an interruption, then as one table.

`label` does all of it; `WRITERS` are the forms that the table can have.
"""

from pren.labelling.formats import WRITERS, find_writer
from pren.labelling.job import Labelled, Wanted, label
from pren.labelling.parts import parts_folder, was_finished
from pren.labelling.records import Record, records
from pren.labelling.sorting import How, Sorter

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
