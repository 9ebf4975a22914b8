"""Classes of one's own folder that are described in words, by several sources, or by tables with holes."""

import logging
import math

import numpy as np
import pytest
from PIL import Image
from refusals import refused

from pren.data import load
from pren.data.describe import ENCODERS, KnownEncoder, Recipe, register_encoder
from pren.data.folder.check import report_folder
from pren.data.folder.class_sources import filled, names_of
from pren.foundation.errors import PrenError

SIGNATURES = "class,striped,hooves\nhorse,0,1\ntiger,1,0\nzebra,1,1\nseal,0.5,0.25\n"
DESCRIPTIONS = """class,description
horse,it runs
horse,it has hooves
tiger,striped cat
zebra,hooves and striped
seal,it swims
"""
WORDS = ("it", "striped", "hooves", "swims", "photo", "horse")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "mydata"
    pixels = np.random.default_rng(0).integers(0, 256, (4, 4, 4, 3), dtype=np.uint8)
    for place, name in enumerate(("images/horse/1.png", "images/tiger/1.png", "unlabelled/1.png", "unlabelled/2.png")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[place]).save(folder / name)
    (folder / "signatures.csv").write_text(SIGNATURES)
    (folder / "descriptions.csv").write_text(DESCRIPTIONS)
    return folder


@pytest.fixture(autouse=True)
def words(monkeypatch):
    """The usual encoder counts words here."""
    monkeypatch.setattr(ENCODERS, "_entries", {})
    register_encoder("minilm")(counts)


def counts(texts):
    return np.array([[text.split().count(word) for word in WORDS] for text in texts], dtype=float)


def warnings(folder, **options):
    report = report_folder(folder, **options)
    assert not report.errors()
    return [problem.message for problem in report.problems]


def test_several_rows_of_a_class_are_averaged(folder):
    problem, _ = load(folder, signatures="descriptions")
    horse = (counts(["it runs"]) + counts(["it has hooves"]))[0] / 2
    np.testing.assert_allclose(problem.classes.signatures[0], horse / np.linalg.norm(horse))
    assert report_folder(folder, signatures="descriptions").descriptions == 5


def test_names_alone_go_through_a_template(folder, caplog):
    (folder / "signatures.csv").unlink()
    (folder / "descriptions.csv").unlink()
    (folder / "classes.csv").write_text("class\nhorse\ntiger\n007.striped_seal\n")
    with caplog.at_level(logging.WARNING):
        problem, _ = load(folder)
    assert "by their names only ('a photo of a {}.')" in caplog.text
    assert problem.recipe["sources"][0]["texts"]["007.striped_seal"] == ["a photo of a striped seal."]
    assert problem.source["signatures"]["templates"] == ["a photo of a {}."]
    birds, _ = load(folder, template="it is {}, a bird")
    assert birds.recipe["sources"][0]["texts"]["horse"] == ["it is horse, a bird"]
    with refused("template"):
        load(folder, template="a bird")


def test_several_sources_are_scaled_by_the_seen_classes(folder):
    problem, _ = load(folder, signatures="attributes,descriptions", signature_weights=[1, 2])
    assert problem.source["signatures"]["weights"] == [1.0, 2.0]
    for block, weight in zip(np.split(problem.classes.signatures, [2], axis=1), (1, 2), strict=True):
        np.testing.assert_allclose(block[:2].mean(axis=0), 0, atol=1e-12)
        assert math.sqrt((block[:2] ** 2).sum(axis=1).mean()) == pytest.approx(weight)
    assert not problem.classes.normalised
    assert set(problem.source["files"]) == {"signatures.csv", "descriptions.csv"}
    birds, _ = load(folder, signatures="attributes,names", template="photo of a {}")  # any table has names
    assert set(birds.source["files"]) == {"signatures.csv"}


