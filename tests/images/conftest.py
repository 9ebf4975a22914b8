"""Image files, and networks small enough to run in a moment."""

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from pren.images.extraction import Extractor, FrozenBackbone
from pren.images.files import ImageFiles
from pren.images.torchvision_operators import import_timm
from pren.training.processes import single_process

TINY = "test_resnet"  # one of timm's networks for tests: 160 x 160 pixels


@pytest.fixture(scope="session")
def fabric():
    return single_process("cpu")


@pytest.fixture(scope="session")
def weights(tmp_path_factory):
    """A file with weights of the tiny network, classifier included."""
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        save_file(import_timm().create_model(TINY).state_dict(), path)
    return path


@pytest.fixture(scope="session")
def tiny(weights):
    """The tiny network, frozen."""
    return FrozenBackbone.load(Extractor(backbone=TINY, weights=str(weights)))


@pytest.fixture(scope="session")
def draw_files():
    """Write so many pictures of noise to a folder, all different, and return them as inputs."""

    def draw(folder, count, start=0, size=(12, 9)):
        folder.mkdir(parents=True, exist_ok=True)
        names = [f"{number:03d}.png" for number in range(start, start + count)]
        for number, name in enumerate(names, start=start):
            rng = np.random.default_rng(number)
            noise = rng.integers(0, rng.integers(30, 256, 3), (size[1], size[0], 3), dtype=np.uint8)  # each its colour
            Image.fromarray(noise).save(folder / name)
        return ImageFiles(folder, names)

    return draw
