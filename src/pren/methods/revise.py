"""ReViSE (Tsai et al. 2017): images and signatures meet in the codes of two autoencoders."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from pren.inputs import ArrayInputs, Inputs
from pren.methods.base import Method
from pren.methods.features import Matrix, Scaler, Scaling, width
from pren.methods.params import MOST, NotNegative, Positive, Rate, Seed
from pren.methods.saved import load_weights
from pren.methods.space import Choice, Real, Space, Whole
from pren.methods.training import checked_mean, linear, mixed_batches
from pren.problem import Problem, candidates_of
from pren.processes import over_chunks, single_process
from pren.seeds import stream

CHUNK = 1024  # how many images are scored at once
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the kernels of the MMD, in units of the mean squared distance

Weight = Annotated[float, Field(ge=0)]


class ReViSE(Method):
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

    Images are taken as flat pixels. Fits in one go. Reference: "Learning robust visual-semantic embeddings", ICCV 2017.

    Args:
        features: How to scale features.
        hidden: Width of the hidden layer of the image's autoencoder.
        signature_hidden: Width of the hidden layer of the signature's.
        code: Length of the common code.
        reconstruction: α.
        contraction: η.
        discrepancy: β.
        self_weight: What γ(t) grows to.
        dropout: Share of the features that are left out in training.
        epochs: Passes over the labelled images.
        batch_size: Images in a batch, half of them from the pool.
        lr: Adam's learning rate.
        gamma: GZSL: taken off the scores of seen classes.
        seed: For initial weights, batches and dropout.

    Attributes:
        network_: The two autoencoders.
    """

    name: ClassVar[str] = "revise"
    learned: ClassVar[str] = "network_"
    space: ClassVar[Space] = {
        "features": Choice(("raw", "l2", "standard", "minmax")),
        "reconstruction": Real(1e-2, 10.0, log=True),
        "contraction": Real(1e-5, 1e-1, log=True),
        "discrepancy": Real(1e-2, 10.0, log=True),
        "self_weight": Real(1e-2, 1.0, log=True),
        "epochs": Whole(3, 30, log=True),
        "lr": Real(1e-4, 3e-3, log=True),
    }

    def __init__(
        self,
        features: Scaling = "standard",
        hidden: Positive = 512,
        signature_hidden: Positive = 75,
        code: Positive = 100,
        reconstruction: Weight = 1.0,
        contraction: Weight = 1e-3,
        discrepancy: Weight = 0.1,
        self_weight: Weight = 0.1,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.3,
        epochs: NotNegative = 10,
        batch_size: Annotated[int, Field(ge=2, le=MOST)] = 128,
        lr: Rate = 1e-3,
        gamma: float = 0.0,
        seed: Seed = 0,
    ) -> None:
        self.features = features
        self.hidden = hidden
        self.signature_hidden = signature_hidden
        self.code = code
        self.reconstruction = reconstruction
        self.contraction = contraction
        self.discrepancy = discrepancy
        self.self_weight = self_weight
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.gamma = gamma
        self.seed = seed

    def _fit(self, problem: Problem) -> None:
        width(problem.train, "ReViSE")
        device = single_process().device
        self.scaler_ = Scaler.fit(self.features, problem.train)
        network = self._build().to(device)
        adam = torch.optim.Adam(network.parameters(), lr=self.lr, fused=True)
        train, pool = self._scaled(problem.train), self._scaled(problem.pool)
        order = self._order()
        labels = torch.from_numpy(np.argsort(order)[problem.labels])
        signatures = self._scaled_signatures().to(device)
        setting = "seen" if problem.setting == "zsl" else "all"
        supervised, candidates = (
            torch.from_numpy(problem.classes.among(which)[order]).to(device)
            for which in (setting, candidates_of(problem.setting))
        )
        count = -(-len(train) // (self.batch_size - self.batch_size // 2))
        for epoch in range(self.epochs):
            losses = []
            rng = torch.Generator().manual_seed(int(stream(self.seed, "dropout", epoch).integers(2**63)))
            ramp = self.self_weight * max(0.0, 1.5 * epoch / self.epochs - 0.5)
            for ours, theirs in mixed_batches(len(train), len(pool), self.batch_size, count, self.seed, epoch):
                x = torch.cat([train[ours], pool[theirs]])
                kept = (torch.rand(x.shape, generator=rng) >= self.dropout) / (1 - self.dropout)
                x, kept = x.to(device), kept.to(device)
                loss, scores = network.unsupervised_loss(
                    x, x * kept, signatures, self.reconstruction, self.contraction, self.discrepancy
                )
                known, unknown = scores[: len(ours)], scores[len(ours) :]
                known = known.masked_fill(~supervised, -torch.inf)
                loss = loss + functional.cross_entropy(known, labels[ours].to(device))
                if ramp > 0:
                    unknown = unknown.masked_fill(~candidates, -torch.inf)
                    loss = loss + ramp * functional.cross_entropy(unknown, unknown.argmax(dim=1))
                adam.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                adam.step()
                losses.append(loss.detach())
            checked_mean(losses, network)
        self.network_ = network

    def _scores(self, inputs: Inputs) -> Matrix:
        fabric = single_process()
        network, order = self.network_.to(fabric.device), self._order()
        with torch.inference_mode():
            classes = network.signatures.encode(self._scaled_signatures().to(fabric.device))
        by_name = over_chunks(
            fabric, self._scaled(inputs), CHUNK, lambda x: (network.images.encode(x) @ classes.T).double()
        )
        return self._calibrated(by_name[:, np.argsort(order)])

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {**self.network_.state_dict(), **self.scaler_.state()}, {}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        d = int(np.prod(self.sample_shape_))
        self.scaler_ = Scaler.restore(self.features, tensors, d)
        # Before anything is built: parameters must not make us ask for more memory than the file itself is.
        if max(self.hidden, self.signature_hidden, self.code) > max(tensor.numel() for tensor in tensors.values()):
            raise ValueError("the layers are not those of the weights")
        network = self._build()
        load_weights(network, {name: value for name, value in tensors.items() if not name.startswith("scaler.")})
        self.network_ = network

    def _build(self) -> TwoAutoencoders:
        d, m = int(np.prod(self.sample_shape_)), self.classes_.signatures.shape[1]
        rng = stream(self.seed, "weights")
        return TwoAutoencoders(
            Autoencoder(d, self.hidden, self.code, rng), Autoencoder(m, self.signature_hidden, self.code, rng)
        )

    def _scaled_signatures(self) -> Tensor:
        """(L, m) in the order of the names, around 0 and with unit variance over all numbers.

        Unit signatures are small and much alike: their encoder would see little more than its own biases.
        """
        signatures = self.classes_.signatures[self._order()]
        deviations = signatures - signatures.mean(axis=0)
        return torch.from_numpy(deviations / (deviations.std() or 1.0)).float()

    def _scaled(self, inputs: Inputs) -> Inputs:
        return ArrayInputs(self.scaler_(inputs).astype(np.float32))


class Autoencoder(nn.Module):
    """d -> hidden -> code and back, with tanh in between."""

    def __init__(self, d: int, hidden: int, code: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.first = linear(d, hidden, rng)
        self.second = linear(hidden, code, rng)
        self.third = linear(code, hidden, rng)
        self.last = linear(hidden, d, rng)

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
    """One for images, one for signatures."""

    def __init__(self, images: Autoencoder, signatures: Autoencoder) -> None:
        super().__init__()
        self.images = images
        self.signatures = signatures

    def unsupervised_loss(
        self, x: Tensor, seen: Tensor, signatures: Tensor, reconstruction: float, contraction: float, discrepancy: float
    ) -> tuple[Tensor, Tensor]:
        """What needs no label, and the scores (n, L) that go with it.

        Args:
            x: (n, d) features.
            seen: (n, d) what the encoder gets to see of them.
            signatures: (L, m).
            reconstruction: α.
            contraction: η.
            discrepancy: β.
        """
        hidden, u, rebuilt = self.images(seen)
        _, v, rebuilt_signatures = self.signatures(signatures)
        rec = functional.mse_loss(rebuilt, x) + (rebuilt_signatures - signatures).square().sum(dim=1).mean()
        contractive = contraction * jacobian_norm(hidden, self.images.first.weight).mean()
        return reconstruction * (rec + contractive) + discrepancy * mmd(u, v), u @ v.T


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