def test_attributes_and_descriptions_stand_together_by_default(folder):
    both, named = load(folder)[0], load(folder, signatures="attributes,descriptions")[0]
    assert both.fingerprint() == named.fingerprint()
    assert names_of(both.source) == ["attributes", "descriptions"]
    assert both.source["signatures"]["weights"] == [1.0, 1.0]
    (folder / "classes.csv").write_text("class\nhorse\ntiger\nzebra\nseal\n")
    np.save(folder / "vectors.npy", np.eye(4))
    assert load(folder)[0].fingerprint() == both.fingerprint(), "names and vectors only where somebody says so"
    (folder / "signatures.csv").unlink()
    assert names_of(load(folder)[0].source) == ["descriptions"]


def test_what_says_the_same_of_all_seen_classes_is_left_out_by_default(folder):
    (folder / "signatures.csv").write_text(SIGNATURES.replace("tiger,1,0", "tiger,0,1"))
    assert names_of(load(folder)[0].source) == ["descriptions"]
    with refused("signatures-constant"):
        load(folder, signatures="attributes,descriptions")


def test_without_an_encoder_the_numbers_are_enough(folder, caplog):
    class NotThere(KnownEncoder):
        def __call__(self, texts):
            raise NotImplementedError

        cuts = width = __call__

        def facts(self):
            raise PrenError("extra-missing", "Install it.")

    ENCODERS._entries.clear()
    register_encoder("minilm")(NotThere())
    with caplog.at_level(logging.WARNING):
        assert names_of(load(folder)[0].source) == ["attributes"]
    assert "Install it" in caplog.text
    with refused("extra-missing"):
        load(folder, signatures="attributes,descriptions")


def test_a_class_that_one_source_has_not(folder):
    (folder / "descriptions.csv").write_text(DESCRIPTIONS.replace("seal,", "otter,"))
    report = report_folder(folder, signatures="attributes,descriptions")
    assert [str(problem) for problem in report.problems] == [
        "signatures.csv, line 5: class 'seal' has no row in descriptions.csv.",
        "descriptions.csv, line 6: class 'otter' has no row in signatures.csv. Did you mean 'tiger'?",
    ]


def test_a_recipe_makes_the_rows_again(folder):
    for options in ({"signatures": "attributes"}, {"signatures": "descriptions"}):
        problem, _ = load(folder, **options)
        row = described_as_tiger(Recipe.model_validate(problem.recipe), options["signatures"])
        np.testing.assert_allclose(row / np.linalg.norm(row), problem.classes.signatures[1])
    problem, _ = load(folder, signatures="attributes,descriptions", signature_weights=[1, 3])
    recipe = Recipe.model_validate(problem.recipe)
    np.testing.assert_allclose(described_as_tiger(recipe, "attributes,descriptions"), problem.classes.signatures[1])


def test_several_templates_are_averaged(folder):
    problem, _ = load(folder, signatures="names", template=["photo of {}", "it is {}"])
    assert problem.recipe["sources"][0]["texts"]["horse"] == ["photo of horse", "it is horse"]
    row = counts(["photo of horse", "it is horse"]).mean(axis=0)
    np.testing.assert_allclose(problem.classes.signatures[0], row / np.linalg.norm(row))
    recipe = Recipe.model_validate(problem.recipe)
    np.testing.assert_allclose(
        recipe.describe("striped_cat"), counts(["photo of striped cat", "it is striped cat"]).mean(axis=0)
    )
    with refused("template"):
        load(folder, signatures="names", template=[])


def described_as_tiger(recipe, sources):
    numbers = {"striped": 1.0, "hooves": 0.0} if "attributes" in sources else None
    return recipe.describe("new", numbers=numbers, texts=["striped cat"] if "descriptions" in sources else ())


