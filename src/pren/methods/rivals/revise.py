"""ReViSE (Tsai et al. 2017): images and signatures meet in the codes of two autoencoders."""

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

    u(x) is the code of an image, v(a) that of a signature; class c scores u(x)·v(a_c). L_sup is the cross-entropy of
    labelled images over the seen classes, L_rec how badly features and signatures are rebuilt from their codes (and η
    asks the hidden layer h of the image's encoder to change little with x), MMD² (a sum of Gaussian kernels) how far
    the codes of a batch of images and those of all classes are apart, L_self the cross-entropy of pool images against
    their own best candidate. γ(t) is 0 for the first third of the epochs and then grows evenly to `self_weight`.

    In GZSL, L_sup and L_self go over all classes.

    † Re-implemented from an abstract and a summary. Left open there, and chosen here: how signatures are scaled (less
    their mean over all classes, and one factor for all); tanh; the contractive term on the first layer, where it has a
    closed form; kernel widths that follow the data; when γ(t) starts; the pool takes part in L_rec and MMD² from the
    start; what dropout there is falls on the features.

    Images are taken as flat pixels. Reference: "Learning robust visual-semantic embeddings", ICCV 2017.

    Attributes:
        network_: The two autoencoders.
    """

    name: ClassVar[str] = "revise"
    rehearsals: ClassVar[int] = 3  # a fit can take minutes

    features: str = param("raw", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)
    hidden: int = param(512, "Width of the hidden layer of the image's autoencoder.", ge=1)
    signature_hidden: int = param(75, "Width of the hidden layer of the signature's.", ge=1)
    code: int = param(100, "Length of the common code.", ge=1)
    reconstruction: float = param(0.05, "α.", ge=0, search=Real(1e-2, 10.0, log=True))
    contraction: float = param(1e-3, "η.", ge=0, search=Real(1e-5, 1e-1, log=True))
    discrepancy: float = param(0.1, "β.", ge=0, search=Real(1e-2, 10.0, log=True))
    self_weight: float = param(0.1, "What γ(t) grows to.", ge=0, search=Real(1e-2, 1.0, log=True))
    dropout: float = param(0.3, "Share of the features that are left out in training.", ge=0, lt=1)
    epochs: int = param(10, "Passes over the labelled images.", ge=0, search=Whole(3, 30, log=True))
    batch_size: int = param(128, "Images in a batch, half of them from the pool.", ge=2, le=10**5)
    lr: float = param(1e-3, "Adam's learning rate.", gt=0, search=Real(1e-4, 3e-3, log=True))

    network_: TwoAutoencoders

    def _epoch(self, trainer: Trainer, problem: Problem, epoch: int) -> float:
        network, number = self.network_, epoch - 1
        network.chance = torch.Generator().manual_seed(int(stream(self.seed, "dropout", number).integers(2**63)))
        network.self_weight = self.self_weight * max(0.0, 1.5 * number / self.epochs - 0.5)
        images = TrainingSet.with_pool(problem.train, problem.labels, problem.pool)
        order = mixed_batches(len(problem.train), len(problem.pool), self.batch_size, self.seed, number)
        return trainer.train(images, order)

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

    Unit signatures are small and much alike: their encoder would see little more than its own biases.
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
    """One for images, one for signatures.

    Args:
        images: Of features (d,).
        signatures: Of signatures (m,).
        classes: (L, m) scaled signatures.
        supervised: (L,) the classes that labelled images are told apart from.
        candidates: (L,) the classes that pool images may be of.

    Attributes:
        reconstruction: α.
        contraction: η.
        discrepancy: β.
        dropout: Share of the features that are left out.
        self_weight: γ(t).
        chance: Where dropout comes from.
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
        """L for a batch of labelled images and of pool images, whose class is unknown."""
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
        """What needs no label, and the scores (n, L) that go with it.

        Args:
            x: (n, d) features.
            shown: (n, d) what the encoder gets to see of them.
        """
        hidden, u, rebuilt = self.images(shown)
        _, v, rebuilt_signatures = self.signatures(self.classes)
        rec = functional.mse_loss(rebuilt, x) + (rebuilt_signatures - self.classes).square().sum(dim=1).mean()
        contractive = self.contraction * jacobian_norm(hidden, self.images.first.weight).mean()
        return self.reconstruction * (rec + contractive) + self.discrepancy * mmd(u, v), u @ v.T


def jacobian_norm(hidden: Tensor, weight: Tensor) -> Tensor:
    """‖∂h/∂x‖² of h = tanh(W x + b): Σ_j (1 - h_j²)² ‖w_j‖².

    Args:
        hidden: (n, k) h.
        weight: (k, d) W.

    Returns:
        (n,)
    """
    return (1 - hidden.square()).square() @ weight.square().sum(dim=1)


def mmd(u: Tensor, v: Tensor) -> Tensor:
    """The squared maximum mean discrepancy of two samples (n, k) and (l, k) under a sum of Gaussian kernels.

    The widths follow the mean squared distance of the two, which is taken as a constant. Never negative.
    """
    both = torch.cat([u, v])
    squares = both.square().sum(dim=1)
    distances = (squares[:, None] + squares - 2 * both @ both.T).clamp(min=0)
    unit = distances.detach().mean().clamp(min=1e-12)
    kernel = torch.stack([(-distances / (width * unit)).exp() for width in WIDTHS]).sum(dim=0)
    n = len(u)
    return kernel[:n, :n].mean() + kernel[n:, n:].mean() - 2 * kernel[:n, n:].mean()
