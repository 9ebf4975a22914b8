"""A problem: what fits together is taken, what does not is explained, and no answer is in it."""

import dataclasses
import inspect
import logging

import numpy as np
import pytest
import torch
from refusals import refused

from pren.methods.preparation.whitening import Whitened
from pren.methods.rivals.eszsl import ESZSL
from pren.problem import UNKNOWN, Answers, ClassTable, Problem, candidates_of, label_indices
from pren.problem.inputs import ArrayInputs

NAMES = ["cat", "ape", "dog", "bee"]
RNG = np.random.default_rng(0)
FEATURES, POOL = RNG.random((6, 5), dtype=np.float32), RNG.random((17, 5), dtype=np.float32)
SIGNATURES = RNG.random((4, 3))
LABELS = np.array([0, 0, 2, 2, 0, 2])
ARRAYS = {"features": FEATURES, "labels": LABELS, "signatures": SIGNATURES, "pool": POOL, "class_names": NAMES}


def problem(**changes):
    return Problem.from_arrays(**(ARRAYS | changes))


def changed(array, place, value):
    array = np.array(array)
    array[place] = value
    return array


# --- what fits


def test_a_problem_from_arrays():
    made = problem(setting="gzsl", backbone=None, source={"file": "x.npz"})
    assert np.array_equal(made.train[np.arange(6)].numpy(), FEATURES)
    assert np.array_equal(made.pool[np.arange(17)].numpy(), POOL)
    assert made.labels.tolist() == LABELS.tolist()
    assert made.labels.dtype == np.int64
    assert made.classes.names == tuple(NAMES)
    assert made.classes.seen.tolist() == [True, False, True, False]
    assert made.classes.unseen.tolist() == [False, True, False, True]
    assert len(made.classes) == 4
    assert made.setting == "gzsl"
    assert made.source["file"] == "x.npz"


@pytest.mark.parametrize("convert", [torch.from_numpy, np.ndarray.tolist, np.asfortranarray])
def test_numpy_torch_and_lists_make_the_same_problem(convert):
    arrays = {key: convert(np.asarray(value)) for key, value in ARRAYS.items() if key != "class_names"}
    made = problem(**arrays)
    assert np.array_equal(made.train[np.arange(6)].numpy(), FEATURES)
    assert made.labels.tolist() == LABELS.tolist()
    assert np.array_equal(made.classes.signatures, problem().classes.signatures)


@pytest.mark.parametrize(
    "labels", [["cat", "cat", "dog", "dog", "cat", "dog"], np.array(NAMES)[LABELS], LABELS.astype(np.uint8)]
)
def test_labels_are_names_or_rows(labels):
    made = problem(labels=labels)
    assert made.labels.tolist() == LABELS.tolist()
    assert made.labels.dtype == np.int64


def test_classes_without_names_are_numbered_so_that_they_sort():
    signatures = np.random.default_rng(0).random((12, 3))
    names = problem(signatures=signatures, class_names=None).classes.names
    assert names[0] == "class 00"
    assert names[11] == "class 11"
    assert sorted(names) == list(names)


def test_names_may_be_any_sequence():
    assert problem(class_names=np.array(NAMES)).classes.names == tuple(NAMES)
    assert problem(class_names=(10, 2, 3, 4), labels=["10", "10", "2", "2", "10", "2"]).labels.tolist() == [
        0,
        0,
        1,
        1,
        0,
        1,
    ]


def test_inputs_are_taken_as_they_are():
    pool = ArrayInputs(POOL)
    assert problem(pool=pool).pool is pool


def test_signatures_have_unit_length_unless_told_otherwise():
    scaled = 100 * SIGNATURES
    made = problem(signatures=scaled)
    for row, original in zip(made.classes.signatures, scaled, strict=True):
        assert np.allclose(row, original / np.sqrt(sum(x * x for x in original)))
    assert made.classes.normalised
    raw = problem(signatures=scaled, normalise=False)
    assert np.array_equal(raw.classes.signatures, scaled)
    assert not raw.classes.normalised


def test_binary_signatures_are_numbers():
    made = problem(signatures=np.eye(4, dtype=bool))
    assert made.classes.signatures.dtype == np.float64
    assert np.array_equal(made.classes.signatures, np.eye(4))


def test_the_arrays_of_the_user_are_left_alone():
    before = {key: np.array(value) for key, value in ARRAYS.items()}
    problem()
    assert all(np.array_equal(before[key], ARRAYS[key]) for key in ARRAYS)


def test_classes_with_the_same_signature_are_warned_of(caplog):
    with caplog.at_level(logging.WARNING):
        problem(signatures=[[1, 2], [3, 1], [1, 2], [1, 1]])
    (record,) = caplog.records
    assert record.getMessage() == "Classes 'cat' and 'dog' have the same signature: no method can tell them apart."