class TestVectors:
    ORDER = "class\nzebra\nhorse\nseal\ntiger\n"
    ROWS = np.array([[1.0, 2, 3], [4, 5, 6], [0, 0, 1], [1, 0, 1]])

    @pytest.fixture(autouse=True)
    def vectors(self, folder):
        (folder / "classes.csv").write_text(self.ORDER)
        np.save(folder / "vectors.npy", self.ROWS)

    def test_rows_are_in_the_order_of_the_names(self, folder):
        problem, _ = load(folder, signatures="vectors")
        assert problem.classes.names == ("zebra", "horse", "seal", "tiger")
        np.testing.assert_allclose(
            problem.classes.signatures, self.ROWS / np.linalg.norm(self.ROWS, axis=1, keepdims=True)
        )
        assert problem.classes.attributes is None
        assert problem.source["signatures"]["file"] == "vectors.npy"
        assert set(problem.source["files"]) == {"vectors.npy", "classes.csv"}
        assert (report_folder(folder, signatures="vectors").vectors, warnings(folder, signatures="vectors")) == (3, [])

    @pytest.mark.parametrize("names", ["attributes,vectors", "vectors,attributes", "vectors,names", "names,vectors"])
    def test_beside_other_sources(self, folder, names):
        problem, _ = load(folder, signatures=names, signature_weights=[1, 1], template="photo of {}")
        source = names.split(",").index("vectors")
        widths = [part["width"] for part in problem.source["signatures"]["sources"]]
        block = np.split(problem.classes.signatures, np.cumsum(widths)[:-1], axis=1)[source]
        rows = dict(zip(self.ORDER.split()[1:], self.ROWS, strict=True))
        seen = np.stack([rows["horse"], rows["tiger"]])
        scale = math.sqrt(((seen - seen.mean(axis=0)) ** 2).sum(axis=1).mean())
        for name, row in zip(problem.classes.names, block, strict=True):
            np.testing.assert_allclose(row, (rows[name] - seen.mean(axis=0)) / scale, atol=1e-12)

    def test_a_class_that_comes_later(self, folder):
        problem, _ = load(folder, signatures="attributes,vectors")
        recipe = Recipe.model_validate(problem.recipe)
        again = recipe.describe("new", numbers={"striped": 1.0, "hooves": 0.0}, values=self.ROWS[3])
        np.testing.assert_allclose(again, problem.classes.signatures[problem.classes.names.index("tiger")])

    def test_they_count_before_names_and_after_words(self, folder):
        assert [part["kind"] for part in load(folder)[0].source["signatures"]["sources"]] == ["attributes", "text"]
        (folder / "signatures.csv").unlink()
        (folder / "descriptions.csv").unlink()
        assert load(folder)[0].source["signatures"]["kind"] == "vectors"
        assert load(folder, encoder="minilm")[0].source["signatures"]["kind"] == "text"
        with refused("option-conflict"):
            load(folder, signatures="vectors", encoder="minilm")

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (ROWS[:3], "vectors.npy: it has 3 rows, but classes.csv has 4 classes: give one row for each."),
            (ROWS[0], "vectors.npy: it must have shape (classes, at most 20000 numbers), not (3,)."),
            (
                np.zeros((4, 0)),
                "vectors.npy: it must have shape (classes, at most 20000 numbers), not (4, 0).",
            ),
            (ROWS * np.array([[1], [np.nan], [1], [1]]), "'horse') holds NaN or infinite values."),
            (ROWS * np.array([[1], [1], [0], [1]]), "vectors.npy: row 2 (class 'seal') is all zeros."),
            (ROWS.astype(str), "vectors.npy: it must hold numbers, not <U32."),
            (ROWS.astype(complex), "vectors.npy: it must hold numbers, not complex128."),
            (ROWS.astype(object), "Python objects in dtype): write it again as numbers or text."),
        ],
    )
    def test_what_is_wrong_is_named(self, folder, array, message):
        np.save(folder / "vectors.npy", array, allow_pickle=True)
        report = report_folder(folder, signatures="vectors")
        assert len(report.problems) == report.errors() == 1
        assert message in str(report.problems[0])
        with refused("folder-unusable"):
            load(folder, signatures="vectors")

    def test_twins(self, folder):
        np.save(folder / "vectors.npy", self.ROWS[[0, 0, 2, 3]])
        assert warnings(folder, signatures="vectors") == [
            "'horse' has the same signature as 'zebra': write how they differ."
        ]

    def test_names_that_are_wrong(self, folder):
        (folder / "classes.csv").write_text(self.ORDER.replace("seal", "horse"))
        said = "classes.csv, line 4: class 'horse' is already in line 3: give every class one row."
        assert str(report_folder(folder, signatures="vectors").problems[0]) == said
        (folder / "classes.csv").unlink()
        report = report_folder(folder, signatures="vectors")
        expected = "classes.csv: it is missing: add it, with the classes in the order of the rows of vectors.npy."
        assert str(report.problems[0]) == expected

    def test_damage(self, folder):
        (folder / "vectors.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr'")
        assert "vectors.npy: it cannot be read with NumPy" in str(
            report_folder(folder, signatures="vectors").problems[0]
        )


