"""Imports for the server of `forks`, so that commands start fast."""

from campaigns.crash import forks  # noqa: F401
from pren.images.torchvision_operators import import_timm

import_timm()
