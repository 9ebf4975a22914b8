"""A folder of one's own photographs: labels that a person gives, and labelled photographs that are held out."""

import numpy as np
import pytest
from PIL import Image
from refusals import refused

from pren.data import class_folds, load
from pren.data.folder.check import report_folder
from pren.data.folder.load import load_folder
from pren.problem import UNKNOWN

SIGNATURES = "class,striped,hooves,swims\nhorse,0,1,0\ntiger,1,0,0.5\nzebra,1,1,0\nseal,0,0,1\n"
ANSWERS = "file,class\n1.png,zebra\nmore/0.png,seal\n3.png,\n"
SETTINGS = pytest.mark.parametrize("setting", ["zsl", "gzsl"])


def photograph(path, colour):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (6, 5), colour).save(path)


@pytest.fixture
def folder(tmp_path):
    """Ten horses, five tigers and one more to be told apart by their green; eight photographs in the pool."""
    folder = tmp_path / "mydata"
    for number in range(10):
        photograph(folder / f"images/horse/{number}.png", (200, 20 * number, 0))
    for number in range(5):
        photograph(folder / f"images/tiger/{number}.png", (0, 20 * number, 200))
    for number in range(8):
        photograph(folder / f"unlabelled/{'' if number % 2 else 'more/'}{number}.png", (90, 20 * number, 90))
    (folder / "signatures.csv").write_text(SIGNATURES)
    (folder / "answers.csv").write_text(ANSWERS)
    return folder


def label(folder, *rows):
    (folder / "labels.csv").write_text("\n".join(["file,class", *rows, ""]))


def found(folder, **options):
    return [(f.severity, f.file, f.line, f.message) for f in report_folder(folder, **options).problems]


def by_name(problem, answers, labels):
    """Labels of the pool that somebody knows, by name."""
    names = problem.classes.names
    return {file: names[row] for file, row in zip(answers.names, labels, strict=True) if row != UNKNOWN}


def greens(inputs):
    return np.round(inputs[np.arange(len(inputs))][:, 1].mean(dim=(1, 2)).numpy() * 255).astype(int).tolist()


class TestLabels:
    @SETTINGS
    def test_a_label_of_an_unseen_class_is_given(self, folder, setting):
        label(folder, "1.png,zebra", "5.png,seal", "3.png,")
        problem, answers = load_folder(folder, setting)
        assert by_name(problem, answers, problem.given) == {"1.png": "zebra", "5.png": "seal"}
        assert by_name(problem, answers, answers.labels) == {"more/0.png": "seal"}, "what is given is not evaluated"
        assert (len(problem.pool), len(problem.train)) == (8, 15)
        assert set(problem.source["files"]) == {"signatures.csv", "labels.csv"}
        assert found(folder) == []

    @SETTINGS
    def test_a_photograph_of_a_seen_class_is_one_more_to_learn_from(self, folder, setting):
        label(folder, "more/2.png,tiger", "1.png,zebra")
        problem, answers = load_folder(folder, setting)
        assert "more/2.png" not in answers.names
        assert (len(problem.pool), len(problem.train)) == (7, 16)
        assert problem.classes.names[problem.labels[-1]] == "tiger"
        assert greens(problem.train)[-1] == 40
        assert by_name(problem, answers, problem.given) == {"1.png": "zebra"}
        for green, name in zip(greens(problem.pool), answers.names, strict=True):
            assert green == 20 * int(name[-5])

    def test_without_labels_nothing_is_given(self, folder):
        before, _ = load_folder(folder)
        label(folder, "1.png,", "3.png,")
        after, _ = load_folder(folder)
        assert after.given is None
        assert after.fingerprint() == before.fingerprint()
        assert set(after.source["files"]) == {"signatures.csv"}

    def test_other_labels_are_another_split(self, folder):
        prints = []
        for name in ("zebra", "seal", "horse"):
            label(folder, f"1.png,{name}")
            prints.append(load_folder(folder)[0].fingerprint()["split"])
        assert len(set(prints)) == 3

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ("9.png,zebra", "there is no photograph '9.png' in unlabelled."),
            ("unlabelled/5.png,zebra", "Leave unlabelled/ off."),
            ("1.png,seal", "'1.png' is already in line 2: remove one."),
            ("../answers.csv,zebra", "there is no photograph '../answers.csv'"),
            ("5.png,zbera", "class 'zbera' has no row in signatures.csv. Did you mean 'zebra'?"),
            ("5.png", "it has 1 field, but the header (line 1) has 2."),
        ],
    )
    def test_rows(self, folder, row, message):
        label(folder, "1.png,zebra", row)
        ((severity, file, line, said),) = found(folder)
        assert (severity, file, line) == ("error", "labels.csv", 3)
        assert message in said
        with refused("folder-unusable"):
            load_folder(folder)

    @pytest.mark.parametrize("name", ["seal", "horse"])
    def test_a_label_that_is_not_the_answer(self, folder, name):
        label(folder, "3.png,seal", f"1.png,{name}")
        ((severity, file, line, said),) = found(folder)
        assert (severity, file, line) == ("warning", "labels.csv", 3)
        assert f"'1.png' is '{name}' here and 'zebra' in answers.csv, line 2" in said

    def test_an_answer_of_a_seen_class_is_no_matter_where_a_label_says_the_same(self, folder):
        (folder / "answers.csv").write_text("file,class\n1.png,horse\n")
        label(folder, "1.png,horse")
        assert found(folder) == []

    def test_the_report_counts(self, folder):
        label(folder, "1.png,zebra", "5.png,horse", "3.png,")
        report = report_folder(folder)
        assert (report.images, report.pool, report.given, report.answers) == (15, 8, 2, 1)

    def test_something_must_be_left_to_recognise(self, folder):
        names = [path.relative_to(folder / "unlabelled").as_posix() for path in (folder / "unlabelled").rglob("*.png")]
        label(folder, *(f"{name},horse" for name in names))
        (folder / "answers.csv").unlink()
        ((severity, file, _, said),) = found(folder)
        assert (severity, file) == ("error", "labels.csv")
        assert "seen class to every photograph" in said
        label(folder, *(f"{name},zebra" for name in names))  # which is what a person says in the end
        problem, _ = load_folder(folder)
        assert (problem.given == 2).all()


