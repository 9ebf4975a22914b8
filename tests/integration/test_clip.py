"""CLIP through the command line: its two towers with random weights, and the rival `clip` on them."""

import json
from pathlib import Path

import pytest

from pren.cli import fit
from pren.store.config import RunConfig

pytestmark = pytest.mark.slow

WORDS = "class,description\n" + "".join(f"{name},a photo that is {name}\n" for name in "gfedcba")


@pytest.fixture
def towers(tiny_clip, photographs):
    (photographs / "signatures.csv").unlink()
    (photographs / "descriptions.csv").write_text(WORDS)
    path = tiny_clip[1]
    return ("--backbone", "clip:tiny", "--weights", path, "--option", f"encoder=clip:tiny@{path}")


def test_from_words_to_labels(good, towers):
    fit = ("fit", "photographs", "--method", "clip", *towers, "--rehearsals", "0")
    good(*fit, "--out", "run")
    assert "unless both are towers" not in good(*fit, "--set", "refinement=soft-kmeans", "--out", "refined").err
    good("predict", "run", "photographs/unlabelled", "--out", "labels.csv")
    good("classes", "add", "run", "fox", "--description", "a red fox", "--out", "more")
    assert "fox" in good("classes", "list", "more").out
    source = json.loads(Path("run/signatures.json").read_text())["sources"][0]
    assert source["facts"].keys() == {"open_clip_torch", "weights"}
    assert len(source["probe"]) == 8


def test_a_name_with_a_slash_is_no_folder():
    config = RunConfig(data="mydata", method="clip", extractor={"backbone": "clip:RN50/openai"})
    assert fit.default_folder(config) == Path("runs/mydata-frozen-clip:RN50-openai-clip-0")


def test_names_go_through_the_stated_templates(good, towers, photographs):
    (photographs / "descriptions.csv").unlink()
    (photographs / "classes.csv").write_text("class\n" + "\n".join("gfedcba") + "\n")
    good("data", "check", "photographs", "--encoder", towers[-1].removeprefix("encoder="))
    good("fit", "photographs", "--method", "clip", *towers, "--rehearsals", "0", "--out", "run")
    source = json.loads(Path("run/signatures.json").read_text())["sources"][0]
    assert len(source["texts"]["a"]) == len(source["templates"]) == 8
    assert source["texts"]["a"][:2] == ["a photo of a a.", "a photo of the a."]


def test_the_same_space_compared(good, towers, here):
    rows = json.loads(
        good("compare", "photographs", "--methods", "clip,pren-pool", *towers, "--json", "--out", "c").out
    )
    assert [row["method"] for row in rows["rows"]] == ["CLIP", "PrEN-Pool"]
    assert all(row["failed"] == 0 for row in rows["rows"])


def test_signatures_of_another_length(bad, towers, tiny_weights):
    other = ("--backbone", "test_resnet", "--weights", tiny_weights, *towers[4:])
    said = bad("fit", "photographs", "--method", "clip", *other, "--out", "run")
    assert said.says("clip-mismatch 8")


def test_encoders_are_listed(good, tiny_clip):
    assert "minilm" in good("list", "encoders").out
    rows = json.loads(good("list", "encoders", "clip:RN50/*", "--json").out)
    assert {row["name"] for row in rows} >= {"clip:RN50/openai", "clip:RN50/cc12m"}