def test_signatures_that_become_the_same_are_warned_of(caplog):
    with caplog.at_level(logging.WARNING):
        problem(signatures=[[1, 2], [3, 1], [2, 4], [1, 1]])  # normalised, [1, 2] and [2, 4] are one
    assert "'cat' and 'dog'" in caplog.text


def test_different_signatures_are_not_warned_of(caplog):
    problem()
    problem(signatures=[[1, 2], [3, 1], [2, 4], [1, 1]], normalise=False)
    assert not caplog.records


@pytest.mark.parametrize(("which", "mask"), [("unseen", [0, 1, 0, 1]), ("seen", [1, 0, 1, 0]), ("all", [1, 1, 1, 1])])
def test_among(which, mask):
    assert problem().classes.among(which).tolist() == [bool(x) for x in mask]


def test_candidates_of_a_setting():
    assert candidates_of("zsl") == "unseen"
    assert candidates_of("gzsl") == "all"


# --- what does not fit


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"setting": "both"}, "unknown-name zsl gzsl both"),
        ({"pool": POOL[:, :4]}, "inputs-shape 5 4"),
        ({"pool": POOL[:0]}, "pool-empty"),
        ({"labels": LABELS[:5]}, "labels-shape 6 5"),
        ({"labels": LABELS[:, None]}, "labels-shape 6 1"),
        ({"labels": changed(LABELS, 3, 4)}, "label-unknown 4 3 0"),
        ({"labels": changed(LABELS, 5, -1)}, "label-unknown 1 5"),
        ({"labels": LABELS / 2}, "labels-kind"),
        ({"labels": LABELS > 0}, "labels-kind"),
        ({"labels": ["cat", "cow", "dog", "dog", "cat", "dog"]}, "label-unknown cow 1"),
        ({"labels": [[0], [0, 2]]}, "inputs-kind"),
        ({"labels": None}, "inputs-kind"),
        ({"labels": [0, 1, 2, 3, 0, 1]}, "no-unseen-class"),
        ({"labels": LABELS[:0], "features": FEATURES[:0]}, "no-seen-class"),
        ({"class_names": NAMES[:3]}, "class-count 3 4"),
        ({"class_names": [*NAMES, "eel"]}, "class-count 5 4"),
        ({"class_names": ["cat", "ape", "cat", "bee"]}, "class-twice cat 0 2"),
        ({"class_names": ["cat", " ", "dog", "bee"]}, "class-name 1"),
        ({"class_names": ["cat", "a\x1bb", "dog", "bee"]}, "class-name 1 a\\x1bb"),
        ({"class_names": ["cat", "../x", "dog", "bee"]}, "class-name 1 ../x"),
        (
            {"signatures": SIGNATURES[:, 0]},
            "signatures-kind 4",
        ),
        ({"signatures": SIGNATURES[:, :0]}, "signatures-kind 4 0"),
        ({"signatures": 3.0}, "signatures-kind"),
        ({"signatures": [["a", "b"]] * 4}, "signatures-kind"),
        ({"signatures": SIGNATURES * 1j}, "signatures-kind"),
        ({"signatures": [[1, 2], [3]]}, "inputs-kind"),
        ({"signatures": changed(SIGNATURES, (3, 1), np.nan)}, "not-finite bee"),
        ({"signatures": changed(SIGNATURES, (1, 2), np.inf)}, "not-finite ape"),
        ({"signatures": changed(SIGNATURES, 2, 0)}, "signature-zero dog"),
        ({"features": changed(FEATURES, (4, 0), np.nan)}, "not-finite 4"),
        ({"pool": changed(POOL, (16, 4), np.inf)}, "not-finite 16"),
        ({"features": FEATURES[0]}, "inputs-shape"),
        ({"pool": POOL.astype(str)}, "inputs-kind"),
        ({"pool": None}, "inputs-kind"),
    ],
)
def test_what_does_not_fit_is_explained(changes, refusal):
    with refused(refusal):
        problem(**changes)


def test_labels_of_an_empty_table():
    with refused("signatures-kind"):
        problem(labels=np.array([], dtype=int), features=FEATURES[:0], signatures=np.empty((0, 3)), class_names=None)


def test_unknown_candidates_are_refused():
    with refused("unknown-name"):
        problem().classes.among("some")


def test_label_indices_stand_alone():
    assert label_indices(["b", "a", "b"], ["a", "b"]).tolist() == [1, 0, 1]
    assert label_indices(torch.tensor([1, 0]), ["a", "b"]).tolist() == [1, 0]


# --- what is learned once


def test_what_is_learned_once_is_shared_by_all_who_ask_a_problem():
    made, calls = problem(), []
    first = made.once("mean", lambda: calls.append("mean") or FEATURES.mean(axis=0))
    assert made.once("mean", lambda: calls.append("again")) is first
    assert made.once("other", lambda: calls.append("other")) is None
    assert made.once("other", lambda: calls.append("other again")) is None
    assert calls == ["mean", "other"]


