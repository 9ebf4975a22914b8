"""Data sets are found by name, and whoever gets a name wrong is told the right one."""

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from pren.data import DATASETS, list_datasets, load, register_dataset
from pren.data.numbers import load_numbers
from pren.data.survey import survey

FEW = {"per_class": 1, "pool_per_class": 1}


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """What a test registers goes away with it."""
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS))


def test_loads_the_first_split_by_default_and_passes_options_on():
    problem, answers = load("numbers", form="features", **FEW)
    expected, _ = load_numbers("test", form="features", **FEW)
    assert problem.fingerprint() == expected.fingerprint()
    assert answers is not None


def test_passes_split_and_setting_on():
    problem, _ = load("numbers", split="val", setting="gzsl", **FEW)
    assert (problem.source["split"], problem.setting) == ("val", "gzsl")


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_loads_npz_files_by_path(kind, tmp_path):
    path = tmp_path / "numbers.NPZ"
    with path.open("wb") as file:
        np.savez(file, features=np.eye(2), labels=np.array([0, 0]), signatures=np.eye(2), pool=np.eye(2))
    problem, answers = load(kind(path), setting="gzsl")
    assert (len(problem.train), problem.setting, answers) == (2, "gzsl", None)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"name": "nubmers"}, "unknown-name nubmers"),
        ({"name": "zzz"}, "unknown-name zzz"),
        ({"name": "numbers", "split": "train"}, "split-unknown train"),
        ({"name": "numbers", "root": "/data"}, "root-unused"),
        ({"name": "numbers", "from": "features"}, "data-option-unknown from per_class pool_per_class"),
        ({"name": "x.npz"}, "file-missing x.npz"),
        ({"name": "x.npz", "split": "val"}, "split-unknown x.npz val"),
        ({"name": "x.npz", "root": "/data"}, "root-unused x.npz"),
        ({"name": "x.npz", "form": "features"}, "data-option-unknown form"),
    ],
)
def test_mistakes_are_explained(arguments, refusal):
    with refused(refusal):
        load(**arguments)


def test_data_sets_that_need_a_root_get_it(monkeypatch, tmp_path):
    calls = []

    @register_dataset("birds", "Birds.", ("ps", "ss"), needs_root=True)
    def loader(root, split, setting):
        calls.append((root, split, setting))
        return load_numbers(**FEW)

    monkeypatch.delenv("PREN_DATA", raising=False)
    with refused("root-missing"):
        load("birds")
    load("birds", root=str(tmp_path))
    assert calls == [(tmp_path, "ps", "zsl")]
    monkeypatch.setenv("PREN_DATA", "elsewhere")
    load("birds")
    load("birds", root=tmp_path)
    assert calls[1:] == [(Path("elsewhere"), "ps", "zsl"), (tmp_path, "ps", "zsl")]
    load("numbers", **FEW)  # which has no use for it
    assert survey("birds").root == "elsewhere"
    assert survey("birds").missing == []


def test_a_data_set_of_somebody_else_s():
    @register_dataset("shapes", "Shapes.")
    def load_shapes(setting, corners: int = 4):
        problem, _ = load_numbers(setting=setting, **FEW)
        problem.source["corners"] = corners
        return problem, None

    problem, answers = load("shapes", setting="gzsl", corners="3")
    assert (problem.setting, problem.source["corners"], answers) == ("gzsl", 3, None)
    assert [(found.split, found.seen) for found in survey("shapes").splits] == [("own", 80)]
    with refused("split-unknown"):
        load("shapes", split="val")
    with refused("name-taken"):
        register_dataset("shapes", "Others.")(load_numbers)


def test_options_are_brought_to_the_types_that_the_loader_declares():
    problem, _ = load("numbers", shift={"slant": 0, "noise": 0.0}, **FEW)  # as YAML has it
    assert problem.source["shift"] == {"slant": 0.0, "blur": 0.5, "noise": 0.0}


@pytest.mark.parametrize("options", [{"per_class": "many"}, {"shift": 3}, {"form": 3}, {"shift": {"slnat": 1}}])
def test_options_of_the_wrong_type_are_explained(options):
    (_,) = options
    with refused("data-option-value"):
        load("numbers", **options)


def test_list_takes_patterns():
    register_dataset("birds", "Birds.")(load_numbers)
    assert list_datasets() == sorted(DATASETS)
    assert list_datasets("bird*") == ["birds"]
    assert list_datasets("y*") == []


def test_every_data_set_is_registered_under_its_name():
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert dataset.summary
        assert dataset.splits


def test_what_makes_a_data_set_cannot_be_changed():
    problem, _ = load("numbers-features", per_class=1, pool_per_class=1)
    assert problem.train.sample_shape == (512,)
    with refused("data-option-unknown"):
        load("numbers-features", form="images")
