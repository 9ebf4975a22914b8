"""Folders in the form of xlsa17, made up: every option, and whatever can be wrong with the files."""

import logging
from contextlib import contextmanager

import numpy as np
import pytest
from refusals import refused
from scipy.io import savemat
from scipy.sparse import csc_matrix

from pren.data import load
from pren.data.survey import own_folds
from pren.foundation.errors import PrenError
from pren.research.folds import open_folds
from pren.store.config import RunConfig

CLASSES = [f"{letter} class" for letter in "hgfedcba"]  # seen: the first five, unseen: the last three
PER_CLASS = 10
N = PER_CLASS * len(CLASSES)


def cell(values):
    """A column of text, as MATLAB keeps it."""
    result = np.empty((len(values), 1), dtype=object)
    result[:, 0] = values
    return result


def column(numbers):
    return np.asarray(numbers, dtype=np.uint16).reshape(-1, 1)


def contents():
    """The variables of both files; images of a class are not neighbours, and a feature tells which image it is."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(1, 9), PER_CLASS))
    seen = [np.flatnonzero(labels == c) + 1 for c in range(1, 6)]
    features = rng.normal(size=(4, N)).astype(np.float32)
    features[0] = np.arange(N)
    original = rng.random((6, 8)) * 100
    return {
        "att_splits.mat": {
            "att": original / np.linalg.norm(original, axis=0),
            "original_att": original,
            "allclasses_names": cell(CLASSES),
            "trainval_loc": column(np.sort(np.concatenate([images[2:] for images in seen]))),
            "test_seen_loc": column(np.sort(np.concatenate([images[:2] for images in seen]))),
            "test_unseen_loc": column(np.argsort(labels, kind="stable")[5 * PER_CLASS :] + 1),  # by class
            "train_loc": column([1, 2]),
            "something": np.eye(2),
        },
        "res101.mat": {
            "features": features,
            "labels": column(labels),
            "image_files": cell([f"/BS/somebody/x/{CLASSES[c - 1]}/{i}.jpg" for i, c in enumerate(labels)]),
        },
        "trainclasses1.txt": "\n".join([CLASSES[4], CLASSES[0], CLASSES[2]]) + "\r\n",
        "valclasses1.txt": f"{CLASSES[3]} \n{CLASSES[1]}",
    }


@pytest.fixture
def folder(tmp_path):
    """Write such a folder; keywords change or (None) remove variables of either file, `files` whole files."""

    def write(files=None, **changed):
        for name, content in {**contents(), **(files or {})}.items():
            if isinstance(content, dict):
                kept = {key: changed.get(key, value) for key, value in content.items()}
                kept |= {key: changed[key] for key in changed if name == "att_splits.mat" and key == "att_original"}
                savemat(tmp_path / name, {k: v for k, v in kept.items() if v is not None}, do_compression=True)
            elif content is not None:
                (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return write


def images(inputs):
    """Which images these are, by their first feature."""
    return inputs[np.arange(len(inputs))][:, 0].numpy().astype(int).tolist()


def places(key):
    """A list of the file, counted from 0."""
    return set((contents()["att_splits.mat"][key].astype(int).ravel() - 1).tolist())


LABELS = contents()["res101.mat"]["labels"].astype(int).ravel() - 1
TRAINVAL, TEST_SEEN, TEST_UNSEEN = (places(key) for key in ("trainval_loc", "test_seen_loc", "test_unseen_loc"))


def of_classes(*classes):
    return {image for image in range(N) if LABELS[image] in classes}


def check_labels(problem, answers):
    """Every label is the class of its image, by name."""
    for inputs, labels in ((problem.train, problem.labels), (problem.pool, answers.labels)):
        assert [problem.classes.names[label] for label in labels] == [CLASSES[LABELS[i]] for i in images(inputs)]
    assert set(problem.labels) == set(np.flatnonzero(problem.classes.seen))


class TestPartition:
    def test_zsl_learns_from_all_images_of_the_seen_classes(self, folder):
        problem, answers = load("xlsa17", root=folder())
        assert images(problem.train) == sorted(TRAINVAL | TEST_SEEN) == sorted(of_classes(0, 1, 2, 3, 4))
        assert set(images(problem.pool)) == TEST_UNSEEN == of_classes(5, 6, 7)
        assert problem.classes.names == tuple(CLASSES)
        check_labels(problem, answers)

    def test_zsl_on_trainval_alone(self, folder):
        problem, answers = load("xlsa17", root=folder(), train_on="trainval")
        assert images(problem.train) == sorted(TRAINVAL)
        assert set(images(problem.pool)) == TEST_UNSEEN
        check_labels(problem, answers)

    @pytest.mark.parametrize("train_on", [None, "all", "trainval"])
    def test_gzsl_holds_out_the_files_own_list(self, folder, train_on):
        problem, answers = load("xlsa17", root=folder(), setting="gzsl", train_on=train_on)
        assert images(problem.train) == sorted(TRAINVAL)
        assert sorted(images(problem.pool)) == sorted(TEST_UNSEEN | TEST_SEEN)
        assert problem.source["seen_test"] == "fixed"
        check_labels(problem, answers)

    @pytest.mark.parametrize(("train_on", "each"), [("all", 2), ("trainval", 2)])
    def test_gzsl_holds_out_a_fifth_of_each_seen_class(self, folder, train_on, each):
        problem, answers = load("xlsa17", root=folder(), setting="gzsl", seen_test="random", train_on=train_on)
        held_out = set(images(problem.pool)) - TEST_UNSEEN
        usable = TRAINVAL if train_on == "trainval" else TRAINVAL | TEST_SEEN
        assert held_out | set(images(problem.train)) == usable
        assert not held_out & set(images(problem.train))
        assert [len(held_out & of_classes(c)) for c in range(5)] == [each] * 5
        assert held_out != TEST_SEEN
        check_labels(problem, answers)
        again, _ = load("xlsa17", root=folder(), setting="gzsl", seen_test="random", train_on=train_on)
        assert again.fingerprint() == problem.fingerprint()

    def test_a_class_with_one_image_is_not_held_out(self, folder):
        image = next(iter(of_classes(0) & TRAINVAL))
        kept = column(sorted((TRAINVAL - of_classes(0)) | {image})) + 1
        options = {"setting": "gzsl", "seen_test": "random", "train_on": "trainval"}
        problem, _ = load("xlsa17", root=folder(trainval_loc=kept), **options)
        assert image in images(problem.train)

    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    def test_the_pool_has_an_order_of_its_own(self, folder, setting):
        problem, answers = load("xlsa17", root=folder(), setting=setting)
        assert np.sum(np.diff(answers.labels) != 0) > 2 * len(set(answers.labels))
        reversed_list = contents()["att_splits.mat"]["test_unseen_loc"][::-1]
        again, _ = load("xlsa17", root=folder(test_unseen_loc=reversed_list), setting=setting)
        assert images(again.pool) == images(problem.pool)


class TestFold:
    @pytest.mark.parametrize("setting", ["zsl", "gzsl"])
    def test_nothing_of_the_test_is_in_it(self, folder, setting):
        problem, answers = load("xlsa17", root=folder(), fold=1, setting=setting)
        every = set(images(problem.train)) | set(images(problem.pool))
        assert every == TRAINVAL
        assert problem.classes.names == tuple(CLASSES[:5])
        assert [CLASSES.index(n) for n, s in zip(problem.classes.names, problem.classes.seen, strict=True) if s] == [
            0,
            2,
            4,
        ]
        assert of_classes(1, 3) & TRAINVAL <= set(images(problem.pool))
        check_labels(problem, answers)
        assert len(problem.classes.signatures) == 5
        assert problem.source["train_on"] == "trainval"

    def test_zsl_and_gzsl(self, folder):
        problem, _ = load("xlsa17", root=folder(), fold=1)
        assert images(problem.train) == sorted(of_classes(0, 2, 4) & TRAINVAL)
        assert set(images(problem.pool)) == of_classes(1, 3) & TRAINVAL
        problem, _ = load("xlsa17", root=folder(), fold=1, setting="gzsl")
        held_out = set(images(problem.pool)) - of_classes(1, 3)
        assert [len(held_out & of_classes(c)) for c in (0, 2, 4)] == [2, 2, 2]
        assert problem.source["seen_test"] == "random"

    def test_its_files_are_on_record(self, folder):
        problem, _ = load("xlsa17", root=folder(), fold=1)
        assert problem.source["fold"] == 1
        assert list(problem.source["files"]) == ["att_splits.mat", "res101.mat", "trainclasses1.txt", "valclasses1.txt"]

    @pytest.mark.parametrize(
        ("files", "options", "refusal"),
        [
            ({}, {"fold": 2}, "fold-missing 2 trainclasses2.txt valclasses2.txt"),
            ({}, {"fold": "x"}, "data-option-value x"),
            ({}, {"fold": 1, "train_on": "all"}, "fold-uses-test"),
            ({}, {"fold": 1, "setting": "gzsl", "seen_test": "fixed"}, "fold-uses-test"),
            ({"valclasses1.txt": "h class"}, {"fold": 1}, "fold-overlap trainclasses1.txt valclasses1.txt"),
            ({"valclasses1.txt": "a class"}, {"fold": 1}, "fold-foreign-class valclasses1.txt"),
            ({"valclasses1.txt": "z class"}, {"fold": 1}, "split-foreign-class valclasses1.txt"),
            ({"valclasses1.txt": " \n"}, {"fold": 1}, "split-empty valclasses1.txt"),
            ({"valclasses1.txt": b"\xff\xfe"}, {"fold": 1}, "not-text valclasses1.txt"),
            ({"valclasses1.txt": b"x" * (1 << 21)}, {"fold": 1}, "too-large"),
        ],
    )
    def test_mistakes_are_explained(self, folder, files, options, refusal):
        with refused(refusal):
            load("xlsa17", root=folder(files), **options)


class TestSignatures:
    def test_normalised(self, folder):
        problem, _ = load("xlsa17", root=folder())
        np.testing.assert_allclose(problem.classes.signatures, contents()["att_splits.mat"]["att"].T, rtol=1e-14)
        recorded = {"kind": "attributes", "file": "att_splits.mat", "key": "att", "scale": "normalised"}
        assert problem.source["signatures"].items() >= recorded.items()

    @pytest.mark.parametrize("key", ["original_att", "att_original"])
    @pytest.mark.parametrize("turned", [False, True])
    def test_original(self, folder, key, turned):
        original = contents()["att_splits.mat"]["original_att"]
        changed = {"original_att": None, key: original.T if turned else original}
        problem, _ = load("xlsa17", root=folder(**changed), scale="original")
        np.testing.assert_array_equal(problem.classes.signatures, original.T)
        assert not problem.classes.normalised
        assert problem.source["signatures"].items() >= {"key": key, "scale": "original"}.items()

    @pytest.mark.parametrize("m", [1, 8, 300])
    def test_of_any_dimension(self, folder, m):
        table = np.random.default_rng(1).random((m, 8))
        problem, _ = load("xlsa17", root=folder(att=table))
        assert problem.classes.signatures.shape == (8, m)

    def test_a_class_without_images_is_left_out(self, folder, caplog):
        names, att = cell([*CLASSES, "unicorn"]), np.random.default_rng(1).random((6, 9))
        with caplog.at_level(logging.WARNING, logger="pren"):
            problem, _ = load("xlsa17", root=folder(allclasses_names=names, att=att))
        assert problem.classes.names == tuple(CLASSES)
        assert "1 classes have no images" in caplog.text


def sentences(**changed):
    """`sent_splits.mat`, as it is exchanged: another `att`, the names and the lists again."""
    splits = contents()["att_splits.mat"]
    again = {key: splits[key] for key in ("allclasses_names", "trainval_loc", "test_unseen_loc", "test_seen_loc")}
    content = {"att": np.random.default_rng(2).random((9, 8)) * 20, **again, **changed}
    return {"sent_splits.mat": {key: value for key, value in content.items() if value is not None}}


ATT, SENT = contents()["att_splits.mat"]["att"].T, sentences()["sent_splits.mat"]["att"].T
UNNAMED = {"allclasses_names": None}
NO_LISTS = {"trainval_loc": None, "test_unseen_loc": None, "test_seen_loc": None}


def scaled(table, seen):
    """The formula, written down once more."""
    centred = table - np.mean([table[row] for row in seen], axis=0)
    return centred / np.sqrt(np.mean([np.sum(centred[row] ** 2) for row in seen]))


class TestSources:
    def test_attributes_are_the_default(self, folder):
        without, _ = load("xlsa17", root=folder())
        problem, _ = load("xlsa17", root=folder(sentences()), signatures="attributes")
        assert problem.fingerprint() == without.fingerprint()
        assert problem.source == without.source

    @pytest.mark.parametrize("changed", [{}, UNNAMED, NO_LISTS, {"test_seen_loc": None}])
    def test_sentences(self, folder, changed):
        problem, answers = load("xlsa17", root=folder(sentences(**changed)), signatures="sentences")
        expected = SENT / np.linalg.norm(SENT, axis=1, keepdims=True)
        np.testing.assert_allclose(problem.classes.signatures, expected, rtol=1e-12)
        recorded = {"kind": "sentences", "file": "sent_splits.mat", "key": "att", "width": 9}
        assert problem.source["signatures"].items() >= recorded.items()
        assert list(problem.source["files"]) == ["att_splits.mat", "res101.mat", "sent_splits.mat"]
        check_labels(problem, answers)

    def test_both(self, folder):
        problem, _ = load("xlsa17", root=folder(sentences()), signatures="attributes,sentences")
        expected = np.hstack([scaled(ATT, range(5)), scaled(SENT, range(5))])
        np.testing.assert_allclose(problem.classes.signatures, expected, rtol=1e-12, atol=1e-14)
        assert not problem.classes.normalised
        record = problem.source["signatures"]
        assert [source["kind"] for source in record["sources"]] == ["attributes", "sentences"]
        assert record["weights"] == [1.0, 1.0]

    def test_weights(self, folder):
        options = {"signatures": "sentences, attributes", "signature_weights": [1, 0.5]}
        problem, _ = load("xlsa17", root=folder(sentences()), **options)
        expected = np.hstack([scaled(SENT, range(5)), 0.5 * scaled(ATT, range(5))])
        np.testing.assert_allclose(problem.classes.signatures, expected, rtol=1e-12, atol=1e-14)
        assert problem.source["signatures"]["weights"] == [1.0, 0.5]

    def test_the_seen_classes_of_a_fold_scale_it(self, folder):
        problem, _ = load("xlsa17", root=folder(sentences()), signatures="attributes,sentences", fold=1)
        expected = np.hstack([scaled(table[:5], [0, 2, 4]) for table in (ATT, SENT)])
        np.testing.assert_allclose(problem.classes.signatures, expected, rtol=1e-12, atol=1e-14)

    def test_also_of_a_fold_that_the_split_does_not_have(self, folder):
        root = folder({**sentences(), "trainclasses1.txt": None, "valclasses1.txt": None})
        config = RunConfig(
            data="xlsa17", root=str(root), method="eszsl", options={"signatures": "attributes,sentences"}
        )
        assert own_folds("xlsa17", root) == ()
        for fold, _ in open_folds(config):
            seen = np.flatnonzero(fold.classes.seen)
            expected = np.hstack([scaled(table[:5], seen) for table in (ATT, SENT)])
            np.testing.assert_allclose(fold.classes.signatures, expected, rtol=1e-10, atol=1e-14)

    def test_what_the_encoder_has_learned_from_is_said(self, folder, caplog):
        root = folder(sentences())
        with caplog.at_level(logging.WARNING, logger="pren"):
            load("xlsa17", root=root, signatures="sentences")
            load("xlsa17", root=root, fold=1)
            assert not caplog.text
            load("xlsa17", root=root, signatures="attributes,sentences", fold=1)
        assert "2 of the 2 classes that are unseen" in caplog.text

    @pytest.mark.parametrize(
        ("files", "wanted", "refusal"),
        [
            (
                {},
                "sentences",
                "signatures-unknown sentences /sent_splits.mat",
            ),
            (sentences(), "words", "signatures-unknown words"),
            (sentences(), "original", "signatures-unknown"),
            (sentences(), "attributes,", "signatures-form --signatures"),
            (sentences(), 1, "data-option-value 1"),
            (sentences(att=None), "sentences", "mat-missing-key sent_splits.mat"),
            (sentences(att=SENT), "sentences", "mat-shape sent_splits.mat 8 9"),
            (sentences(**UNNAMED, **NO_LISTS), "sentences", "signatures-order"),
            (
                sentences(allclasses_names=cell([CLASSES[1], CLASSES[0], *CLASSES[2:]])),
                "attributes,sentences",
                "signatures-order att_splits.mat",
            ),
            (sentences(allclasses_names=cell(CLASSES[:-1])), "sentences", "signatures-order 7 8"),
            (sentences(test_unseen_loc=column([1, 2])), "sentences", "signatures-split test_unseen_loc att_splits"),
            (
                sentences(allclasses_names=None, trainval_loc=column([1, 2])),
                "sentences",
                "signatures-split trainval_loc att_splits.mat",
            ),
            ({"sent_splits.mat": b"damaged"}, "sentences", "mat-unreadable sent_splits.mat"),
            (sentences(att=np.ones((9, 8))), "attributes,sentences", "signatures-constant"),
            (sentences(att=np.full((9, 8), np.nan)), "sentences", "not-finite"),
        ],
    )
    def test_mistakes_are_explained(self, folder, files, wanted, refusal):
        with refused(refusal):
            load("xlsa17", root=folder(files), signatures=wanted)

    def test_weights_that_do_not_fit(self, folder):
        for wanted, weights in (("attributes", [1]), ("attributes,sentences", [1, -1]), ("sentences,attributes", [1])):
            with refused("signatures-weights"):
                load("xlsa17", root=folder(sentences()), signatures=wanted, signature_weights=weights)

    def test_data_with_nothing_to_choose_from(self):
        plain, _ = load("numbers-features")
        assert load("numbers-features", signatures="attributes")[0].fingerprint() == plain.fingerprint()
        with refused("signatures-unknown"):
            load("numbers-features", signatures="sentences")


class TestFeatures:
    def test_the_usual_file_comes_first(self, folder):
        root = folder({"a.mat": {**contents()["res101.mat"], "features": np.ones((2, N))}})
        assert load("xlsa17", root=root)[0].train.sample_shape == (4,)
        assert load("xlsa17", root=root, features="a.mat")[0].train.sample_shape == (2,)

    def test_the_only_file(self, folder):
        files = {"res101.mat": None, "mine.mat": contents()["res101.mat"], "other.mat": {"x": np.eye(2)}}
        problem, _ = load("xlsa17", root=folder(files))
        assert list(problem.source["files"]) == ["att_splits.mat", "mine.mat"]

    def test_a_path(self, folder, tmp_path, monkeypatch):
        root = folder()
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "res101.mat").rename(tmp_path / "elsewhere" / "mine.mat")
        monkeypatch.chdir(tmp_path)
        for path in ("elsewhere/mine.mat", "./elsewhere/mine.mat", tmp_path / "elsewhere/mine.mat"):
            problem, _ = load("xlsa17", root=root, features=path)
            assert list(problem.source["files"]) == ["att_splits.mat", "mine.mat"]

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint8])
    def test_of_any_type_become_float32(self, folder, dtype):
        problem, _ = load("xlsa17", root=folder(features=np.arange(2 * N).reshape(2, N).astype(dtype)))
        batch = problem.train[np.array([3, 0])]
        assert str(batch.dtype) == "torch.float32"
        first, second = (sorted(TRAINVAL | TEST_SEEN)[place] for place in (3, 0))
        assert batch.tolist() == [[first, N + first], [second, N + second]]

    def test_numbers_may_be_floating_point_and_lie_in_a_row(self, folder):
        expected, _ = load("xlsa17", root=folder())
        splits, labels = contents()["att_splits.mat"], contents()["res101.mat"]["labels"]
        turned = {k: splits[k].T.astype(float) for k in ("trainval_loc", "test_unseen_loc", "test_seen_loc")}
        problem, _ = load("xlsa17", root=folder(labels=labels.T.astype(float), allclasses_names=CLASSES, **turned))
        assert problem.fingerprint() == expected.fingerprint()

    def test_optional_variables_may_be_missing(self, folder):
        root = folder(image_files=None, test_seen_loc=None, original_att=None, train_loc=None)
        problem, _ = load("xlsa17", root=root)
        assert images(problem.train) == sorted(TRAINVAL | TEST_SEEN)

    def test_the_images_in_the_order_that_the_lists_refer_to(self, folder):
        files = contents()["res101.mat"]["image_files"]
        elsewhere = cell([path.replace("/BS/somebody/x", "C:\\data").replace("/", "\\") for path in files.ravel()])
        load("xlsa17", root=folder({"image_files.mat": {"image_files": elsewhere}}))
        with refused("images-order"):
            load("xlsa17", root=folder({"image_files.mat": {"image_files": files[::-1]}}))
        with refused("images-order"):
            load("xlsa17", root=folder({"image_files.mat": {"image_files": files[:-1]}}))

    def test_views_cost_no_copies(self, folder):
        problem, _ = load("xlsa17", root=folder())
        assert problem.train._inputs is problem.pool._inputs


class TestRecord:
    def test_the_same_files_give_the_same_record(self, folder):
        one, two = (load("xlsa17", root=folder())[0] for _ in range(2))
        assert one.fingerprint() == two.fingerprint()
        assert one.source["name"] == "xlsa17"
        assert str(folder()) not in str(one.source)
        assert all(len(digest) == 64 for digest in one.source["files"].values())

    def test_another_split_of_the_same_images_has_another_hash(self, folder):
        one, _ = load("xlsa17", root=folder(), train_on="trainval")
        two, _ = load(
            "xlsa17", root=folder(trainval_loc=column(sorted(TEST_SEEN)) + 1, test_seen_loc=None), train_on="trainval"
        )
        assert one.fingerprint()["split"] != two.fingerprint()["split"]


def replaced(array, place, value, dtype=np.float64):
    result = np.array(array, dtype=dtype)
    result.reshape(-1)[place] = value
    return result


SPLITS, FEATURES = contents()["att_splits.mat"], contents()["res101.mat"]
# What is changed, and what the message must say.
WRONG = {
    "no signatures": ({"att": None}, "mat-missing-key att_splits.mat allclasses_names"),
    "two lists missing": (
        {"trainval_loc": None, "test_unseen_loc": None},
        "mat-missing-key trainval_loc test_unseen_loc",
    ),
    "no labels": ({"labels": None}, "mat-missing-key res101.mat"),
    "labels from 0": ({"labels": FEATURES["labels"] - 1}, "mat-entry 0 1 8"),
    "a label too large": ({"labels": replaced(FEATURES["labels"], 4, 9)}, "mat-entry 5"),
    "a label that is no whole number": ({"labels": replaced(FEATURES["labels"], 4, 1.5)}, "mat-entry 5"),
    "a label that is no number": ({"labels": replaced(FEATURES["labels"], 4, np.nan)}, "mat-entry 5"),
    "labels in a table": ({"labels": np.ones((4, N // 4))}, "mat-shape"),
    "labels as text": ({"labels": cell(["x"] * N)}, "mat-shape"),
    "too few labels": ({"labels": FEATURES["labels"][:-1]}, "mat-shape 80 79"),
    "features transposed": ({"features": FEATURES["features"].T}, "mat-shape 4"),
    "features with NaN": ({"features": replaced(FEATURES["features"], 4, np.nan)}, "not-finite"),
    "features too large": ({"features": replaced(FEATURES["features"], 4, 1e300)}, "not-finite"),
    "complex features": (
        {"features": FEATURES["features"] * 1j},
        "mat-unreadable",
    ),
    "features as text": ({"features": cell(["x"])}, "mat-shape"),
    "features with three axes": ({"features": np.ones((2, 2, N))}, "mat-shape"),
    "sparse features": (
        {"features": csc_matrix(np.eye(N))},
        "mat-unreadable",
    ),
    "features without rows": ({"features": np.ones((0, N))}, "inputs-shape"),
    "too few file names": ({"image_files": FEATURES["image_files"][:-1]}, "mat-shape 79 image_files 80"),
    "file names that are numbers": ({"image_files": np.ones(N)}, "mat-shape image_files"),
    "names that are numbers": (
        {"allclasses_names": np.arange(8)},
        "mat-shape allclasses_names",
    ),
    "cells that are numbers": ({"allclasses_names": cell([1.0] * 8)}, "mat-unreadable allclasses_names"),
    "names twice": ({"allclasses_names": cell(["x", *CLASSES[1:-1], "x"])}, "class-twice x"),
    "too few signatures": ({"att": SPLITS["att"][:, :-1]}, "mat-shape 6 7 8"),
    "signatures with NaN": ({"att": replaced(SPLITS["att"], 4, np.nan)}, "not-finite"),
    "a signature of zeros": ({"att": SPLITS["att"] * (np.arange(8) != 2)}, "signature-zero"),
    "an index of 0": ({"trainval_loc": replaced(SPLITS["trainval_loc"], 0, 0)}, "mat-entry trainval_loc 1"),
    "an index too large": (
        {"test_unseen_loc": replaced(SPLITS["test_unseen_loc"], 0, 81)},
        "mat-entry 1 80",
    ),
    "an empty list": ({"trainval_loc": np.ones((0, 1))}, "split-empty trainval_loc"),
    "an image twice": ({"trainval_loc": np.tile(SPLITS["trainval_loc"], (2, 1))}, "split-repeats trainval_loc"),
    "test images in trainval": ({"trainval_loc": SPLITS["test_unseen_loc"]}, "split-overlap 30"),
    "seen test images in trainval": (
        {"test_seen_loc": SPLITS["trainval_loc"]},
        "split-overlap trainval_loc test_seen_loc 40",
    ),
    "a class on both sides": ({"labels": FEATURES["labels"][::-1]}, "split-clash trainval_loc test_unseen_loc"),
    "a stranger among the seen": (
        {"test_unseen_loc": SPLITS["test_unseen_loc"][:20], "test_seen_loc": SPLITS["test_unseen_loc"][20:]},
        "split-clash test_seen_loc trainval_loc",
    ),
}


@pytest.mark.parametrize(("changed", "refusal"), WRONG.values(), ids=list(WRONG))
def test_what_does_not_fit_together_is_explained(folder, changed, refusal):
    root = folder(**changed)
    with refused(refusal) as error:
        load("xlsa17", root=root)
    assert str(root) in str(error.value)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"split": "PS"}, "split-unknown PS"),
        ({"train_on": "everything"}, "data-option-value train_on everything all"),
        ({"seen_test": "random"}, "seen-test seen_test random gzsl"),
        ({"setting": "gszl"}, "unknown-name zsl gzsl"),
        (
            {"feature": "x.mat"},
            "data-option-unknown feature signature_weights",
        ),
        ({"features": "x.mat"}, "features-missing x.mat /x.mat"),
        ({"features": "./x.mat"}, "features-missing x.mat"),
        ({"features": "att_splits.mat"}, "mat-missing-key att_splits.mat"),
        ({"root": "nowhere"}, "splits-missing att_splits.mat"),
    ],
)
def test_options_that_cannot_be_are_explained(folder, options, refusal):
    with refused(refusal):
        load("xlsa17", **{"root": folder(), **options})


@pytest.mark.parametrize(
    ("changed", "options", "refusal"),
    [
        ({"original_att": None}, {"scale": "original"}, "signatures-unknown"),
        ({"original_att": np.ones((6, 7))}, {"scale": "original"}, "mat-shape original_att 6 7"),
        ({"test_seen_loc": None}, {"setting": "gzsl"}, "seen-test seen_test random"),
    ],
)
def test_options_that_these_files_do_not_allow(folder, changed, options, refusal):
    with refused(refusal):
        load("xlsa17", root=folder(**changed), **options)


def test_no_features_or_too_many(folder):
    root = folder({"res101.mat": None})
    with refused("features-missing"):
        load("xlsa17", root=root)
    folder({"res101.mat": None, "a.mat": FEATURES, "b.mat": FEATURES})
    with refused("features-missing"):
        load("xlsa17", root=root)


HDF5 = (
    b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116)
    + b"\0" * 8
    + b"\x00\x02IM"
    + b"\x89HDF\r\n\x1a\n"
    + b"\0" * 400
)


@pytest.mark.parametrize("name", ["att_splits.mat", "res101.mat", "other.mat", "image_files.mat"])
@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (HDF5, "mat-hdf5"),
        (b"", "mat-unreadable"),
        (b"hello, this is no such file, whatever its name says" * 20, "mat-unreadable"),
        (b"\0" * 1000, "mat-unreadable"),
    ],
    ids=["hdf5", "empty", "text", "zeros"],
)
def test_files_that_are_something_else(folder, name, content, refusal):
    files = {name: content} if name != "other.mat" else {"res101.mat": None, name: content}
    root = folder(files)
    with refused(refusal):
        load("xlsa17", root=root)


@contextmanager
def suppress_pren_errors():
    """Let these pass, and nothing else."""
    messages = []
    try:
        yield messages
    except PrenError as error:
        messages.append(str(error))


@pytest.mark.parametrize("name", ["att_splits.mat", "res101.mat"])
def test_damaged_files_are_never_a_surprise(folder, name):
    root = folder()
    good = (root / name).read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for attempt in range(60):
        content = bytearray(good)
        if attempt % 2:
            content = content[: rng.integers(len(content))]
        else:
            for place in rng.integers(len(content), size=3):
                content[place] = rng.integers(256)
        (root / name).write_bytes(bytes(content))
        with suppress_pren_errors() as messages:
            load("xlsa17", root=root)
        assert all(str(root) in message for message in messages)
        refused += len(messages)
    assert refused > 30


def test_a_folder_in_place_of_a_file(folder):
    root = folder({"res101.mat": None})
    (root / "res101.mat").mkdir()
    with refused("features-missing"):
        load("xlsa17", root=root, features="res101.mat")
    (root / "att_splits.mat").unlink()
    (root / "att_splits.mat").mkdir()
    with refused("file-missing"):
        load("xlsa17", root=root)


class TestFoldsToChooseParametersOn:
    def test_those_that_are_there(self, folder):
        assert own_folds("xlsa17", folder()) == (1,)
        again = {"trainclasses2.txt": f"{CLASSES[0]}\n", "valclasses2.txt": f"{CLASSES[1]}\n"}
        assert own_folds("xlsa17", folder(again)) == (1, 2)
        assert own_folds("xlsa17", folder(), split="none") == ()

    @pytest.mark.parametrize("options", [{}, {"train_on": "all", "seen_test": "fixed"}], ids=str)
    def test_the_splits_own_are_taken_whatever_the_test_is_like(self, folder, options):
        root = str(folder())
        config = RunConfig(data="xlsa17", root=root, setting="gzsl", options=options, method="eszsl")
        ((problem, answers),) = open_folds(config)
        fold, fold_answers = load("xlsa17", root=root, setting="gzsl", fold=1)
        assert problem.fingerprint() == fold.fingerprint()
        assert answers.labels.tolist() == fold_answers.labels.tolist()
        assert not set(CLASSES[5:]) & set(problem.classes.names)

    def test_without_lists_of_classes_they_are_drawn(self, folder):
        path = folder()
        (path / "valclasses1.txt").unlink()
        folds = open_folds(RunConfig(data="xlsa17", root=str(path), method="eszsl"))
        assert len(folds) == 2
        assert all(set(problem.classes.names) == set(CLASSES[:5]) for problem, _ in folds)
