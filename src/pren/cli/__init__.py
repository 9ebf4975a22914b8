"""The command line: one file per verb, each a thin shell over the library.

No module imports torch before a command runs, so that ``pren --help`` answers at once.
"""
