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
    names: Tensor

    def __init__(self, trust: Trust, classes: ClassTable, setting: Setting) -> None:
        super().__init__()
        columns = np.flatnonzero(classes.among(candidates_of(setting)))
        self.register_buffer("columns", torch.from_numpy(columns))
        self.register_buffer("seen", torch.from_numpy(classes.seen[columns]))
        names = np.ones(len(classes)) if trust.names is None else trust.names
        self.register_buffer("names", torch.from_numpy(names[columns]))
        self.confidence = trust.confidence
        self.familiarity = trust.familiarity

    def forward(self, inputs: Tensor, scores: Tensor) -> Tensor:
        """Inputs (N, ...) and their scores (N, L) -> (N,) from 0 to 1, NaN where it is not known."""
        candidates = scores[:, self.columns]
        best = candidates.argmax(dim=1)
        sure: Tensor = self.confidence(lead_of(candidates), self.seen[best]) * self.names[best]
        if self.familiarity is not None:
            sure = believed(sure, self.familiarity(inputs))
        return sure
