"""A run as one HTML file: facts in Python, pages in templates. It needs no network and no server."""

from pren.report.page import Written
from pren.report.run import write_report

__all__ = ["Written", "write_report"]
