"""A small network for small images, trained from scratch on the CPU."""

from typing import cast

from torch import Tensor, nn

from pren.images.preprocessing import Preprocessing
from pren.images.registered import register_backbone

SMALL_CNN = "small-cnn"


class SmallCNN(nn.Module):
    """Three convolutions, for images of about 16 x 32 pixels.

    GroupNorm, not BatchNorm: an image's features do not depend on the rest of its batch, so several processes compute
    the same as one. The last pooling keeps left and right apart, because position can distinguish classes (12 and 21).
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.num_features = 2 * 128
        self.layers = nn.Sequential(
            *_convolution(channels, 32),
            nn.MaxPool2d(2),
            *_convolution(32, 64),
            nn.MaxPool2d(2),
            *_convolution(64, 128),
            nn.AdaptiveAvgPool2d((1, 2)),
            nn.Flatten(),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Turn (N, channels, H, W) into (N, num_features)."""
        return cast(Tensor, self.layers(images))


def _convolution(before: int, after: int) -> list[nn.Module]:
    return [
        nn.Conv2d(before, after, kernel_size=3, padding=1, bias=False),  # GroupNorm has a bias
        nn.GroupNorm(8, after),
        nn.ReLU(inplace=True),
    ]


SUMMARY = "three convolutions for small images, trained from scratch"
register_backbone(SMALL_CNN, SmallCNN, Preprocessing(sample_shape=(3, 64, 64)), SUMMARY)
