"""Methods small enough to fit in a moment."""

import numpy as np
import pytest

from pren.methods.pren import PrEN
from pren.methods.registry import METHODS, create

SMALL = {"heads": 6, "rounds": 2, "initial_batches": 10, "batches": 3, "batch_size": 8, "hidden": (8,), "lr": 3e-2}
ONE_HEAD = {name: value for name, value in SMALL.items() if name != "heads"}
IMAGE = (1, 8, 12)

# What makes a method quick and random, by its name; one that is not here is so as it is.
QUICK = {
    "pren": {**SMALL, "first_rounds": 1},
    "pren-no-projection": {**SMALL, "first_rounds": 1},
    "progressive": {**ONE_HEAD, "first_rounds": 1},
    "dcl": {"clusters": 3, "per_class": 2},  # with one cluster, the default, there is no chance in it
}


@pytest.fixture(scope="session")
def small():
    """A fresh PrEN whose fit takes some hundredths of a second."""

    def build(**params):
        return PrEN(**{**SMALL, **params})

    return build


@pytest.fixture(scope="session")
def quick():
    """A fresh method of any name, with whatever makes it quick."""

    def build(name, **params):
        return create(name, **{**QUICK.get(name, {}), **params})

    return build


@pytest.fixture(scope="session")
def make_problem_of(make_problem):
    """What `make_problem` builds, for a method: signatures are as long as features where it needs them of one space."""

    def build(name, shape=(5,), **options):
        own = {"m": int(np.prod(shape))} if METHODS[name].method.one_space else {}
        return make_problem(shape=shape, **own, **options)

    return build


@pytest.fixture(
    scope="session",
    params=[(name, *case) for name in METHODS for case in (("zsl", "features"), ("gzsl", "images"))],
    ids="-".join,
)
def fitted(request, make_problem_of, quick):
    """A fitted method and the problem it was fitted to: every method, and each setting and kind of input once.

    No method looks at both at a time; the other two pairs are in TestLearning and TestConventions.
    """
    name, setting, form = request.param
    problem = make_problem_of(name, setting=setting, shape=(5,) if form == "features" else IMAGE)
    return quick(name, gamma=0.01).fit(problem), problem


@pytest.fixture(scope="session")
def first_step(make_problem):
    """Check the first step of a ranking method, on all images at once, against one that is made image by image.

    `direction(W, x, A, y)` is what the paper adds to W for one image, but for the learning rate: x (d,), A (|S|, m),
    and y a row of A.
    """

    def check(kind, direction, **params):
        problem = make_problem()
        size = {"batch_size": len(problem.train), "features": "raw", "lr": 0.25, **params}
        before, after = (kind(**size, epochs=epochs).fit(problem) for epochs in (0, 1))
        names = np.array(problem.classes.names)
        seen = sorted(names[problem.classes.seen])
        A = np.stack([problem.classes.signatures[problem.classes.names.index(name)] for name in seen])
        expected = before.weights_.copy()
        for x, label in zip(problem.train[np.arange(len(problem.train))].numpy(), problem.labels, strict=True):
            step = direction(before.weights_, x.astype(np.float64), A, seen.index(names[label]))
            expected += 0.25 * step / len(problem.train)
        assert not np.allclose(before.weights_, after.weights_, atol=1e-3)
        assert np.allclose(after.weights_, expected, atol=1e-5)  # single precision

    return check
