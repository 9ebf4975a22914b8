"""timm beside a torchvision whose compiled operators do not fit torch, and beside one whose do."""

import subprocess
import sys

import pytest
import torch
from refusals import refused

from pren.images import torchvision_operators
from pren.images.torchvision_operators import _operators_load, import_timm


def python(program):
    """Run a program in a process of its own: torch and torchvision can be imported in one way only."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)


@pytest.fixture(scope="module")
def bare():
    """How an import of torchvision by itself fails; skip where it does not."""
    done = python("import torchvision")
    if done.returncode == 0:
        pytest.skip("torchvision fits torch here")
    return done


USES = """
import torch
from pren.images.torchvision_operators import import_timm
timm = import_timm()
assert import_timm() is timm
import torchvision
from torchvision import transforms
assert transforms.Resize(4)(torch.zeros(3, 8, 8)).shape == (3, 4, 4)
model = timm.create_model("test_resnet", num_classes=0).eval()
assert model(torch.zeros(1, 3, 64, 64)).shape == (1, 96)
"""


# Somebody has tried, and failed, and then helped himself, though not all the way.
OTHERS = """
import torch
try:
    import torchvision
except RuntimeError:
    pass
library = torch.library.Library("torchvision", "DEF")
library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""


@pytest.mark.slow
@pytest.mark.usefixtures("bare")
def test_timm_works_where_torchvision_does_not_fit():
    done = python(OTHERS + USES)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_without_it_the_import_fails(bare):
    assert "torchvision::nms does not exist" in bare.stderr
    assert not _operators_load()
    import_timm()  # which works in this process, where nobody else has declared anything


@pytest.fixture
def declared(monkeypatch):
    """How often the operators are declared, by an import that begins anew."""
    import_timm()
    calls = []
    monkeypatch.setattr(torchvision_operators, "_declare_operators", lambda: calls.append(1))
    return lambda: (import_timm.__wrapped__(), len(calls))[1]


def test_nothing_is_declared_where_the_operators_load(monkeypatch, declared):
    loaded = []
    monkeypatch.setattr(torch.ops, "load_library", loaded.append)
    monkeypatch.delitem(sys.modules, "torchvision")
    assert declared() == 0
    assert [path.name.startswith("_C") for path in loaded] == [True]


def test_nothing_is_declared_where_torchvision_is_imported_already(monkeypatch, declared):
    monkeypatch.setattr(torchvision_operators, "_operators_load", lambda: False)
    assert declared() == 0
    monkeypatch.delitem(sys.modules, "torchvision")
    assert declared() == 1


def test_what_cannot_be_imported_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with refused("torchvision"):
        import_timm.__wrapped__()
