"""`pren fit` and `pren.fit` come to the same bytes."""

import sys

import numpy as np
import pytest
import yaml
from refusals import refused

import pren
from pren.cli import __main__ as command_line
from pren.data.describe import ENCODERS

from .conftest import SMALL

pytestmark = pytest.mark.slow

SAME = ("predictions.csv", "model.safetensors", "trust.safetensors", "metrics.json", "history.csv", "pseudo_labels.csv")
PREN = {"method": "pren", **SMALL, "rounds": 2}
FROZEN = {"method": "eszsl", "backbone": "test_resnet", "weights": "tiny.safetensors"}
TUNED = {"finetune": True, "finetune_epochs": 1, "finetune_strength": 0.5, "rehearsals": 0}
RUNS = {
    "default": ("data.npz", {}),
    "gzsl": ("gzsl.npz", {"method": "eszsl", "setting": "gzsl", "rehearsals": 2}),
    "rival": ("data.npz", {"method": "sae", "balance": 0.5, "rehearsals": 0}),
    "rounds": ("data.npz", PREN),
    "sure": ("noisy.npz", {"method": "eszsl", "rehearsals": 4, "min_accuracy": 0.95}),
    "words": ("words", {**FROZEN, "encoder": "counted", "rehearsals": 0}),
    "photographs": ("photographs", {**FROZEN, "rehearsals": 2}),
    "finetuned": ("photographs", {**FROZEN, **TUNED}),
    "continued": ("data.npz", {"start": "first"}),
    "seeded": ("data.npz", {**PREN, "seed": 3}),
}


def arguments_of(settings):
    """The options that say the same as keywords."""
    known = "method setting backbone weights encoder rehearsals min_accuracy seed finetune_epochs finetune_strength"
    for name, value in settings.items():
        if name == "start":
            yield from ("--continue", value)
        elif value is True:
            yield f"--{name}"
        elif name in known.split():
            yield from (f"--{name.replace('_', '-')}", str(value))
        else:
            yield from ("--set", f"{name}={value}")


@pytest.fixture
def pren_fit(monkeypatch, capsys):
    """Run ``pren fit`` in this process; it must succeed."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pren", "fit", *map(str, arguments)])
        code = 0
        try:
            command_line.main()
        except SystemExit as ended:
            code = ended.code
        assert not code, capsys.readouterr().err

    return run


@pytest.fixture
def given(arrays, data, photographs, tiny_weights, tmp_path, monkeypatch):
    """The data of all runs, in the folder that one is in; a run to continue."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ENCODERS, "_entries", {**ENCODERS._entries, "counted": counted})
    data()
    data(setting="gzsl", file="gzsl.npz")
    rng = np.random.default_rng(1)
    noisy = {name: (arrays()[name] + rng.normal(size=arrays()[name].shape)) for name in ("features", "pool")}
    data(file="noisy.npz", **{name: array.astype(np.float32) for name, array in noisy.items()})
    (tmp_path / "tiny.safetensors").write_bytes(tiny_weights.read_bytes())


def counted(texts):
    return np.array([[text.count(letter) + 1.0 for letter in "regnblu"] for text in texts])


def described(photographs, folder):
    """The same photographs, with sentences for numbers."""
    photographs.rename(folder)
    rows = [line.split(",") for line in (folder / "signatures.csv").read_text().splitlines()[1:]]
    words = [
        [word for word, number in zip(("red", "green", "blue"), row[1:], strict=True) if int(number)] for row in rows
    ]
    texts = [f"{row[0]},it is {' '.join(each)}" for row, each in zip(rows, words, strict=True)]
    (folder / "descriptions.csv").write_text("\n".join(["class,description", *texts, ""]))
    (folder / "signatures.csv").unlink()


def left(folder):
    """What a run has left that the same settings must give again."""
    config = yaml.safe_load((folder / "config.yaml").read_text())
    for key in ("command", "started"):
        config["record"].pop(key)
    files = {name: (folder / name).read_bytes() for name in SAME if (folder / name).exists()}
    return sorted(path.name for path in folder.iterdir()), config, files


@pytest.mark.usefixtures("given")
@pytest.mark.parametrize("kind", RUNS)
def test_both_doors_give_the_same_bytes(kind, pren_fit, photographs, tmp_path, monkeypatch):
    source, settings = RUNS[kind]
    if kind == "words":
        described(photographs, tmp_path / "words")
    if kind == "continued":
        pren.fit("data.npz", "first", report=False, **PREN)
    monkeypatch.setenv("PREN_CACHE", str(tmp_path / "cache-1"))  # nothing is taken from the other one's
    pren_fit(source, *arguments_of(settings), "--out", "command", "--no-report")
    monkeypatch.setenv("PREN_CACHE", str(tmp_path / "cache-2"))
    result = pren.fit(source, "python", report=False, **settings)
    names, config, files = left(tmp_path / "command")
    assert (names, config, files) == left(tmp_path / "python")
    assert {"predictions.csv", "model.safetensors", "metrics.json"} <= set(files)
    assert len(result.labels) == len(files["predictions.csv"].splitlines()) - 1


@pytest.mark.usefixtures("given")
def test_what_is_said_matters():
    """Else the same bytes would mean little."""
    seeds = [pren.fit("data.npz", report=False, **PREN, seed=seed).labels.scores.tolist() for seed in (0, 3)]
    assert seeds[0] != seeds[1]
    (source, settings), kept = RUNS["sure"], {"method": "eszsl", "rehearsals": 4}
    assert pren.fit(source, **settings).summary.unlabelled > 0 == pren.fit(source, **kept).summary.unlabelled


def test_a_refusal_names_arguments_instead_of_options(tmp_path):
    with refused("no-rehearsals min_accuracy rehearsals=10") as error:
        pren.fit("numbers-features", min_accuracy=0.9, rehearsals=0)
    assert "--" not in str(error.value)
    with refused("option-conflict start resume"):
        pren.fit(resume=tmp_path, start=tmp_path)
    (tmp_path / "config.yaml").touch()
    with refused("out-taken out"):
        pren.fit("numbers-features", tmp_path, method="eszsl")
