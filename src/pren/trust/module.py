"""The confidence of labels as one torch module, for exports."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from pren.problem import ClassTable, Setting, candidates_of
from pren.trust.assessment import Trust, believed
from pren.trust.confidence import lead_of


class TrustModule(nn.Module):
    """How likely the best candidate of each input is right: see `Trust.sure`.

    Args:
        trust: Of a fitted method.
        classes: The class table of the method.
        setting: Its setting.
    """

    columns: Tensor
    seen: Tensor

    def __init__(self, trust: Trust, classes: ClassTable, setting: Setting) -> None:
        super().__init__()
        columns = np.flatnonzero(classes.among(candidates_of(setting)))
        self.register_buffer("columns", torch.from_numpy(columns))
        self.register_buffer("seen", torch.from_numpy(classes.seen[columns]))
        self.confidence = trust.confidence
        self.familiarity = trust.familiarity

    def forward(self, inputs: Tensor, scores: Tensor) -> Tensor:
        """Inputs (N, ...) and their scores (N, L) -> (N,) from 0 to 1, NaN where it is not known."""
        candidates = scores[:, self.columns]
        sure: Tensor = self.confidence(lead_of(candidates), self.seen[candidates.argmax(dim=1)])
        if self.familiarity is not None:
            sure = believed(sure, self.familiarity(inputs))
        return sure
