"""What each of several processes does in the tests: ``python team.py TASK DEVICES``, started by `test_team.py`.

Every process checks what it can by itself, against what one process alone has; a failed assertion is its exit code.
"""

import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from pren.cli.launch import leave
from pren.core.ensemble import Ensemble
from pren.core.projection import LabelEmbeddings
from pren.core.voting import Network
from pren.foundation.errors import PrenError, SharedError
from pren.images.cache import FeatureCache
from pren.images.extraction import Extractor, FrozenBackbone, extract
from pren.images.files import ImageFiles
from pren.images.side_by_side import FeatureStore, SideBySide
from pren.methods.pren import PrEN
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs
from pren.training.division import heads_of, own_heads, own_state, trains_heads_apart, whole_state
from pren.training.processes import (
    agreed,
    gather,
    join_processes,
    mean,
    over_chunks,
    share,
    share_text,
    share_weights,
    single_process,
    watching,
)

ALONE = single_process("cpu")
HOSTILE = "\x1b[31m[red] é \ud800 \n"


def _double(chunk):
    return 2 * chunk.sum(dim=1, keepdim=True)


def tell(fabric):
    """Everything the processes say to each other."""
    rank, total = fabric.global_rank, fabric.world_size
    rng = np.random.default_rng(0)  # the same in all of them

    mine = {"a": torch.full((2, 3), float(rank)), "b": torch.tensor(rank == 0), "c": torch.empty(0)}
    got = share(fabric, mine if rank == 0 else {})
    assert torch.equal(got["a"], torch.zeros(2, 3))
    assert got["b"].item() is True
    assert got["c"].shape == (0,)
    assert share(fabric, {} if rank == 0 else mine) == {}
    assert share_text(fabric, f"é from {rank}") == "é from 0"
    assert share_text(fabric, "" if rank == 0 else "x") == ""

    for dtype in (np.float64, np.float32, np.int64, np.uint8):
        parts = [rng.integers(0, 200, (n, 2, 3)).astype(dtype) for n in rng.integers(0, 5, total)]
        everyones = gather(fabric, parts[rank])
        assert everyones.dtype == dtype
        assert np.array_equal(everyones, np.concatenate(parts))
    assert mean(fabric, float(rank)) == (total - 1) / 2
    assert np.isnan(mean(fabric, float("nan") if rank == total - 1 else 0.0))

    for images in (0, 1, 2, 5, 6, 7, 40):
        inputs = ArrayInputs(rng.normal(size=(images, 4)).astype(np.float32))
        for size in (1, 2, 3, 100):
            calls = []

            def double(chunk, calls=calls):
                calls.append(len(chunk))
                return _double(chunk)

            assert np.array_equal(over_chunks(fabric, inputs, size, double), over_chunks(ALONE, inputs, size, _double))
            assert max(calls) <= size
            assert gather(fabric, np.array([sum(calls)])).sum() == images  # each image once, by one process

    network = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    network.register_buffer("flags", torch.tensor([rank == 0, False]))
    share_weights(fabric, network)
    for value in network.state_dict().values():
        everyones = gather(fabric, value.reshape(1, -1).double().numpy())
        assert (everyones == everyones[0]).all()
    assert network.flags.tolist() == [True, False]


def fail(fabric):
    """An error in one process is an error in all of them."""
    rank, last = fabric.global_rank, fabric.world_size - 1
    for guilty in ({0}, {last}, set(range(fabric.world_size))):
        with pytest.raises(SharedError) as heard, agreed(fabric):
            _fail_if(rank in guilty, f"trouble in {rank} {HOSTILE}")
        first = min(guilty)
        assert f"trouble in {first} \x1b[31m[red] é \\ud800 \n" in str(heard.value)
        assert str(heard.value).startswith(f"Process {first} of this run: ") is (first > 0)
    with agreed(fabric):
        pass
    if rank == last:
        os._exit(0)  # without a word; torch may abort in an exit that takes down what connected them
    with pytest.raises(SharedError, match="Another process of this run has ended"), watching(fabric):
        _talk_for_ever(fabric)
    os._exit(0)  # as the command line does, for the same reason


def _fail_if(wanted, message):
    if wanted:
        raise PrenError("planted", message)