def test_what_could_not_be_learned_is_tried_again():
    made = problem()
    with pytest.raises(ZeroDivisionError):
        made.once("ratio", lambda: 1 / 0)
    assert made.once("ratio", lambda: 7) == 7


def test_another_problem_learns_anew():
    made = problem()
    made.once("mean", lambda: 1)
    changed = dataclasses.replace(made, pool=ArrayInputs(POOL[:3]))
    assert changed.once("mean", lambda: 2) == 2
    assert made.once("mean", lambda: 3) == 1
    assert problem().once("mean", lambda: 4) == 4
    assert made.fingerprint() == problem().fingerprint()
    assert "mean" not in repr(made)


def test_methods_share_their_preparation(monkeypatch):
    made, fit, calls = problem(), Whitened.fit, []
    monkeypatch.setattr(Whitened, "fit", lambda given: calls.append(given) or fit(given))
    one, two = (ESZSL(features="whitened", feature_reg=reg).fit(made) for reg in (1.0, 2.0))
    assert one.preparation_ is two.preparation_
    assert calls == [made]
    other = ESZSL(features="whitened").fit(dataclasses.replace(made, pool=ArrayInputs(POOL[:3])))
    assert len(calls) == 2
    assert not np.allclose(other.preparation_.arrays["centre"], one.preparation_.arrays["centre"])
    assert ESZSL(features="standard").fit(made).preparation_ is not one.preparation_


# --- no answers


def test_a_problem_has_no_place_for_the_answers():
    fields = {field.name for field in dataclasses.fields(Problem)}
    known = "train labels pool classes setting backbone extractor tail source given recipe _learned"
    assert fields == set(known.split())
    assert problem()._learned == {}, "a shelf for what methods learn from the rest"
    assert problem().given is None, "what a person has given on purpose, and nothing else"
    parameters = set(inspect.signature(Problem.from_arrays).parameters)
    assert parameters == set(
        "features labels signatures pool class_names setting normalise backbone source attributes".split()
    )


def test_nothing_in_a_problem_but_the_pool_itself_has_one_entry_per_pool_image():
    made = problem()
    assert [name for name in public(made) if one_per_pool_image(getattr(made, name))] == ["pool"]
    assert [name for name in public(made.classes) if one_per_pool_image(getattr(made.classes, name))] == []
    assert [name for name in public(made.pool) if one_per_pool_image(getattr(made.pool, name))] == []
    known = ["digest", "learned", "photographs", "prepared", "relearned", "sample_shape", "select"]
    assert public(made.pool) == known
    assert not any(one_per_pool_image(value) for value in made.source.values())


def public(thing):
    return [name for name in dir(thing) if not name.startswith("_")]


def one_per_pool_image(value):
    return hasattr(value, "__len__") and not isinstance(value, type) and len(value) == len(POOL)


def test_a_problem_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem().labels = LABELS


# --- fingerprints


def hashes(**changes):
    prints = problem(**changes).fingerprint()
    return prints["data"], prints["split"]


@pytest.mark.parametrize(
    ("changes", "data", "split"),
    [
        ({"features": changed(FEATURES, (5, 4), 0)}, True, False),
        ({"pool": changed(POOL, (16, 0), 0)}, True, False),
        ({"pool": POOL[::-1]}, True, False),
        ({"pool": POOL[:16]}, True, True),
        ({"signatures": changed(SIGNATURES, (3, 2), 0)}, True, False),
        ({"normalise": False}, True, False),
        ({"labels": LABELS[::-1]}, False, True),
        ({"labels": changed(LABELS, 0, 2)}, False, True),
        ({"labels": changed(LABELS, 0, 1)}, False, True),  # another class is seen
        ({"setting": "gzsl"}, False, True),
    ],
)
def test_what_the_fingerprint_covers(changes, data, split):
    before, after = hashes(), hashes(**changes)
    assert (before[0] != after[0]) == data
    assert (before[1] != after[1]) == split


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"source": {"file": "elsewhere"}},
        {"labels": np.array(NAMES)[LABELS]},
        {"labels": LABELS.astype(np.int32)},
        {"features": torch.from_numpy(FEATURES)},
        {"pool": np.asfortranarray(POOL)},
    ],
    ids=["again", "source", "names", "type of labels", "torch", "layout"],
)
def test_what_the_fingerprint_does_not_depend_on(changes):
    assert hashes() == hashes(**changes)


def test_a_file_has_the_fingerprint_of_its_content(tmp_path):
    np.save(tmp_path / "pool.npy", POOL)
    assert hashes(pool=np.load(tmp_path / "pool.npy", mmap_mode="r")) == hashes()


