"""bfloat16 on CPUs whose bfloat16 kills the process."""

import subprocess
import sys
from functools import cache

import pytest
import torch
from refusals import refused

from pren.images import precision, trials
from pren.images.backbones import check_takes, create_backbone

PHOTO = (3, 32, 32)
DIES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
LOWER_WORKS = f"import os\nif os.environ.get('ONEDNN_MAX_CPU_ISA') != 'AVX512_CORE_BF16': {DIES}"


@pytest.fixture
def trial(monkeypatch):
    """Put another program in the place of the trial."""

    def use(program):
        monkeypatch.setattr(precision, "TRIAL", program)

    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(precision, "_works", cache(precision._works.__wrapped__))
    return use


@pytest.mark.parametrize(
    ("program", "refusal"),
    [
        (DIES, "precision-cpu"),
        (LOWER_WORKS, "precision-cpu ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"),
        ("import time; time.sleep(60)", "precision-cpu"),
    ],
    ids=["dies", "lower", "hangs"],
)
def test_a_cpu_that_dies_of_bfloat16_is_refused_before_anything_is_computed(trial, monkeypatch, program, refusal):
    trial(program)
    monkeypatch.setattr(trials, "SECONDS", 0.3 if "sleep" in program else 60)
    rough, _ = create_backbone("test_resnet", PHOTO, seed=0, precision="bfloat16")
    monkeypatch.setattr(rough.model, "forward", None)
    with refused(refusal):
        check_takes(rough, "test_resnet", PHOTO)
    with refused(refusal):
        rough(torch.zeros(1, *PHOTO))


def test_float32_needs_no_trial(trial):
    trial(DIES)
    exact, _ = create_backbone("test_resnet", PHOTO, seed=0)
    exact.eval()(torch.zeros(1, *PHOTO))


def test_the_trial_is_made_once(trial, tmp_path):
    trial(f"open({str(tmp_path / 'trials')!r}, 'a').write('x')")
    for _ in range(3):
        precision.check_bfloat16()
    assert (tmp_path / "trials").read_text() == "x"


@pytest.mark.slow
def test_the_trial_passes_or_dies_but_has_no_mistake():
    done = subprocess.run([sys.executable, "-I", "-c", precision.TRIAL, *sys.path], capture_output=True)
    assert done.returncode <= 0, done.stderr
