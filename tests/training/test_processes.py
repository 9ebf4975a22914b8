"""One process with nobody to talk to, and how chunks are dealt out; `tests/several` has real processes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pren.foundation.errors import PrenError, SharedError
from pren.problem.inputs import ArrayInputs
from pren.training.processes import (
    _share_of_chunks,
    agreed,
    gather,
    mean,
    over_chunks,
    share,
    share_text,
    share_weights,
    single_process,
    watching,
)


@given(total=st.integers(0, 50), size=st.integers(1, 12), processes=st.integers(1, 7))
def test_every_image_has_one_process_and_chunks_stay_whole(total, size, processes):
    shares = [_share_of_chunks(total, size, rank, processes) for rank in range(processes)]
    assert [place for first, end in shares for place in range(first, end)] == list(range(total))
    assert all(first % size == 0 or first == total for first, _ in shares)
    chunks = [-(-(end - first) // size) for first, end in shares]
    assert max(chunks) - min(chunks) <= 1


@pytest.mark.parametrize("images", [0, 1, 7, 12])
def test_a_function_is_applied_chunk_by_chunk(fabric, images):
    sizes = []

    def double(chunk):
        assert torch.is_inference_mode_enabled()
        sizes.append(len(chunk))
        return 2 * chunk

    inputs = np.arange(2.0 * images, dtype=np.float32).reshape(images, 2)
    assert np.array_equal(over_chunks(fabric, ArrayInputs(inputs), 5, double), 2 * inputs)
    assert sizes == {0: [0], 1: [1], 7: [5, 2], 12: [5, 5, 2]}[images]


def test_one_process_tells_itself_nothing_new(fabric):
    tensors, rows = {"a": torch.ones(2)}, np.arange(3)
    assert share(fabric, tensors) is tensors
    assert share_text(fabric, "é\n") == "é\n"
    assert gather(fabric, rows) is rows
    assert mean(fabric, 0.5) == 0.5
    layer = torch.nn.Linear(2, 2)
    before = layer.weight.clone()
    share_weights(fabric, layer)
    assert torch.equal(layer.weight, before)


@pytest.mark.parametrize("watch", [agreed, watching])
@pytest.mark.parametrize("error", [PrenError("planted", "mine"), RuntimeError("Connection closed"), KeyError("x")])
def test_what_goes_wrong_in_one_process_is_its_own(fabric, watch, error):
    with pytest.raises(type(error)) as heard, watch(fabric):
        raise error
    assert heard.value is error
    assert not isinstance(heard.value, SharedError)


def test_one_process_is_one_device():
    assert single_process("cpu").world_size == 1
    assert single_process("cpu").device == torch.device("cpu")


@pytest.mark.parametrize(
    ("there", "accelerator", "kind"),
    [
        ("", "auto", "cpu"),
        ("cuda", "auto", "cuda"),
        ("mps", "gpu", "mps"),
        ("cuda mps", "cpu", "cpu"),
        ("", "cpu", "cpu"),
    ],
)
def test_a_device_is_found(monkeypatch, there, accelerator, kind):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in there)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in there)
    fabric = single_process(accelerator)
    assert (fabric.device.type, fabric.world_size, fabric.is_global_zero) == (kind, 1, True)


@pytest.mark.parametrize("accelerator", ["cuda", "mps", "gpu", "tpu"])
def test_a_device_that_is_not_there_is_named(monkeypatch, accelerator):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with refused(f"no-device {accelerator}"):
        single_process(accelerator)
