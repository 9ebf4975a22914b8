"""Reports: a run, a comparison or a study as one HTML file that people like to look at.

`report_run` is for run folders, `report_experiments` for what `pren compare`, `tune` and `reproduce` keep. A report
needs no network, no server and, for a run, no answers.
"""

from pren.report.experiments import is_experiment, report_experiments
from pren.report.run import Written, report_run

__all__ = ["Written", "is_experiment", "report_experiments", "report_run"]
