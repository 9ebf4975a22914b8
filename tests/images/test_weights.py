"""Weights from files, packages and the hub, and from nowhere."""

import pickle  # to write what must not be read
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from refusals import refused
from safetensors.torch import load_file, save_file

from pren.images import weights as weights_module
from pren.images.backbones import create_backbone, find_backbone
from pren.images.extraction import Extractor, FrozenBackbone
from pren.images.files import ImageFiles
from pren.images.torchvision_operators import import_timm
from pren.images.weights import PACKAGES, load_weights, package_of, package_weights, weights_digest

pytestmark = pytest.mark.slow

TINY = "test_resnet"
LITE = "tf_efficientnet_lite0"
IMAGE = (3, 32, 32)


def model(name=TINY):
    return create_backbone(name, IMAGE, seed=0)[0].model


def assert_holds(network, tensors):
    state = network.state_dict()
    assert all(torch.equal(value, tensors[key]) for key, value in state.items())


# --- files


@pytest.mark.parametrize("suffix", [".safetensors", ".pth", ".pt", ".bin", "wrapped.pth", "parallel.pth"])
def test_files_are_read_without_the_classifier(tmp_path, weights, suffix):
    tensors = load_file(weights)
    path = tmp_path / f"weights{suffix}"
    if suffix == ".safetensors":
        save_file(tensors, path)
    elif suffix == "wrapped.pth":
        torch.save({"epoch": 3, "state_dict": tensors}, path)
    elif suffix == "parallel.pth":
        torch.save({f"module.{key}": value for key, value in tensors.items()}, path)
    else:
        torch.save(tensors, path)
    network = model()
    assert set(tensors) - set(network.state_dict()) == {"fc.weight", "fc.bias"}
    load_weights(network, TINY, str(path))
    assert_holds(network, tensors)


@pytest.mark.parametrize("name", ["test_vit", "test_efficientnet", "test_convnext", "levit_128s"])
def test_a_classifier_is_left_out_whatever_it_is_called(tmp_path, name):
    # levit's classifier has a BatchNorm of its own, for one.
    tensors = import_timm().create_model(name).state_dict()
    save_file({key: value.clone() for key, value in tensors.items()}, tmp_path / "all.safetensors")
    network = model(name) if name != "test_vit" else create_backbone(name, (3, 160, 160), seed=0)[0].model
    load_weights(network, name, str(tmp_path / "all.safetensors"))
    assert_holds(network, tensors)


