"""DCL (Guo et al. 2017): classifiers of unseen classes, trained directly on pseudo-labelled images."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import nn

from pren.core.pseudo import best_candidate
from pren.foundation.seeds import stream
from pren.methods.base import SCALINGS, Method
from pren.methods.formulas import Affine
from pren.methods.params import learned, param
from pren.methods.preparation import PREPARATIONS, Matrix
from pren.methods.rivals.classifiers import fit_classifiers, weighted_one_versus_other
from pren.methods.rivals.posterior import eszsl_weights, mean_length, posterior
from pren.methods.space import Real, Whole
from pren.problem import Problem, candidates_of

MOST_STEPS = 200  # of L-BFGS; nearly there is good enough for a pseudo-label
Samples = tuple[NDArray[np.int64], NDArray[np.int64], Matrix]  # images of the pool, their classes, their weights


class DCL(Method):
    """One linear classifier per class, min_w ½ ‖w‖² + Σ_i C p_i max(0, 1 - t_i w·x_i)², on images it labels itself.

    ESZSL says p(c|x) for the pool. Every candidate class takes its most confident images, spread over a few clusters so
    that they are not all alike; one-vs-rest SVMs are trained on them, each image weighing as much as it is trusted;
    they say p(c|x) anew, and every class takes more images in every round.

    In ZSL the classifiers of unseen classes are trained on pseudo-labels alone, and the seen classes, which are no
    candidates, keep ESZSL's scores. In GZSL all are trained on both: labelled images weigh 1, and every
    class, seen or unseen, takes images from the pool.

    † Re-implemented from a description without the paper's text at hand. Left open there, and chosen here: k-means
    among the images that are predicted as the class; the squared hinge loss; p as in `pren.methods.rivals.posterior`;
    labelled images are not lent to unseen classes that look like them.

    Images are taken as flat pixels. Reference: "Zero-shot learning with transferred samples", IEEE TIP 2017, and
    "Zero-shot recognition via direct classifier learning with transferred samples and pseudo labels", AAAI 2017.

    Attributes:
        weights_: (L, d).
        biases_: (L,).
        length_: (1,) how long images are on average, after their preparation; they are divided by it.
    """

    name: ClassVar[str] = "dcl"
    rehearsals: ClassVar[int] = 3  # a fit can take minutes

    features: str = param("l2", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)
    feature_reg: float = param(10.0, "Of the inductive model, see `ESZSL`.", gt=0, search=Real(1e-2, 1e2, log=True))
    signature_reg: float = param(0.1, "Of the inductive model, see `ESZSL`.", gt=0, search=Real(1e-3, 1e1, log=True))
    sharpness: float = param(
        3.0, "How decided p is, see `pren.methods.rivals.posterior.posterior`.", gt=0, search=Real(0.3, 10.0, log=True)
    )
    penalty: float = param(1.0, "C.", gt=0, search=Real(1e-2, 1e1, log=True))
    per_class: int = param(
        10,
        "How many images a class takes in the first round, and how many more in every other.",
        ge=1,
        search=Whole(3, 30, log=True),
    )
    clusters: int = param(
        1,
        "Over how many clusters a class's images are spread. 1 takes the most confident ones, and was best on a "
        "validation fold of CUB; more is the diversity that the paper asks for.",
        ge=1,
        search=Whole(1, 5),
    )
    rounds: int = param(3, "How often to label and train.", ge=1, le=1000)
    seed: int = param(0, "For k-means; with one cluster there is no chance in it.", ge=0, le=2**63 - 1)

    weights_: Matrix = learned("L", "d")
    biases_: Matrix = learned("L")
    length_: Matrix = learned("one")

    def _fit(self, problem: Problem) -> None:
        table, X = problem.classes, self._features(problem.train)
        self.length_ = mean_length(X)
        X, pool = X / self.length_, self._features(problem.pool) / self.length_
        known = (X, problem.labels, np.ones(len(X)))
        V = eszsl_weights(X, problem.labels, table, self.feature_reg, self.signature_reg)
        weights, biases = table.signatures @ V.T, np.zeros(len(table))
        scores = pool @ weights.T
        for number in range(1, self.rounds + 1):
            p = posterior(scores, table, problem.setting, self.sharpness)
            images, labels, trust = self._select(pool, p, number)
            samples = (pool[images], labels, trust)
            if problem.setting == "gzsl":
                samples = tuple(map(np.concatenate, zip(known, samples, strict=True)))  # type: ignore[assignment]
            self._train(weights, biases, *samples)
            scores = pool @ weights.T + biases
        self.biases_ = biases
        self.weights_ = weights

    def _select(self, pool: Matrix, p: Matrix, number: int) -> Samples:
        """The images of every candidate class in one round."""
        order = self._order()
        allowed = self.classes_.among(candidates_of(self.setting_))[order]
        candidates, predicted = order[allowed], order[best_candidate(p[:, order], allowed)]
        chosen = []
        for place, label in enumerate(candidates):
            mine = np.flatnonzero(predicted == label)
            if not len(mine):
                mine = p[:, [label]].argmax(axis=0)  # a class without images would have no classifier
            mine = mine[np.argsort(-p[mine, label], kind="stable")]
            seed = int(stream(self.seed, "clusters", number, place).integers(2**31))
            chosen.append(mine[diverse(pool[mine], self.per_class * number, self.clusters, seed)])
        images, labels = np.concatenate(chosen), np.repeat(candidates, [len(part) for part in chosen])
        return images, labels, p[images, labels]

    def _train(self, weights: Matrix, biases: Matrix, X: Matrix, labels: NDArray[np.int64], trust: Matrix) -> None:
        """Train the classifiers of the labels that there are, in place; the bias is the weight of a constant 1."""
        order = self._order()  # classes by name, so that the order of the table changes no bit
        kinds, position = np.unique(np.argsort(order)[labels], return_inverse=True)
        rows = order[kinds]
        if len(kinds) == 1:
            weights[rows], biases[rows] = 0.0, 0.0  # there is nothing to tell it from
            return
        loss = weighted_one_versus_other(self.penalty * trust)
        with_constant = np.column_stack([X, np.ones(len(X))])
        fitted = fit_classifiers(with_constant, position, len(kinds), loss, reg=1.0, iterations=MOST_STEPS)
        weights[rows], biases[rows] = fitted[:, :-1], fitted[:, -1]

    def _scorer(self) -> nn.Module:
        return Affine((self.weights_ / self.length_).T, self.biases_)


def diverse(X: Matrix, count: int, clusters: int, seed: int) -> NDArray[np.int64]:
    """Choose images, the same number from every cluster as far as it has them, the first ones of each.

    Args:
        X: (n, d) the images, best first.
        count: At most how many to choose.
        clusters: How many clusters to make.
        seed: For k-means.

    Returns:
        Places in X, best first.
    """
    if len(X) <= count or clusters == 1:
        return np.arange(min(len(X), count))
    distinct = min(clusters, len(np.unique(X, axis=0)))
    cluster = KMeans(distinct, n_init=1, random_state=seed).fit_predict(X)
    order = np.argsort(cluster, kind="stable")
    rank = np.empty(len(X), dtype=np.int64)  # within its cluster
    rank[order] = np.arange(len(X)) - np.searchsorted(cluster[order], cluster[order])
    # Turn by turn: the first of every cluster, then the second of every one that has two, and so on.
    return np.sort(np.lexsort((np.arange(len(X)), rank))[:count])
