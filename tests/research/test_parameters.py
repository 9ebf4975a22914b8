"""Parameters of a comparison: from a file by method, or from what was tuned."""

import pytest
import yaml
from refusals import refused

from pren.research.parameters import Parameters, read_parameters
from pren.research.tuning import tune


def write(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def test_by_method(config, tmp_path):
    given = read_parameters(write(tmp_path / "p.yaml", {"eszsl": {"feature_reg": 5}, "pren": {"heads": 2, "seed": 9}}))
    assert given.of(config("eszsl")) == {"feature_reg": 5}
    assert given.of(config("pren")) == {"heads": 2}  # a comparison has seeds of its own
    assert given.of(config("progressive")) == {}
    assert Parameters().of(config("eszsl")) == {}


def test_a_folder_of_tuned_configurations(config, tmp_path):
    for setting in ("zsl", "gzsl"):
        tune(config(setting=setting), tmp_path / "tuned" / setting, trials=2)
    given = read_parameters(tmp_path / "tuned")
    assert given.of(config(setting="zsl"))["gamma"] == 0.0
    assert given.of(config(setting="gzsl"))["gamma"] != 0.0
    assert given.of(config("progressive")) == {}
    other = config().model_copy(update={"data": "numbers-features"})
    assert given.of(other) == {}
    single = read_parameters(tmp_path / "tuned" / "gzsl" / "config.yaml")
    assert single.of(config(setting="gzsl")) == given.of(config(setting="gzsl"))


def test_two_for_the_same(config, tmp_path):
    content = config().model_dump(mode="json")
    for name in ("a", "b"):
        write(tmp_path / "tuned" / f"{name}.yaml", content)
    with refused("params-ambiguous"):
        read_parameters(tmp_path / "tuned").of(config())


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        ({"ezsl": {}}, "unknown-name p.yaml ezsl"),
        ({"eszsl": {"regg": 1}}, "param-value p.yaml regg"),
        ({"eszsl": {"feature_reg": -1}}, "param-value p.yaml feature_reg 1"),
        ({"eszsl": 3}, "params-form p.yaml"),
        ({"progressive": {"heads": 3}}, "param-preset p.yaml 1"),
        ({"method": "eszsl"}, "config-invalid p.yaml"),
        ({"method": "eszsl", "data": "x.npz", "params": {"regg": 1}}, "param-value p.yaml regg"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_computed(content, refusal, tmp_path):
    with refused(refusal):
        read_parameters(write(tmp_path / "p.yaml", content))


def test_nothing_there(tmp_path):
    with refused("file-odd"):
        read_parameters(tmp_path / "p.yaml")
    with refused("params-missing"):
        read_parameters(tmp_path)