def _talk_for_ever(fabric):
    while True:
        gather(fabric, np.zeros((100_000, 1)))


def problem(shape, setting="zsl"):
    rng = np.random.default_rng(1)
    signatures, centres = rng.random((8, 6)), rng.normal(size=(8, *shape))
    labels = np.repeat(np.arange(5), 6)
    hidden = rng.permutation(np.repeat(np.arange(0 if setting == "gzsl" else 5, 8), 7))
    train, pool = ((centres[w] + 0.3 * rng.normal(size=(len(w), *shape))).astype(np.float32) for w in (labels, hidden))
    backbone = "small-cnn" if len(shape) > 1 else None
    return Problem.from_arrays(train, labels, signatures, pool, setting=setting, backbone=backbone)


def fit(fabric):
    """The same model as one process has."""
    small = {"heads": 8, "dim": 4, "batch_size": 10, "hidden": (16,), "first_rounds": 1, "initial_batches": 30}
    for setting in ("zsl", "gzsl"):
        features = problem((5,), setting)
        _compare(fabric, features, 1e-5, {**small, "rounds": 3, "batches": 20})
        refined = {"refinement": "soft-kmeans", "balance": 0.5}
        _compare(fabric, features, 1e-3, {**small, **refined, "rounds": 2, "batches": 5})
        images = problem((1, 8, 8), setting)
        # Gradients are summed in another order, and Adam makes much of little: only the beginning can be the same.
        few = {**small, "rounds": 1, "initial_batches": 2, "batches": 1, "lr": 1e-4, "batch_size": 11}
        _compare(fabric, images, 1e-4, few)
        _compare(fabric, images, 1e-2, {**few, **refined})
        one_head = {"heads": 1, "projection": False, "subsets": "all"}  # fewer heads than processes
        _compare(fabric, features, 1e-4, {**few, **one_head})


def _compare(fabric, given, tolerance, params):
    alone, team = PrEN(**params), PrEN(**params)
    rounds = list(alone.fit_rounds(given))
    for one, other in zip(rounds, team.fit_rounds(given, fabric=fabric), strict=True):
        assert np.array_equal(one.pseudo.images, other.pseudo.images)
        assert np.array_equal(one.pseudo.labels, other.pseudo.labels)
        one_loss, other_loss = one.figures["loss"], other.figures["loss"]
        assert abs(one_loss - other_loss) < tolerance * abs(one_loss)
    assert rounds[-1].number == 0 or len(rounds[-1].pseudo)
    weights = team.network_.state_dict()
    for name, value in alone.network_.state_dict().items():
        assert (value.double() - weights[name].double()).abs().max() < tolerance, name
    assert np.abs(alone.scores(given.pool) - team.scores(given.pool)).max() < tolerance
    ours, theirs = alone.training_state(), team.training_state()
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert value.shape == theirs[name].shape
        assert (value.double() - theirs[name].double()).abs().max() < tolerance * (1 + value.double().abs().max()), name


def resume(fabric):
    """The state of training is that of any number of processes, and only the first one has it."""
    given, params = (
        problem((5,)),
        {"heads": 7, "dim": 4, "rounds": 3, "initial_batches": 20, "batches": 10, "hidden": (9,)},
    )
    _resume(fabric, given, params, 1e-5)
    _resume(fabric, given, {**params, "rounds": 2, "refinement": "soft-kmeans"}, 1e-3)


def _resume(fabric, given, params, tolerance):
    whole = PrEN(**params).fit(given)
    for starts, ends in ((ALONE, fabric), (fabric, ALONE), (fabric, fabric)):
        model = PrEN(**params)
        for done in model.fit_rounds(given, fabric=starts):
            if done.number == 1:
                break
        state = {key: value.clone() for key, value in model.training_state().items()}
        if ends is fabric and fabric.global_rank > 0:
            model = PrEN(**params)
        for _ in model.fit_rounds(given, share(ends, state), ends):
            pass
        assert np.abs(model.scores(given.pool) - whole.scores(given.pool)).max() < tolerance


