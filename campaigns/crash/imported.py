"""Imports for the server of `forks`, so that commands start fast."""

import pren.label.export
import pren.review.reviewing  # noqa: F401
from campaigns.crash import forks  # noqa: F401
from pren.images.torchvision_operators import import_timm

import_timm()
