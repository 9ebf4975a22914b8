"""What the server of `forks` imports, so that no command has to."""

import pren.cli.__main__
import pren.cli.summary
import pren.engine.processes
import pren.experiments.comparison
import pren.experiments.tuning
import pren.labelling
import pren.predictor
import pren.report
import pren.runs.suggest
import pren.runs.summary
import pren.runs.train
import pren.vision.photographs  # noqa: F401
from campaigns.crash import forks  # noqa: F401
from pren.vision.torchvision_operators import import_timm

import_timm()