def divide(fabric):
    """Heads are dealt out, all of them, and what is trained apart is trained in the whole."""
    rng = np.random.default_rng(0)
    labels = LabelEmbeddings(rng.normal(size=(7, 3, 5)), np.ones((7, 5), dtype=bool))
    network = Network(torch.nn.Identity(), Ensemble(4, (6,), labels, True, rng))
    parts = [heads_of(fabric, network, rank) for rank in range(fabric.world_size)]
    assert [head for part in parts for head in range(7)[part]] == list(range(7))
    assert trains_heads_apart(fabric, network)
    assert not trains_heads_apart(ALONE, network)
    assert not trains_heads_apart(fabric, Network(torch.nn.Linear(4, 4), network.ensemble))
    mine = own_heads(fabric, network)
    own = parts[fabric.global_rank]
    x = torch.from_numpy(rng.normal(size=(3, 4)).astype(np.float32))
    assert torch.equal(mine.ensemble(x), network.ensemble(x)[own])
    optimizer = torch.optim.Adam(mine.parameters())
    mine.loss(x, torch.tensor([0, 1, 2])).backward()
    optimizer.step()
    assert torch.equal(mine.ensemble(x), network.ensemble(x)[own])
    state = whole_state(fabric, network, optimizer)
    assert [value["exp_avg"].shape for value in state.values()] == [w.shape for w in network.ensemble.parameters()]
    back = own_state(fabric, network, state)
    for index, entry in optimizer.state_dict()["state"].items():
        for name, value in entry.items():
            assert torch.equal(back[index][name], value)


def photographs(fabric):
    """Image files are extracted once each, by whichever process; BatchNorm learns the same in all of them."""
    folder = Path(share_text(fabric, tempfile.mkdtemp()))
    count, rank = 7, fabric.global_rank
    with agreed(fabric):
        for number in range(count if rank == 0 else 0):
            noise = np.random.default_rng(number).integers(0, 256, (9, 12, 3), dtype=np.uint8)
            Image.fromarray(noise).save(folder / f"{number}.png")
    files = ImageFiles(folder, [f"{number}.png" for number in range(count)] + ["nowhere.png"])
    frozen = FrozenBackbone.load(Extractor(backbone="test_resnet", weights="random", engine="torch"))
    calls = []
    frozen.network.register_forward_hook(lambda module, given, features: calls.append(len(features)))
    cache = FeatureCache(folder / "cache", frozen.facts, frozen.shape)
    done = extract(files, frozen, cache, fabric, workers=0)
    assert gather(fabric, np.array([sum(calls)])).sum() == count
    assert done.fresh == count
    assert sorted(done.rows) == [-1, *range(count)]
    assert [place for place, _ in done.problems] == [count]
    everyones = gather(fabric, done.rows[None])
    assert (everyones == everyones[0]).all()
    with pytest.raises(SharedError, match="nowhere"):
        extract(files, frozen, cache, fabric, workers=0, strict=True)
    both = SideBySide.load(Extractor(backbone="test_resnet+test_efficientnet", weights="random", engine="torch"))
    features = FeatureStore(folder / "cache", both).extract(files, fabric, workers=0)
    assert (features.fresh, [place for place, _ in features.problems]) == (count, [count])
    everyones = gather(fabric, features.inputs[np.arange(count)].numpy()[None])
    assert (everyones == everyones[0]).all()

    images = replace(problem((3, 32, 32)), backbone="test_resnet")
    small = {"heads": 3, "hidden": (8,), "rounds": 1, "initial_batches": 2, "batches": 2, "batch_size": 7}
    model = PrEN(**small, weights="random")
    for _ in model.fit_rounds(images, fabric=fabric):
        for name, value in model.network_.state_dict().items():  # after every round
            everyones = gather(fabric, value.reshape(1, -1).double().numpy())
            assert (everyones == everyones[0]).all(), name
    with agreed(fabric):
        if rank == 0:
            shutil.rmtree(folder)


if __name__ == "__main__":
    tasks = {"tell": tell, "fail": fail, "fit": fit, "resume": resume, "divide": divide, "photographs": photographs}
    joined = join_processes("cpu", int(sys.argv[1]), 1)
    assert joined.world_size == int(sys.argv[1])
    for task in sys.argv[2:]:
        tasks[task](joined)
    leave(0)  # as the command line does: torch may abort where another process has ended first