class TestMissing:
    def test_the_mean_of_the_seen_classes_fills_in(self, folder):
        (folder / "signatures.csv").write_text(SIGNATURES.replace("zebra,1,1", "zebra, ?,1").replace("0.25", ""))
        problem, _ = load(folder, signatures="attributes")
        zebra, seal = problem.classes.signatures[2:]
        np.testing.assert_allclose(zebra, np.array([0.5, 1]) / np.hypot(0.5, 1))
        np.testing.assert_allclose(seal, np.array([0.5, 0.5]) / np.hypot(0.5, 0.5))
        assert warnings(folder) == ["2 numbers are missing: the mean of the seen classes is used."]
        assert report_folder(folder).missing == 2

    def test_against_a_loop(self):
        rng = np.random.default_rng(0)
        values, seen = rng.normal(size=(9, 5)), np.arange(9) < 4
        values[rng.random((9, 5)) < 0.4] = np.nan
        values[:4, 2] = np.nan  # no seen class has it
        values[:, 4] = np.nan  # nobody has it
        expected = values.copy()
        for row in range(9):
            for column in range(5):
                if math.isnan(values[row, column]):
                    known = [values[r, column] for r in range(9) if not math.isnan(values[r, column])]
                    best = [values[r, column] for r in range(4) if not math.isnan(values[r, column])]
                    expected[row, column] = np.mean(best or known or [0.0])
        np.testing.assert_allclose(filled(values, seen), expected)


class TestCheck:
    def test_nearly_the_same_words(self, folder):
        text = "a large animal that lives in the cold sea and eats a lot of fish"
        rows = f"zebra,{text}\nseal,{text} daily\n"
        (folder / "descriptions.csv").write_text("class,description\nhorse,it runs\ntiger,Striped cat\n" + rows)
        (said,) = warnings(folder, signatures="descriptions")
        assert said == "'seal' has nearly the same description as 'zebra': write how they differ."

    def test_words_that_the_encoder_does_not_read(self, folder, monkeypatch):
        class Reader(KnownEncoder):
            __call__ = staticmethod(counts)

            def facts(self):
                return {}

            def width(self):
                return len(WORDS)

            def cuts(self, texts):
                return [len(text) > 250 for text in texts]

        monkeypatch.setattr(ENCODERS, "_entries", {"minilm": Reader()})
        long = DESCRIPTIONS.replace("striped cat", "striped cat " * 30).replace("it runs", "it runs " * 26)
        (folder / "descriptions.csv").write_text(long)
        (said,) = warnings(folder, signatures="descriptions")
        assert "'striped cat" in said
        assert "of 'tiger' is too long" in said

    def test_too_many_attributes(self, folder):
        (folder / "signatures.csv").write_text("class," + ",".join(f"a{n}" for n in range(20_001)) + "\n")
        assert "it has 20001 attributes" in report_folder(folder).problems[0].message