@pytest.mark.parametrize("part", ["data", "split"])
def test_reordering_the_classes_leaves_the_fingerprint(part):
    order = np.array([2, 0, 3, 1])
    names = [NAMES[row] for row in order]
    moved = problem(signatures=SIGNATURES[order], class_names=names, labels=np.array(NAMES)[LABELS])
    assert moved.labels.tolist() != LABELS.tolist()
    assert moved.fingerprint()[part] == problem().fingerprint()[part]


def test_a_class_that_counts_as_seen_changes_the_split():
    made = problem()
    seen = np.array([True, True, True, False])  # 'ape' too, although it has no labelled image
    other = dataclasses.replace(made, classes=ClassTable.build(NAMES, SIGNATURES, seen))
    assert other.fingerprint()["data"] == made.fingerprint()["data"]
    assert other.fingerprint()["split"] != made.fingerprint()["split"]


def test_a_class_with_another_name_changes_the_fingerprint():
    assert hashes(class_names=["cow", "ape", "dog", "bee"]) != hashes()


def test_a_signature_that_goes_to_another_class_changes_the_fingerprint():
    # 'ape' and 'bee', both unseen, swap their names: the table's rows and the labels stay as they are.
    assert hashes(class_names=["cat", "bee", "dog", "ape"]) != hashes()


def test_fingerprints_are_short_and_made_of_text():
    prints = problem().fingerprint()
    assert set(prints) == {"data", "split"}
    assert all(len(value) == 16 and int(value, 16) >= 0 for value in prints.values())


def test_a_table_can_be_built_by_hand():
    table = ClassTable.build(["b", "a"], [[3.0, 4.0], [1.0, 0.0]], np.array([1, 0]))
    assert table.signatures.tolist() == [[0.6, 0.8], [1.0, 0.0]]
    assert table.seen.dtype == bool


def test_every_answer_has_a_name_or_none_has():
    assert Answers(np.array([1, 0])).names is None
    assert Answers(np.array([1, 0]), ("a.jpg", "b.jpg")).names == ("a.jpg", "b.jpg")
    with refused("answers-shape"):
        Answers(np.array([1, 0]), ("a.jpg",))


def test_they_are_shown_in_a_line_each():
    problem = Problem.from_arrays(np.zeros((4, 5)), [0, 1, 1, 0], np.eye(3), np.zeros((7, 5)), setting="gzsl")
    assert repr(problem.classes) == "ClassTable(2 seen and 1 unseen classes, 3 attributes)"
    assert str(problem) == (
        "Problem(gzsl, 4 labelled, 7 in the pool, 2 seen and 1 unseen classes, 3 attributes, ArrayInputs of shape (5,))"
    )
    answers = Answers(np.array([2, -1, 2]), ("a", "b", "c")).without([(0, "it is empty")])
    assert repr(answers) == "Answers(1 of 2 known, 1 files unreadable)"
    assert answers.names == ("b", "c")


# --- labels that a person has given to images of the pool


def given(*pairs):
    labels = np.full(len(POOL), UNKNOWN)
    for place, row in pairs:
        labels[place] = row
    return labels


def test_given_labels_are_part_of_the_split():
    made = problem()
    one, other = (dataclasses.replace(made, given=given((3, row))) for row in (1, 3))
    assert len({part.fingerprint()["split"] for part in (made, one, other)}) == 3
    assert len({part.fingerprint()["data"] for part in (made, one, other)}) == 1


@pytest.mark.parametrize(
    ("labels", "setting", "refusal"),
    [
        (given()[1:], "zsl", "given-shape 17"),
        (given((0, 4)), "gzsl", "given-unknown"),
        (given((0, -2)), "gzsl", "given-unknown"),
        (given((0, 0)), "zsl", "given-unknown"),  # a seen class
    ],
)
def test_given_labels_that_cannot_be_are_refused(labels, setting, refusal):
    with refused(refusal):
        dataclasses.replace(problem(setting=setting), given=labels)


def test_a_seen_class_can_be_given_where_it_is_a_candidate():
    assert dataclasses.replace(problem(setting="gzsl"), given=given((0, 0))).given[0] == 0


def test_the_pool_is_divided_by_what_was_given():
    made = problem()
    everybody = list(range(len(made.pool)))
    places, labels = made.decided()
    assert (len(places), len(labels), made.undecided().tolist()) == (0, 0, everybody)
    some = dataclasses.replace(made, given=given((4, 1), (2, 3)))
    places, labels = some.decided()
    assert (places.tolist(), labels.tolist()) == ([2, 4], [3, 1])
    assert some.undecided().tolist() == [place for place in everybody if place not in (2, 4)]
    whole = dataclasses.replace(made, given=np.full(len(everybody), 1))
    assert whole.undecided().tolist() == everybody, "nobody has to learn from an empty pool"
