"""Which files of a folder a run describes its classes by, and that it stays with them."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from pren.data.describe import ENCODERS, register_encoder
from pren.data.folder.class_sources import names_of
from pren.problem.inputs import ArrayInputs
from pren.runs.descriptions import described
from pren.store.config import RunConfig
from pren.trust.sources import known_of

SEEN, UNSEEN = [f"seen {number}" for number in range(16)], [f"unseen {number}" for number in range(3)]
CLASSES = [*SEEN, *UNSEEN]
SHAPES = np.random.default_rng(0).integers(0, 3, size=(len(CLASSES), 6))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Sixteen seen classes; words tell where each lies, numbers tell nothing."""
    monkeypatch.setattr(ENCODERS, "_entries", {})
    register_encoder("minilm")(
        lambda texts: np.array([[text.count(letter) for letter in "abcdef"] for text in texts]) + 0.1
    )
    folder = tmp_path / "mydata"
    for place, name in enumerate([*(f"images/{name}/1.png" for name in SEEN), "unlabelled/1.png", "unlabelled/2.png"]):
        (folder / name).parent.mkdir(parents=True) if not (folder / name).parent.exists() else None
        Image.fromarray(np.full((4, 4, 3), place, dtype=np.uint8)).save(folder / name)
    noise = np.random.default_rng(1).random((len(CLASSES), 4)).round(3).tolist()
    rows = [",".join([name, *map(str, row)]) for name, row in zip(CLASSES, noise, strict=True)]
    (folder / "signatures.csv").write_text("\n".join(["class,i,j,k,l", *rows, ""]))
    words = {
        name: " ".join(letter * count for letter, count in zip("abcdef", shape, strict=True))
        for name, shape in zip(CLASSES, SHAPES, strict=True)
    }
    rows = [f"{name},x {words[name]}" for name in reversed(CLASSES)]
    (folder / "descriptions.csv").write_text("\n".join(["class,description", *rows, ""]))
    (folder / "answers.csv").write_text("file,class\n1.png,unseen 1\n2.png,unseen 2\n")
    return folder


def with_features(problem):
    """The problem with features in which classes lie where the words say."""
    rng = np.random.default_rng(2)
    of_class = SHAPES[[CLASSES.index(name) for name in problem.classes.names]] @ rng.normal(size=(6, 10))
    train = np.repeat(of_class[problem.labels], 4, axis=0)
    train = train + 0.1 * rng.normal(size=train.shape)
    pool = of_class[problem.classes.unseen][:2]
    return replace(problem, train=ArrayInputs(train), labels=np.repeat(problem.labels, 4), pool=ArrayInputs(pool))


def opened(folder, **options):
    config = RunConfig(data=str(folder), options=options)
    problem, answers = config.load_data()
    return (config, *described(config, with_features(problem), answers))


def test_the_choice_is_recorded_and_stands_whatever_is_added_later(folder):
    config, problem, answers = opened(folder)
    found = config.found(problem)
    assert found.options == known_of(problem.source).chosen.options()
    assert found.options["signatures"].endswith("descriptions")
    assert names_of(problem.source) == found.options["signatures"].split(",")
    (folder / "classes.csv").write_text("class\n" + "\n".join(CLASSES))
    again, its_answers = found.load_data()
    assert again.classes.names == problem.classes.names
    np.testing.assert_array_equal(again.classes.signatures, problem.classes.signatures)
    assert again.recipe == problem.recipe
    np.testing.assert_array_equal(its_answers.labels, answers.labels)
    same, _ = described(found, with_features(again), None)
    np.testing.assert_array_equal(same.labels, problem.labels)
    assert found.found(same) == found


@pytest.mark.parametrize("chosen", [{"signatures": "attributes"}, {"signature_weights": [1.0, 3.0]}])
def test_what_a_person_chooses_is_left_alone(folder, chosen):
    config, problem, _ = opened(folder, **chosen)
    assert known_of(problem.source) is None
    assert {**config.found(problem).options, **chosen} == config.found(problem).options


def test_the_classes_of_inputs_follow_where_the_other_file_has_another_order(folder, monkeypatch):
    monkeypatch.setattr("pren.trust.sources.ALONE", -1.0)  # a single one is always better
    config, problem, answers = opened(folder)
    assert config.found(problem).options == {"signatures": "descriptions"}
    assert problem.classes.names == tuple(reversed(CLASSES))
    assert [problem.classes.names[row] for row in problem.labels[::4]] == sorted(SEEN)
    assert {problem.classes.names[row] for row in answers.labels} == {"unseen 1", "unseen 2"}


def test_a_run_with_a_single_source_keeps_it(folder):
    (folder / "descriptions.csv").unlink()
    config, problem, _ = opened(folder)
    assert config.found(problem).options == {"signatures": "attributes"}
    assert RunConfig(data="arrays.npz").found(problem).options == {}
