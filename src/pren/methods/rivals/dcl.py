"""DCL (Guo et al. 2017): classifiers of unseen classes, trained on pseudo-labelled inputs."""

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

MOST_STEPS = 200  # of L-BFGS; pseudo-labels need no exact solution
Samples = tuple[NDArray[np.int64], NDArray[np.int64], Matrix]  # inputs of the pool, their classes, their weights


class DCL(Method):
    """One linear classifier per class, min_w ½ ‖w‖² + Σ_i C p_i max(0, 1 - t_i w·x_i)², on inputs it labels itself.

    ESZSL gives the first p(c|x) of the pool. In every round each candidate class takes its most confident inputs, more
    than before, spread over a few clusters for diversity. One-vs-rest SVMs are trained on them, weighted by p, and give
    the next p(c|x).

    In ZSL the classifiers of unseen classes are trained on pseudo-labels alone, and the seen classes, which are no
    candidates, keep ESZSL's scores. In GZSL all are trained on both: labelled inputs weigh 1, and every
    class, seen or unseen, takes inputs from the pool.

    † Re-implemented from a description, without the paper. Choices made here: k-means among the inputs that are
    predicted as the class; the squared hinge loss; p as in `pren.methods.rivals.posterior`; labelled inputs are not
    transferred to similar unseen classes.

    Image arrays become flat pixels. Reference: "Zero-shot learning with transferred samples", IEEE TIP 2017, and
    "Zero-shot recognition via direct classifier learning with transferred samples and pseudo labels", AAAI 2017.

    Attributes:
        weights_: (L, d).
        biases_: (L,).
        length_: (1,) the mean length of prepared features, which are divided by it.
    """

    name: ClassVar[str] = "dcl"
    rehearsals: ClassVar[int] = 3  # a fit can take minutes

    features: str = param("l2", "How features are prepared.", search=SCALINGS, among=PREPARATIONS)
    feature_reg: float = param(10.0, "Of the inductive model, see `ESZSL`.", gt=0, search=Real(1e-2, 1e2, log=True))
    signature_reg: float = param(0.1, "Of the inductive model, see `ESZSL`.", gt=0, search=Real(1e-3, 1e1, log=True))
    sharpness: float = param(
        3.0, "How sharp p is, see `pren.methods.rivals.posterior.posterior`.", gt=0, search=Real(0.3, 10.0, log=True)
    )
    penalty: float = param(1.0, "C.", gt=0, search=Real(1e-2, 1e1, log=True))
    per_class: int = param(
        10,
        "How many inputs a class takes in the first round, and how many more in each later one.",
        ge=1,
        search=Whole(3, 30, log=True),
    )
    clusters: int = param(
        1,
        "Over how many clusters a class's inputs are spread. 1 takes the most confident ones, and was best on a "
        "validation fold of CUB; the paper has more, for diversity.",
        ge=1,
        search=Whole(1, 5),
    )
    rounds: int = param(3, "How often to label and train.", ge=1, le=1000)
    seed: int = param(0, "For k-means; one cluster needs none.", ge=0, le=2**63 - 1)

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
        """The inputs of every candidate class in one round."""
        order = self._order()
        allowed = self.classes_.among(candidates_of(self.setting_))[order]
        candidates, predicted = order[allowed], order[best_candidate(p[:, order], allowed)]
        chosen = []
        for place, label in enumerate(candidates):
            mine = np.flatnonzero(predicted == label)
            if not len(mine):
                mine = p[:, [label]].argmax(axis=0)  # a class without inputs would have no classifier
            mine = mine[np.argsort(-p[mine, label], kind="stable")]
            seed = int(stream(self.seed, "clusters", number, place).integers(2**31))
            chosen.append(mine[diverse(pool[mine], self.per_class * number, self.clusters, seed)])
        images, labels = np.concatenate(chosen), np.repeat(candidates, [len(part) for part in chosen])
        return images, labels, p[images, labels]

    def _train(self, weights: Matrix, biases: Matrix, X: Matrix, labels: NDArray[np.int64], trust: Matrix) -> None:
        """Train the classifiers of the classes in `labels`, in place; the bias is the weight of a constant 1."""
        order = self._order()  # by name, so that the order of the table does not matter
        kinds, position = np.unique(np.argsort(order)[labels], return_inverse=True)
        rows = order[kinds]
        if len(kinds) == 1:
            weights[rows], biases[rows] = 0.0, 0.0  # a single class needs no classifier
            return
        loss = weighted_one_versus_other(self.penalty * trust)
        with_constant = np.column_stack([X, np.ones(len(X))])
        fitted = fit_classifiers(with_constant, position, len(kinds), loss, reg=1.0, iterations=MOST_STEPS)
        weights[rows], biases[rows] = fitted[:, :-1], fitted[:, -1]

    def _scorer(self) -> nn.Module:
        return Affine((self.weights_ / self.length_).T, self.biases_)


def diverse(X: Matrix, count: int, clusters: int, seed: int) -> NDArray[np.int64]:
    """Choose the first inputs of every cluster, the same number from each where possible.

    Args:
        X: (n, d) the inputs, best first.
        count: The most to choose.
        clusters: The number of clusters.
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
    # The first of every cluster, then the second of every cluster that has two, and so on.
    return np.sort(np.lexsort((np.arange(len(X)), rank))[:count])
