"""The public names, and that asking for them does not load what nobody asked for."""

import subprocess
import sys

import pytest

import pren
from pren.foundation.version import __version__

NAMES = {
    "ESZSL",
    "Answers",
    "ClassTable",
    "Method",
    "PrEN",
    "PrENPool",
    "PrENVote",
    "Trust",
    "assess",
    "PrenError",
    "Predictions",
    "Predictor",
    "Problem",
    "Progress",
    "RunResult",
    "__version__",
    "create",
    "evaluate",
    "fit",
    "freeze",
    "list_backbones",
    "list_datasets",
    "list_methods",
    "load",
    "load_model",
    "load_result",
    "register_backbone",
    "register_dataset",
    "register_encoder",
    "register_method",
}


def test_these_are_the_public_names():
    assert set(pren.__all__) == NAMES
    assert len(pren.__all__) == len(NAMES)
    assert dir(pren) == sorted(NAMES)


def test_every_name_is_there():
    things = {name: getattr(pren, name) for name in NAMES - {"__version__"}}
    assert [name for name, thing in things.items() if thing.__name__ != name or not thing.__doc__] == []


def test_the_version_is_the_package_s():
    assert pren.__version__ == __version__
    assert all(part.isdigit() for part in __version__.split(".")[:2])


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="module 'pren' has no attribute 'Pren'"):
        pren.Pren  # noqa: B018
    with pytest.raises(ImportError):
        from pren import nonsense  # noqa: F401


def test_a_star_brings_all_of_them():
    space = {}
    exec("from pren import *", space)
    assert set(space) >= NAMES


@pytest.mark.slow
def test_importing_the_package_loads_next_to_nothing():
    program = "import sys, pren; pren.__version__, dir(pren); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "pren" in loaded
    assert not {"torch", "numpy", "sklearn", "pydantic"} & set(loaded)


def test_the_readmes_example():
    problem, answers = pren.load("numbers-features")
    model = pren.PrEN(heads=2, rounds=1, dim=10, hidden=(8,), initial_batches=2, batches=1).fit(problem)
    metrics = pren.evaluate(model, problem, answers)
    assert 0 <= metrics.top1 <= 1
    assert metrics.images == 600