class TestHoldOut:
    def test_a_share_of_each_class_goes_to_the_pool_with_its_answer(self, folder):
        problem, answers = load_folder(folder, "gzsl", hold_out=0.2)
        assert (len(problem.train), len(problem.pool)) == (12, 11)
        assert np.bincount(problem.labels).tolist() == [8, 4]
        held = {name: row for name, row in zip(answers.names, answers.labels, strict=True) if name.startswith("../")}
        assert sorted(held.values()) == [0, 0, 1]
        for name, row in held.items():
            assert name.startswith(f"../images/{problem.classes.names[row]}/")
            assert (folder / "unlabelled" / name).is_file()
        for green, name in zip(greens(problem.pool), answers.names, strict=True):
            assert green == 20 * int(name[-5])
        assert by_name(problem, answers, answers.labels).keys() == {*held, "1.png", "more/0.png"}
        assert problem.source["hold_out"] == 0.2
        places = [place for place, name in enumerate(answers.names) if name in held]
        assert places != [8, 9, 10], "their places tell nothing"

    def test_it_is_part_of_the_data(self, folder):
        first = load_folder(folder, "gzsl", hold_out=0.3)[1].names
        (folder / "signatures.csv").write_text("\n".join([SIGNATURES.split("\n")[0], *SIGNATURES.split("\n")[:0:-1]]))
        assert load(folder, setting="gzsl", hold_out=0.3)[1].names == first, "not of the order of the classes"
        label(folder, "1.png,horse")
        more = load_folder(folder, "gzsl", hold_out=0.3)[1].names
        held = [{name for name in names if name.startswith("../")} for names in (first, more)]
        assert held[0] == held[1], "nor of labels that are given later"

    def test_one_image_of_a_class_stays(self, folder):
        problem, answers = load_folder(folder, "gzsl", hold_out=0.99)
        assert np.bincount(problem.labels).tolist() == [1, 1]
        assert sum(name.startswith("../") for name in answers.names) == 13
        for number in range(1, 5):
            (folder / f"images/tiger/{number}.png").unlink()
        problem, _ = load_folder(folder, "gzsl", hold_out=0.5)
        assert np.bincount(problem.labels).tolist() == [5, 1]

    def test_folds_are_made_of_what_is_left(self, folder):
        for name in ("lynx", "otter"):
            for number in range(4):
                photograph(folder / f"images/{name}/{number}.png", (number, 0, len(name)))
        (folder / "signatures.csv").write_text(f"{SIGNATURES}lynx,1,0,0\notter,0,1,1\n")
        problem, _ = load_folder(folder, "gzsl", hold_out=0.2)
        for fold, _ in class_folds(problem):
            assert len(fold.train) + len(fold.pool) == len(problem.train)

    def test_zsl_has_no_use_for_it(self, folder):
        with refused("hold-out"):
            load_folder(folder, hold_out=0.2)

    @pytest.mark.parametrize("share", [0.0, 1.0, -1, 7, float("nan"), "much"])
    def test_it_is_a_share(self, folder, share):
        code = "data-option-value" if isinstance(share, str) else "hold-out"
        with refused(f"{code} hold_out"):
            load(folder, setting="gzsl", hold_out=share)

    @pytest.mark.parametrize(("name", "said"), [("cub", "seen_test=random"), ("numbers", "own test images")])
    def test_benchmarks_hold_out_by_themselves(self, name, said, tmp_path):
        root = {"root": tmp_path} if name == "cub" else {}
        with refused("hold-out"):
            load(name, setting="gzsl", hold_out=0.2, **root)
