"""Classes that are added to a run or removed from it, on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from pren.data.describe import ENCODERS

WORDS = ("red", "green", "blue")


def counts(texts):
    """The usual encoder counts colours here."""
    return np.array([[1 + 3 * text.split().count(word) for word in WORDS] for text in texts], dtype=float)


@pytest.fixture(autouse=True)
def encoder(monkeypatch):
    monkeypatch.setattr(ENCODERS, "_entries", {"minilm": counts})


@pytest.fixture
def run(good, photographs, tiny_weights):
    """A run that knows colours by numbers."""
    return fitted(good, tiny_weights, "run")


def fitted(good, weights, out, *more):
    frozen = ("--backbone", "test_resnet", "--weights", weights, "--frozen")
    good("fit", "photographs", "--method=ridge-s2v", *frozen, "--rehearsals=0", "--out", out, *more)
    return out


@pytest.fixture
def in_words(photographs):
    """The same folder with words for numbers."""
    _, *rows = (photographs / "signatures.csv").read_text().split()
    texts = []
    for row in rows:
        name, *numbers = row.split(",")
        texts.append(f"{name},it is {' '.join(w for w, n in zip(WORDS, numbers, strict=True) if int(n))}\n")
    (photographs / "signatures.csv").unlink()
    (photographs / "descriptions.csv").write_text("class,description\n" + "".join(texts))
    return photographs


def names(good, model):
    return {row["class"]: row["seen"] for row in json.loads(good("classes", "list", model, "--json").out)}


def test_they_are_listed(run, good):
    assert names(good, run) == {**dict.fromkeys("gfedc", True), "b": False, "a": False}
    assert "unseen" in good("classes", "list", run).out


@pytest.mark.parametrize(
    "said",
    [
        ("--attributes", "red=0,green=1", "--attributes", "blue=0"),
        ("--signature", "new.npy"),
        ("--signature", "new.csv"),
    ],
)
def test_a_class_is_added_by_numbers_and_predicted(run, good, said):
    np.save("new.npy", np.array([0.0, 1.0, 0.0]))
    Path("new.csv").write_text("class,green,blue,red\ngrass,1,0,0\n")
    before = Path(run, "model.safetensors").read_bytes()
    good("classes", "add", run, "grass", *said)
    assert names(good, "run-with-grass")["grass"] is False
    assert Path(run, "model.safetensors").read_bytes() == before
    good("predict", "run-with-grass", "photographs/images/f", "--out", "labels.csv", "--top", "1")
    rows = Path("labels.csv").read_text().splitlines()[1:]
    assert [row.split(",")[1] for row in rows] == ['"grass"'] * 3  # class f is green
    good("classes", "remove", "run-with-grass", "grass", "--out", "back")
    assert names(good, "back") == names(good, run)


def test_a_class_is_added_by_a_sentence(good, in_words, tiny_weights, monkeypatch, bad):
    run = fitted(good, tiny_weights, "run")
    recipe = json.loads(Path(run, "signatures.json").read_text())["sources"][0]
    assert (recipe["encoder"], recipe["texts"]["b"]) == ("minilm", ["it is red green"])
    good("classes", "add", run, "grass", "--description", "it is green", "--out", "new")
    assert json.loads(Path("new/signatures.json").read_text())["sources"][0]["texts"]["grass"] == ["it is green"]
    good("predict", "new", "photographs/images/f", "--out", "labels.csv", "--top", "1")
    assert Path("labels.csv").read_text().count('"grass"') == 3
    monkeypatch.setattr(ENCODERS, "_entries", {"minilm": lambda texts: -counts(texts)})
    assert bad("classes", "add", run, "leaf", "--description", "it is green", "--out", "other").says("encoder-other")
    assert not Path("other").exists()


def test_names_alone(good, photographs, tiny_weights):
    (photographs / "signatures.csv").unlink()
    (photographs / "classes.csv").write_text("class\n" + "\n".join("gfedcba") + "\n")
    fitted(good, tiny_weights, "run", "--option", "template=it is green {}")
    good("classes", "add", "run", "blue")
    assert names(good, "run-with-blue")["blue"] is False


MISTAKES = [
    (("add",), "usage NAME"),
    (("add", "a", "--attributes", "red=1"), "class-twice a"),
    (("add", "x/y", "--attributes", "red=1"), "class-name"),
    (("add", "new"), "description-missing new --attributes"),
    (("add", "new", "--attributes", "red=?"), "option-value --attributes"),
    (("add", "new", "--attributes", "rde=1"), "attribute-unknown rde"),
    (("add", "new", "--attributes", "red=0,green=0,blue=0"), "signature-zero"),
    (("add", "new", "--description", "red"), "description-missing new"),
    (("add", "new", "--attributes", "red=1", "--description", "red"), "description-unused --description"),
    (("add", "new", "--attributes", "red=1", "--description", " "), "description-length 1 10000"),
    (("add", "new", "--signature", "short.npy"), "signature-size 3 2"),
    (("add", "new", "--signature", "nan.npy"), "not-finite nan.npy"),
    (("add", "new", "--signature", "nothing.npy"), "file-missing nothing.npy"),
    (("add", "new", "--signature", "other.csv"), "class-missing new"),
    (("remove", "g"), "class-seen g"),
    (("remove", "nobody"), "class-unknown nobody"),
    (("remove", "a", "--attributes", "red=1"), "usage --attributes"),
    (("add", "new", "--attributes", "red=1", "--out", "run"), "out-taken"),
]


def test_what_cannot_be(run, bad, contents):
    np.save("short.npy", np.ones(2))
    np.save("nan.npy", np.array([1, 2, np.nan]))
    Path("other.csv").write_text("class,red,green,blue\nother,1,0,0\n")
    before = contents()
    for (verb, *arguments), refusal in MISTAKES:
        assert bad("classes", verb, run, *arguments).says(refusal), (verb, *arguments)
        assert contents() == before, (verb, *arguments)


def test_a_damaged_recipe(run, bad):
    good = Path("model")
    good.mkdir()
    (good / "model.safetensors").write_bytes(Path(run, "model.safetensors").read_bytes())
    (good / "signatures.json").write_text('{"sources": []}')
    assert bad("classes", "add", "model", "new", "--attributes", "red=1").says("damaged signatures.json")
    (good / "signatures.json").unlink()
    assert bad("classes", "add", "model", "new", "--attributes", "red=1").says("recipe-unknown")


def test_an_image_of_the_new_class(run, good):
    """The new model takes photographs as the old one did."""
    Image.new("RGB", (9, 9), (0, 200, 0)).save("leaf.png")
    good("classes", "add", run, "grass", "--attributes", "red=0,green=1,blue=0", "--out", "new")
    assert json.loads(good("predict", "new", "leaf.png", "--json").out)["predictions"][0]["confidence"] is None


@pytest.mark.slow
class TestContinue:
    """``pren fit --continue``."""

    QUICK = (
        "heads=2 dim=2 hidden=[4] rounds=1 initial_batches=1 batches=1 batch_size=4 n_max=2 backbone=small-cnn".split()
    )

    @pytest.fixture
    def first(self, good, photographs):
        return good("fit", "photographs", "--method=pren", *(f"--set={one}" for one in self.QUICK), "--out", "first")

    def test_a_class_that_the_table_has_got_since(self, first, good, bad, photographs):
        with (photographs / "signatures.csv").open("a") as file:
            file.write("olive,1,1,0.5\n")
        good("fit", "photographs", "--continue", "first", "--out", "second")
        config = yaml.safe_load(Path("second/config.yaml").read_text())
        assert config["params"]["hidden"] == [4]
        assert config["record"]["continues"].endswith("/first")
        assert "olive" in names(good, "second")
        assert bad("fit", "photographs", "--continue", "first", "--set", "hidden=[5]", "--out", "third").says(
            "start-other"
        )
        assert not Path("third").exists()

    def test_where_it_makes_no_sense(self, first, bad, run):
        assert bad("fit", "photographs", "--continue", "first").says("option-conflict --continue")
        assert bad("fit", "photographs", "--continue", "nowhere", "--out", "second").says("not-a-run")

    def test_a_method_that_fits_in_one_go(self, run, good):
        assert "ridge-s2v has no rounds" in good("fit", "photographs", "--continue", run, "--out", "second").err
        assert Path("second/predictions.csv").read_bytes() == Path(run, "predictions.csv").read_bytes()
