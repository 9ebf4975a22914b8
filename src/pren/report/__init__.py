"""A run as one HTML file that people like to look at: it needs no network, no server and no answers."""

from pren.report.run import Written, write_report

__all__ = ["Written", "write_report"]