class Evil:
    """Pickled, it makes whoever reads it write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("write", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content))])
def test_a_file_cannot_run_code(tmp_path, write):
    path, trace = tmp_path / "evil.pth", tmp_path / "trace"
    write({"conv1.weight": Evil(trace)}, path)
    with refused("weights-unreadable"):
        load_weights(model(), TINY, str(path))
    assert not trace.exists()
    torch.load(path, weights_only=False) if write is torch.save else pickle.loads(path.read_bytes())  # noqa: S301
    assert trace.exists()  # so it would have run


def change(tensors, **changes):
    return {key: value for key, value in {**tensors, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"conv1.weight": None}, "weights-other 1 conv1.weight 0"),
        ({"conv9.weight": torch.zeros(2)}, "weights-other 0 1 conv9.weight"),
        ({"bn1.weight": torch.zeros(5)}, "weights-other bn1.weight (5,)"),
    ],
)
def test_weights_of_another_network(tmp_path, weights, changes, refusal):
    tensors, path = load_file(weights), tmp_path / "other.safetensors"
    assert "conv1.weight" in tensors or "conv1.0.weight" in tensors
    if "conv1.weight" not in tensors:  # a deep stem
        changes = {key.replace("conv1.", "conv1.0."): value for key, value in changes.items()}
        refusal = refusal.replace("conv1.", "conv1.0.")
    save_file(change(tensors, **changes), path)
    network = model()
    before = weights_digest(network)
    with refused(refusal):
        load_weights(network, TINY, str(path))
    assert weights_digest(network) == before


@pytest.mark.parametrize(
    ("name", "content", "refusal"),
    [
        ("nowhere.pth", None, "file-missing nowhere.pth"),
        ("weights.txt", b"", "weights-form weights.txt"),
        ("a.safetensors", b"", "weights-unreadable a.safetensors"),
        ("a.safetensors", b"\xff" * 100, "weights-unreadable a.safetensors"),
        ("a.pth", b"no weights", "weights-unreadable a.pth"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, refusal):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with refused(refusal):
        load_weights(model(), TINY, str(tmp_path / name))


@pytest.mark.parametrize("content", [[1, 2], {"a": 1}, {1: torch.zeros(1)}, torch.zeros(3), {"state_dict": "text"}])
def test_files_with_other_things_in_them(tmp_path, content):
    torch.save(content, tmp_path / "other.pth")
    with refused("weights-unreadable"):
        load_weights(model(), TINY, str(tmp_path / "other.pth"))


# --- nowhere, and the hub


def test_random_weights_stay_and_are_warned_of(caplog):
    network = model()
    before = weights_digest(network)
    load_weights(network, TINY, "random")
    assert weights_digest(network) == before
    assert "test_resnet has random weights" in caplog.text


@pytest.mark.parametrize(
    ("installed", "advice"),
    [
        (True, f"--backbone {LITE} --weights"),
        (False, f"'.[photos]' --backbone {LITE} --weights"),
    ],
)
def test_without_a_hub_the_command_that_works_is_named_at_once(no_hub, monkeypatch, installed, advice):
    network = model()
    monkeypatch.setattr(import_timm(), "create_model", None)  # its client would try again for a minute
    monkeypatch.setattr(weights_module, "find_spec", lambda _: find_spec("pren") if installed else None)
    with refused(f"weights-unreachable {TINY} http://127.0.0.1: {advice}") as error:
        load_weights(network, TINY, None)
    assert ("[photos]" in str(error.value)) is not installed


def test_a_hub_that_is_not_to_be_asked_is_not(no_hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with refused("weights-unreachable"):
        load_weights(model(), TINY, None)


@pytest.mark.parametrize("where", ["kept", "proxy"])
def test_what_the_hub_has_left_here_or_a_proxy_may_reach_is_asked_for(no_hub, monkeypatch, tmp_path, where):
    network = model()
    if where == "kept":
        name = import_timm().get_pretrained_cfg(TINY).hf_hub_id.replace("/", "--")
        (tmp_path / "hub" / f"models--{name}" / "snapshots").mkdir(parents=True)
    else:
        monkeypatch.setattr(weights_module, "getproxies", lambda: {"http": "http://127.0.0.1:1"})

    def fails(name, **options):
        raise OSError("Asked\nall the same")

    monkeypatch.setattr(import_timm(), "create_model", fails)
    with refused("weights-unreachable"):
        load_weights(network, TINY, None)


def test_the_hubs_weights_are_taken_and_torchs_generator_is_left_alone(monkeypatch, weights):
    timm, tensors = import_timm(), load_file(weights)
    create = timm.create_model

    def from_the_hub(name, pretrained=False, **options):
        built = create(name, pretrained=False, **options)
        if pretrained:
            built.load_state_dict(tensors)
        return built

    network = model()
    monkeypatch.setattr(timm, "create_model", from_the_hub)
    monkeypatch.setattr(weights_module, "check_connection", lambda _: None)
    before = torch.get_rng_state()
    load_weights(network, TINY, None)
    assert torch.equal(before, torch.get_rng_state())
    assert_holds(network, tensors)


def test_where_weights_come_from(monkeypatch):
    assert package_of(TINY) is None
    monkeypatch.setattr(weights_module, "find_spec", lambda _: find_spec("pren"))
    assert package_of(LITE) is PACKAGES[LITE]
    assert package_of(LITE, "random") is package_of(LITE, "x.pth") is None
    monkeypatch.setattr(weights_module, "find_spec", lambda _: None)
    assert package_of(LITE) is None


def test_the_first_that_is_installed_is_taken_where_none_is_named(monkeypatch):
    first, *others = (package.module for package in PACKAGES.values())
    for there, name in [([first, *others], LITE), (others, "tf_efficientnet_lite1"), ([], "resnet34")]:
        monkeypatch.setattr(weights_module, "find_spec", lambda module, there=there: module in there or None)
        assert Extractor().backbone == name
        assert Extractor(weights="x.pth").backbone == "resnet34"


def test_the_digest_is_of_names_shapes_types_and_values():
    def digest(**state):
        network = torch.nn.Module()
        for name, value in state.items():
            network.register_buffer(name, value)
        return weights_digest(network)

    zeros = torch.zeros(2, 3)
    variants = [digest(a=zeros), digest(b=zeros), digest(a=zeros.reshape(3, 2)), digest(a=zeros.double())]
    assert len({*variants, digest(a=zeros + 1), digest(a=zeros, b=zeros)}) == 6
    assert digest(a=zeros) == digest(a=torch.zeros(3, 2).T) == variants[0]


# --- the package


@pytest.fixture(scope="module")
def photographs():
    """Twenty photographs and their ImageNet classes."""
    spec = find_spec("foolbox")
    if spec is None or not all(find_spec(package.module) for package in PACKAGES.values()):
        pytest.skip("foolbox or the offline weights are not installed")
    folder = Path(spec.submodule_search_locations[0]) / "data"
    names = sorted(path.name for path in folder.glob("imagenet_*.jpg"))
    return ImageFiles(folder, names), np.array([int(name.split("_")[2].split(".")[0]) for name in names])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "geometry", "right"),
    [
        ("tf_efficientnet_lite0", 224, "whole", 17),
        ("tf_efficientnet_lite0", 224, "timm", 18),
        ("tf_efficientnet_lite1", 240, "whole", 19),
        ("tf_efficientnet_lite1", 240, "timm", 18),
        ("tf_efficientnet_lite2", 260, "whole", 18),
        ("tf_efficientnet_lite2", 260, "timm", 18),
    ],
)
def test_the_offline_backbones_know_photographs(photographs, name, size, geometry, right):
    # As many as were measured; the features go through the classifier of the package.
    files, labels = photographs
    frozen = FrozenBackbone.load(Extractor(backbone=name, geometry=geometry))
    assert frozen.preprocessing.sample_shape == (3, size, size)
    files = files.prepared(frozen.preprocessing)
    levels, _ = files.decoded(range(len(files)))
    features = torch.from_numpy(frozen(levels, torch.device("cpu")))
    tensors = package_weights(name)
    logits = features @ tensors["classifier.weight"].T + tensors["classifier.bias"]
    assert (logits.argmax(dim=1).numpy() == labels).sum() >= right


@pytest.mark.parametrize("name", PACKAGES)
def test_the_offline_backbones_normalise_as_their_weights_want(name):
    if find_spec(PACKAGES[name].module) is None:
        pytest.skip("the offline weights are not installed")
    wanted = find_backbone(name).preprocessing()
    assert wanted.mean == (127 / 255,) * 3
    assert wanted.std == (128 / 255,) * 3
    assert find_backbone(name).preprocessing("x.pth").mean == (0.5,) * 3  # as timm has them, for timm's own weights
    network = create_backbone(name, IMAGE, seed=0)[0]
    find_backbone(name).give_weights(network)
    assert network.mean.flatten().tolist() == pytest.approx(wanted.mean)
    assert network.std.flatten().tolist() == pytest.approx(wanted.std)


def test_another_version_of_the_package_is_refused(monkeypatch):
    monkeypatch.setattr(weights_module, "find_spec", lambda _: find_spec("pren"))
    monkeypatch.setattr(weights_module, "read_tensors", lambda _: {"a": torch.zeros(1)})
    with refused("weights-package"):
        package_weights(LITE)
