"""Eq. 3 and 4: K heads at once against K networks, one by one."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from pren.core.ensemble import BatchedLinear
from pren.core.voting import gzsl_scores, zsl_scores

D, H, L, N = 4, 3, 6, 9
SUBSETS = np.array([[0, 0, 1, 1, 0, 1], [0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 0, 1]])
K = len(SUBSETS)


def one_by_one(ensemble, output_relu):
    """Every head as a network of its own, with the same weights, and its label embeddings E_k."""
    heads = []
    for k in range(len(ensemble.embeddings)):
        parts = []
        for layer in ensemble.layers:
            linear = nn.Linear(*layer.weight.shape[1:]).double()
            linear.weight.data, linear.bias.data = layer.weight.data[k].T.clone(), layer.bias.data[k, 0].clone()
            parts += [linear, nn.ReLU()]
        heads.append(nn.Sequential(*(parts if output_relu else parts[:-1])))
    return list(zip(heads, ensemble.embeddings, strict=True))


def loss_by_loops(heads, features, targets):
    total = torch.zeros((), dtype=features.dtype)
    for x, y in zip(features, targets, strict=True):
        for f_k, E_k in heads:
            v = f_k(x[None])[0]
            similarities = torch.stack([v @ E_k[:, c] for c in range(L)])
            total = total - torch.log(similarities[y].exp() / similarities.exp().sum())
    return total / len(features)


def batch(seed=0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(N, D))).requires_grad_(), torch.from_numpy(rng.integers(0, L, N))


@pytest.fixture(params=[True, False], ids=["relu", "linear"])
def output_relu(request):
    return request.param


@pytest.fixture
def ensemble(make_ensemble, output_relu):
    return make_ensemble(SUBSETS, h=H, in_features=D, output_relu=output_relu).double()


# --- a layer


FAN_IN, FAN_OUT = 4, 5


def layers(relu):
    """K linear layers as one, and one by one as torch has them."""
    layer = BatchedLinear(K, FAN_IN, FAN_OUT, np.random.default_rng(0), relu).double()
    heads = []
    for W, b in zip(layer.weight.detach(), layer.bias.detach(), strict=True):
        head = nn.Linear(FAN_IN, FAN_OUT).double()
        head.weight.data, head.bias.data = W.T.clone(), b[0].clone()
        heads.append(nn.Sequential(head, nn.ReLU()) if relu else nn.Sequential(head))
    return layer, heads


def loss_of(outputs):
    """Something whose gradient differs from head to head, image to image and unit to unit."""
    return (outputs.sin() * torch.arange(1, outputs.numel() + 1).reshape(outputs.shape)).sum()


@pytest.mark.parametrize("shared", [False, True], ids=["own inputs", "shared inputs"])
@pytest.mark.parametrize("relu", [False, True], ids=["linear", "relu"])
def test_a_layer_is_a_layer_of_each_head(relu, shared):
    layer, heads = layers(relu)
    x = torch.from_numpy(np.random.default_rng(1).normal(size=(1 if shared else K, N, FAN_IN))).requires_grad_()
    again = x.detach().clone().requires_grad_()
    outputs = layer(x.expand(K, N, FAN_IN))
    expected = torch.stack([head(own) for head, own in zip(heads, again.expand(K, N, FAN_IN), strict=True)])
    assert torch.allclose(outputs, expected)
    assert (outputs >= 0).all() == relu
    loss_of(outputs).backward()
    loss_of(expected).backward()
    assert torch.allclose(x.grad, again.grad)
    for k, head in enumerate(heads):
        assert torch.allclose(layer.weight.grad[k], head[0].weight.grad.T)
        assert torch.allclose(layer.bias.grad[k, 0], head[0].bias.grad)
    with torch.inference_mode():
        assert torch.equal(layer(x.expand(K, N, FAN_IN)), outputs)


def test_the_weights_of_a_layer_start_as_torchs_do():
    layer = BatchedLinear(2, 16, 400, np.random.default_rng(0))
    assert layer.weight.dtype == layer.bias.dtype == torch.float32
    assert layer.weight.shape == (2, 16, 400)
    assert layer.bias.shape == (2, 1, 400)
    for values in (*layer.weight.detach(), *layer.bias.detach()):  # of each head: uniform up to 1 / sqrt(fan_in)
        assert 0.24 < values.max() <= 0.25
        assert -0.24 > values.min() >= -0.25
        assert values.std().item() == pytest.approx(0.25 / 3**0.5, rel=0.1)
    assert not torch.isclose(layer.weight[0], layer.weight[1]).any()  # the heads differ


# --- the ensemble


def test_embeddings_and_similarities_are_those_of_each_head(ensemble, output_relu):
    features, _ = batch()
    raw = ensemble(features)
    v = ensemble.activate(raw)
    similarities = ensemble.similarities(v)
    assert raw.shape == v.shape == (K, N, H)
    assert similarities.shape == (K, N, L)
    assert (raw < 0).any()
    for k, (f_k, E_k) in enumerate(one_by_one(ensemble, output_relu)):
        assert torch.allclose(v[k], f_k(features))
        before = f_k[:-1] if output_relu else f_k
        assert torch.allclose(raw[k], before(features))
        for n in range(N):
            for c in range(L):
                assert torch.isclose(similarities[k, n, c], v[k, n] @ E_k[:, c])


def test_the_loss_and_its_gradients_are_those_of_the_loops(ensemble, output_relu):
    features, targets = batch()
    loss = ensemble.loss(features, targets)
    loss.backward()
    heads = one_by_one(ensemble, output_relu)
    same, _ = batch()
    expected = loss_by_loops(heads, same, targets)
    expected.backward()
    assert loss.shape == ()
    assert torch.isclose(loss, expected)
    assert torch.allclose(features.grad, same.grad)
    for number, layer in enumerate(ensemble.layers):
        for k, (f_k, _) in enumerate(heads):
            assert torch.allclose(layer.weight.grad[k], f_k[2 * number].weight.grad.T)
            assert torch.allclose(layer.bias.grad[k, 0], f_k[2 * number].bias.grad)


def test_the_loss_is_a_mean_over_images_and_a_sum_over_heads(make_ensemble):
    # With embeddings of zero every class is as likely as any other, for each head.
    ensemble = make_ensemble(SUBSETS, np.zeros((K, H, L)), in_features=D).double()
    features, targets = batch()
    assert ensemble.loss(features, targets).item() == pytest.approx(K * np.log(L))
    assert ensemble.loss(features[:1], targets[:1]).item() == pytest.approx(K * np.log(L))


def test_every_head_learns_from_every_class_whatever_it_votes_on(ensemble):
    features, _ = batch()
    for c in range(L):
        ensemble.zero_grad()
        ensemble.loss(features, torch.full((N,), c)).backward()
        assert (ensemble.layers[-1].bias.grad.abs().amax(dim=(1, 2)) > 0).all()


def test_the_paper_trains_the_heads_but_not_their_embeddings(ensemble):
    assert {name for name, _ in ensemble.named_buffers()} == {"embeddings", "subsets"}
    assert {tuple(p.shape) for p in ensemble.parameters()} == {
        (K, D, 8), (K, 1, 8), (K, 8, 5), (K, 1, 5), (K, 5, H), (K, 1, H)}  # fmt: skip
    assert set(ensemble.state_dict()) >= {"embeddings", "subsets"}


def test_embeddings_come_in_single_precision_and_exact_zeros_stay(make_ensemble):
    vectors = np.random.default_rng(0).normal(size=(K, H, L))
    vectors[0, 1, 2] = 0
    ensemble = make_ensemble(SUBSETS, vectors)
    assert torch.equal(ensemble.embeddings, torch.from_numpy(vectors.astype(np.float32)))
    assert ensemble.embeddings[0, 1, 2] == 0
    assert torch.equal(ensemble.subsets, torch.from_numpy(SUBSETS == 1))


@pytest.mark.parametrize("hidden", [(), (7,), (7, 6, 5)])
def test_any_number_of_hidden_layers(make_ensemble, hidden):
    ensemble = make_ensemble(SUBSETS, h=H, in_features=D, hidden=hidden).double()
    features, targets = batch()
    expected = loss_by_loops(one_by_one(ensemble, True), features, targets)
    assert torch.isclose(ensemble.loss(features, targets), expected)


def test_features_are_left_as_they_were(ensemble):
    features, targets = batch()
    before = features.detach().clone()
    ensemble.loss(features, targets).backward()
    assert torch.equal(features, before)


def test_weights_come_from_the_generator_alone(make_ensemble):
    torch.manual_seed(0)
    first = make_ensemble(SUBSETS, seed=3)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    again, other = make_ensemble(SUBSETS, seed=3), make_ensemble(SUBSETS, seed=4)
    assert torch.equal(torch.get_rng_state(), state)
    for ours, same, different in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, same)
        assert not torch.isclose(ours, different).any()
        fan_in = {8: D, 5: 8, 3: 5}[ours.shape[-1]]
        assert ours.abs().max() <= fan_in**-0.5


class Operations(TorchDispatchMode):
    """Counts what is really computed, forward and backward."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


def operations(work):
    with Operations() as counter:
        work()
    return counter.count


@pytest.mark.parametrize("what", ["train", "vote", "literal", "probability"])
def test_nothing_loops_over_the_heads(make_ensemble, what):
    def work(heads):
        ensemble = make_ensemble(np.tile(SUBSETS, (heads, 1))[:heads], in_features=D)
        features, targets = torch.ones(N, D), torch.zeros(N, dtype=torch.int64)

        def run():
            if what == "train":
                ensemble.loss(features, targets).backward()
            elif what == "vote":
                zsl_scores(ensemble, ensemble(features))
            else:
                gzsl_scores(ensemble, ensemble(features), what)

        return run

    few, many = operations(work(2)), operations(work(20))
    assert few == many > 5


def test_any_kind_of_layer_can_make_the_heads(make_ensemble):
    class Other(BatchedLinear):
        pass

    ensemble = make_ensemble(SUBSETS, linear=Other)
    assert [type(layer) for layer in ensemble.layers] == [Other] * 3
    assert [layer.relu for layer in ensemble.layers] == [True, True, False]
