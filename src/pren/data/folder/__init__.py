"""The user's own folder of photographs.

`load.py` reads it, in this order: the descriptions of the classes (`class_tables.py`; `class_sources.py`
chooses among several), the labelled photographs, the pool, given labels and answers (`labels.py`). `findings.py`
collects all mistakes, to report them together. `check.py` (``pren data check``) also decodes every photograph and
compares descriptions.
"""
