"""Confidence and familiarity in torch, for models that leave the house; the same numbers as `Trust` gives."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from pren.methods.formulas import fixed, squared_distances, unit
from pren.methods.preparation.whitening import WhitenedModule
from pren.problem import ClassTable, Setting, candidates_of
from pren.trust.assessment import Trust
from pren.trust.confidence import GROUPS, HUGE, Steps
from pren.trust.familiarity import RIVALRY, ROUNDING, SELDOM, STRANGE, Familiarity


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
        self.steps = nn.ModuleDict({name: StepsModule(steps) for name, steps in trust.confidence.steps.items()})
        self.familiarity = None if trust.familiarity is None else FamiliarityModule(trust.familiarity)

    def forward(self, inputs: Tensor, scores: Tensor) -> Tensor:
        """Inputs (N, ...) and their scores (N, L) -> (N,) from 0 to 1, NaN where nobody knows."""
        best, places = scores[:, self.columns].topk(min(2, len(self.columns)), dim=1)
        lead = torch.zeros_like(best[:, 0])
        if len(self.columns) > 1:
            lead = torch.nan_to_num(best[:, 0] - best[:, 1], nan=0.0, posinf=HUGE)  # some classes may be ruled out
        nobody = torch.full_like(lead, torch.nan)
        unseen, seen = (self.steps[name](lead) if name in self.steps else nobody for name in GROUPS)
        sure = torch.where(self.seen[places[:, 0]], seen, unseen)
        if self.familiarity is not None:
            sure = torch.where(self.familiarity(inputs) < STRANGE, torch.zeros_like(sure), sure)
        return sure


class StepsModule(nn.Module):
    """`np.interp` in torch."""

    leads: Tensor
    shares: Tensor

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self.register_buffer("leads", fixed(steps.leads))
        self.register_buffer("shares", fixed(steps.shares))

    def forward(self, lead: Tensor) -> Tensor:
        """(N,) -> (N,)."""
        after = (self.leads <= lead[:, None]).sum(dim=1)
        low, high = (after - 1).clamp(min=0), after.clamp(max=len(self.leads) - 1)
        gap = self.leads[high] - self.leads[low]
        share = torch.where(gap > 0, (lead - self.leads[low]) / torch.where(gap > 0, gap, 1.0), 0.0)
        return self.shares[low] + share * (self.shares[high] - self.shares[low])


class FamiliarityModule(nn.Module):
    """What `Familiarity.of` does, in torch."""

    classes: Tensor
    candidates: Tensor
    rivals: Tensor | None
    kind: Tensor
    place: Tensor
    least: Tensor

    def __init__(self, familiarity: Familiarity) -> None:
        super().__init__()
        arrays = familiarity.arrays
        self.whitened = WhitenedModule(arrays["centre"], arrays["map"])
        for name in ("classes", "candidates", "rivals", "kind", "place", "least"):
            self.register_buffer(name, fixed(arrays[name]) if len(arrays[name]) else None)  # torch saves no empty ones

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, ...) -> (N,) from 0 to 1."""
        x = inputs.flatten(1).double()
        z = self.whitened(x)
        place = squared_distances(z, self.candidates).amin(dim=1)
        if self.rivals is not None:
            place = place - RIVALRY * squared_distances(z, self.rivals).amin(dim=1)
        kind = 1 - (unit(x) @ self.classes.T).amax(dim=1)
        least = torch.minimum(SELDOM * _share_beyond(self.kind, kind), _share_beyond(self.place, place))
        return (self.least <= (least + ROUNDING)[:, None]).double().mean(dim=1)


def _share_beyond(usual: Tensor, found: Tensor) -> Tensor:
    """(N,) which share of the usual distances (n,) is at least as large as each found (N,)."""
    return 1 - (usual < (found - ROUNDING)[:, None]).double().mean(dim=1)
