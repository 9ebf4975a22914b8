"""ReViSE (Tsai et al. 2017): two autoencoders, of features and of signatures, with a common code."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pren.foundation.seeds import stream
from pren.methods.base import SCALINGS
from pren.methods.network import EpochMethod, initial_linear
from pren.methods.params import param
from pren.methods.preparation import PREPARATIONS
from pren.methods.space import Real, Whole
from pren.problem import UNKNOWN, Problem, candidates_of
from pren.training.batches import TrainingSet, mixed_batches
from pren.training.trainer import Trainer

WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the kernels of the MMD, in units of the mean squared distance


class ReViSE(EpochMethod):
    """L = L_sup + α (L_rec + η ‖∂h/∂x‖²) + β MMD² + γ(t) L_self over two autoencoders with a common code.

    u(x) is the code of an input, v(a) that of a signature; class c scores u(x)·v(a_c). L_sup is the cross-entropy of
    labelled inputs over the seen classes, L_rec the error of reconstructing features and signatures from their codes
    (η penalises a hidden layer h that changes much with x), MMD² (a sum of Gaussian kernels) the distance of the codes
    of a batch from those of all classes, L_self the cross-entropy of pool inputs against their own best candidate.
    γ(t) is 0 for the first third of the epochs and then grows evenly to `self_weight`.

    In GZSL, L_sup and L_self go over all classes.

    † Re-implemented from an abstract and a summary. Choices made here: signatures minus their mean over all classes,
    times one factor; tanh; the contractive term on the first layer, where it has a closed form; kernel widths that
    follow the data; when γ(t) starts; the pool in L_rec and MMD² from the start; dropout on the features.

    Image arrays become flat pixels. Reference: "Learning robust visual-semantic embeddings", ICCV 2017.

    Attributes:
        network_: The two autoencoders.
    """

    name: ClassVar[str] = "revise"
    rehearsals: ClassVar[int] = 3  # a fit can take minutes

    features: str = param("raw", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)
    hidden: int = param(512, "Width of the hidden layer of the features' autoencoder.", ge=1)
    signature_hidden: int = param(75, "Width of the hidden layer of the signatures' autoencoder.", ge=1)
    code: int = param(100, "Length of the common code.", ge=1)
    reconstruction: float = param(0.05, "α.", ge=0, search=Real(1e-2, 10.0, log=True))
    contraction: float = param(1e-3, "η.", ge=0, search=Real(1e-5, 1e-1, log=True))
    discrepancy: float = param(0.1, "β.", ge=0, search=Real(1e-2, 10.0, log=True))
    self_weight: float = param(0.1, "What γ(t) grows to.", ge=0, search=Real(1e-2, 1.0, log=True))
    dropout: float = param(0.3, "The share of features that training leaves out.", ge=0, lt=1)
    epochs: int = param(10, "Passes over the labelled inputs.", ge=0, search=Whole(3, 30, log=True))
    batch_size: int = param(128, "Inputs in a batch, half of them from the pool.", ge=2, le=10**5)
    lr: float = param(1e-3, "Adam's learning rate.", gt=0, search=Real(1e-4, 3e-3, log=True))

    network_: TwoAutoencoders

    def _epoch(self, trainer: Trainer, problem: Problem, epoch: int) -> float:
        network, number = self.network_, epoch - 1
        network.chance = torch.Generator().manual_seed(int(stream(self.seed, "dropout", number).integers(2**63)))
        network.self_weight = self.self_weight * max(0.0, 1.5 * number / self.epochs - 0.5)
        inputs = TrainingSet.with_pool(problem.train, problem.labels, problem.pool)
        order = mixed_batches(len(problem.train), len(problem.pool), self.batch_size, self.seed, number)
        return trainer.train(inputs, order)

    def _build(self, tensors: dict[str, Tensor] | None) -> TwoAutoencoders:
        rng = stream(self.seed, "weights") if tensors is None else None
        sizes, order = self._sizes(), self._order()
        network = TwoAutoencoders(
            Autoencoder(sizes["d"], self.hidden, self.code, rng),
            Autoencoder(sizes["m"], self.signature_hidden, self.code, rng),
            scaled_signatures(self.classes_.signatures[order]),
            self.classes_.among("seen" if self.setting_ == "zsl" else "all")[order],
            self.classes_.among(candidates_of(self.setting_))[order],
        )
        network.reconstruction, network.contraction = self.reconstruction, self.contraction
        network.discrepancy, network.dropout = self.discrepancy, self.dropout
        return network

    def _adam(self, network: TwoAutoencoders) -> torch.optim.Adam:
        return torch.optim.Adam(network.parameters(), lr=self.lr, fused=True)


def scaled_signatures(signatures: NDArray[np.float64]) -> Tensor:
    """(L, m) around 0 and with unit variance over all numbers.

    Unit signatures are small and alike, so the encoder's biases would outweigh them.
    """
    deviations = signatures - signatures.mean(axis=0)
    return torch.from_numpy(deviations / (deviations.std() or 1.0)).float()


class Autoencoder(nn.Module):
    """d -> hidden -> code and back, with tanh in between."""

    def __init__(self, d: int, hidden: int, code: int, rng: np.random.Generator | None) -> None:
        super().__init__()
        self.first = initial_linear(d, hidden, rng)
        self.second = initial_linear(hidden, code, rng)
        self.third = initial_linear(code, hidden, rng)
        self.last = initial_linear(hidden, d, rng)

    def encode(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, code)."""
        code: Tensor = self.second(self.first(x).tanh())
        return code

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(n, d) -> hidden layer (n, hidden), code (n, code), x rebuilt (n, d)."""
        hidden = self.first(x).tanh()
        code = self.second(hidden)
        return hidden, code, self.last(self.third(code).tanh())


class TwoAutoencoders(nn.Module):
    """One for features, one for signatures.

    Args:
        images: Of features (d,).
        signatures: Of signatures (m,).
        classes: (L, m) scaled signatures.
        supervised: (L,) the classes in L_sup.
        candidates: (L,) the classes that pool inputs may be of.

    Attributes:
        reconstruction: α.
        contraction: η.
        discrepancy: β.
        dropout: The share of features that are left out.
        self_weight: γ(t).
        chance: The generator of dropout.
    """

    classes: Tensor
    supervised: Tensor
    candidates: Tensor

    def __init__(
        self,
        images: Autoencoder,
        signatures: Autoencoder,
        classes: Tensor,
        supervised: NDArray[np.bool_],
        candidates: NDArray[np.bool_],
    ) -> None:
        super().__init__()
        self.images = images
        self.signatures = signatures
        self.register_buffer("classes", classes, persistent=False)
        self.register_buffer("supervised", torch.from_numpy(supervised), persistent=False)
        self.register_buffer("candidates", torch.from_numpy(candidates), persistent=False)
        self.reconstruction = self.contraction = self.discrepancy = self.dropout = self.self_weight = 0.0
        self.chance: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, L) u(x)·v(a_c)."""
        return (self.images.encode(x) @ self.signatures.encode(self.classes).T).double()

    def loss(self, x: Tensor, targets: Tensor) -> Tensor:
        """L for a batch of labelled inputs and of pool inputs, whose class is unknown."""
        kept = (torch.rand(x.shape, generator=self.chance) >= self.dropout) / (1 - self.dropout)
        loss, scores = self.unsupervised_loss(x, x * kept.to(x.device))
        known = targets != UNKNOWN
        labelled = scores[known].masked_fill(~self.supervised, -torch.inf)
        loss = loss + functional.cross_entropy(labelled, targets[known])
        if self.self_weight > 0:
            own = scores[~known].masked_fill(~self.candidates, -torch.inf)
            loss = loss + self.self_weight * functional.cross_entropy(own, own.argmax(dim=1))
        return loss

    def unsupervised_loss(self, x: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
        """The terms without labels, and the scores (n, L).

        Args:
            x: (n, d) features.
            shown: (n, d) features after dropout.
        """
        hidden, u, rebuilt = self.images(shown)
        _, v, rebuilt_signatures = self.signatures(self.classes)
        rec = functional.mse_loss(rebuilt, x) + (rebuilt_signatures - self.classes).square().sum(dim=1).mean()
        contractive = self.contraction * jacobian_norm(hidden, self.images.first.weight).mean()
        return self.reconstruction * (rec + contractive) + self.discrepancy * mmd(u, v), u @ v.T


def jacobian_norm(hidden: Tensor, weight: Tensor) -> Tensor:
    """‖∂h/∂x‖² = Σ_j (1 - h_j²)² ‖w_j‖² (n,) of h = tanh(W x + b), from h (n, k) and W (k, d)."""
    return (1 - hidden.square()).square() @ weight.square().sum(dim=1)


def mmd(u: Tensor, v: Tensor) -> Tensor:
    """The squared maximum mean discrepancy of two samples (n, k) and (l, k) under a sum of Gaussian kernels.

    The widths follow the mean squared distance of the two, which has no gradient. Never negative.
    """
    both = torch.cat([u, v])
    squares = both.square().sum(dim=1)
    distances = (squares[:, None] + squares - 2 * both @ both.T).clamp(min=0)
    unit = distances.detach().mean().clamp(min=1e-12)
    kernel = torch.stack([(-distances / (width * unit)).exp() for width in WIDTHS]).sum(dim=0)
    n = len(u)
    return kernel[:n, :n].mean() + kernel[n:, n:].mean() - 2 * kernel[:n, n:].mean()
