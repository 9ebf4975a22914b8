"""What the server of `forks` imports, so that no command has to."""

from campaigns.crash import forks  # noqa: F401
from pren.images.torchvision_operators import import_timm

import_timm()
