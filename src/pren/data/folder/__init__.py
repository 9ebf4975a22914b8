"""A person's own folder of photographs.

`load.py` reads it, in this order: what is said of every class (`class_tables.py`, `vectors.py`; `class_sources.py`
chooses among several), the labelled photographs, the pool, labels that a person gave and answers (`labels.py`). What is
wrong goes to `findings.py`, so that all of it is told at once. `check.py` looks closer, for ``pren data check``: every
photograph is decoded, and descriptions are compared (`descriptions_check.py`).
"""
