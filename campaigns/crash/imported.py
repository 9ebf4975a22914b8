"""Imports for the server of `forks`, so that commands start fast."""

import fastapi  # noqa: F401
import torch.export  # noqa: F401
import uvicorn  # noqa: F401

from campaigns.crash import forks  # noqa: F401
from pren.images.torchvision_operators import import_timm

import_timm()
