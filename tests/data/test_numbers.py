"""The embedded data set is what it says: balanced, disjoint, deterministic, shifted."""

from collections import Counter

import numpy as np
import pytest
from refusals import refused

from pren.data import numbers
from pren.data.numbers import NO_SHIFT, Shift, load_numbers, split_classes
from pren.problem.inputs import Inputs


def pixels(inputs: Inputs) -> np.ndarray:
    return inputs[np.arange(len(inputs))].numpy()


def names_of(problem, which):
    return [name for name, chosen in zip(problem.classes.names, which, strict=True) if chosen]


def test_test_split_has_80_seen_and_20_unseen_classes_with_their_digits_as_signatures():
    problem, answers = load_numbers()
    assert problem.classes.names == tuple(f"{n:02d}" for n in range(100))
    assert problem.classes.seen.sum() == 80
    assert problem.classes.signatures.shape == (100, 20)
    for name, signature in zip(problem.classes.names, problem.classes.signatures, strict=True):
        assert np.flatnonzero(signature).tolist() == [int(name[0]), 10 + int(name[1])]
    assert np.bincount(problem.labels, minlength=100).tolist() == [30 * seen for seen in problem.classes.seen]
    assert np.bincount(answers.labels, minlength=100).tolist() == [30 * unseen for unseen in problem.classes.unseen]


@pytest.mark.parametrize("split", ["test", "val"])
def test_every_digit_occurs_twice_in_each_place_among_the_unseen(split):
    _, unseen = split_classes(split)
    assert len(set(unseen)) == 20
    for place in (0, 1):
        assert Counter(name[place] for name in unseen) == dict.fromkeys("0123456789", 2)


def test_val_split_knows_nothing_of_the_test_classes():
    test, _ = load_numbers(per_class=1, pool_per_class=1)
    val, answers = load_numbers("val", per_class=1, pool_per_class=1)
    test_classes = set(names_of(test, test.classes.unseen))
    assert not test_classes & set(val.classes.names)
    assert set(val.classes.names) == set(names_of(test, test.classes.seen))
    assert val.classes.signatures.shape == (80, 20)
    assert val.classes.seen.sum() == 60
    assert set(answers.labels) == set(np.flatnonzero(val.classes.unseen))


@pytest.mark.parametrize("split", ["test", "val"])
def test_training_and_pool_are_written_with_different_handwritten_digits(split, monkeypatch):
    names, _ = split_classes(split)
    used = {
        half: {s for n in names for s in numbers._draw(half, split, n, 30).samples.flat} for half in ("train", "pool")
    }
    assert min(len(samples) for samples in used.values()) > 800  # both halves are really made use of
    assert not used["train"] & used["pool"]

    # The images agree: take away every digit that training does not use, and training is the same, the pool is empty.
    before, _ = load_numbers(split, "gzsl", shift=NO_SHIFT)
    images, shown = numbers._digits()
    only_training = images.copy()
    only_training[[s for s in range(len(images)) if s not in used["train"]]] = 0
    monkeypatch.setattr(numbers, "_digits", lambda: (only_training, shown))
    after, _ = load_numbers(split, "gzsl", shift=NO_SHIFT)
    assert np.array_equal(pixels(before.train), pixels(after.train))
    assert pixels(before.pool).reshape(len(before.pool), -1).max(axis=1).min() > 0.5
    assert pixels(after.pool).max() == 0


def test_digits_stand_where_the_class_name_says():
    for name in ("07", "70"):
        samples = numbers._draw("train", "test", name, 20).samples
        assert (numbers._digits()[1][samples] == [int(digit) for digit in name]).all()
    # Draw 1 and 0 side by side: the middle of a zero is empty, that of a one is not.
    one_zero = numbers._images("train", "test", "10", 50, NO_SHIFT)[:, 0].mean(axis=0)
    assert one_zero[7:9, 8:10].mean() > 2 * one_zero[7:9, 22:25].mean()


def test_same_bytes_every_time():
    first, answers = load_numbers(setting="gzsl")
    numbers._digits.cache_clear()
    numbers._bank.cache_clear()
    np.random.seed(1)  # noqa: NPY002  the global generator must have no part in it
    again, answers_again = load_numbers(setting="gzsl")
    assert first.fingerprint() == again.fingerprint()
    assert np.array_equal(answers.labels, answers_again.labels)


def test_images_are_float32_from_0_to_1_in_256_steps():
    problem, _ = load_numbers(per_class=2, pool_per_class=2)
    assert problem.train.sample_shape == (1, 16, 32)
    assert problem.backbone == "small-cnn"
    for inputs in (problem.train, problem.pool):
        values = pixels(inputs)
        assert values.dtype == np.float32
        assert values.min() == 0
        assert 0.9 < values.max() <= 1
        assert np.array_equal(values, np.rint(values * 255).astype(np.float32) / np.float32(255))


def test_features_are_the_same_pixels_flat():
    images, _ = load_numbers(per_class=2, pool_per_class=2)
    features, _ = load_numbers(form="features", per_class=2, pool_per_class=2)
    assert features.backbone is None
    for one, other in ((images.train, features.train), (images.pool, features.pool)):
        assert np.array_equal(pixels(one).reshape(len(one), 512), pixels(other))


def test_order_of_the_pool_tells_nothing():
    _, answers = load_numbers()
    neighbours = (answers.labels[1:] == answers.labels[:-1]).mean()
    assert neighbours < 0.1  # by chance 1 in 20; sorted 19 in 20
    assert abs(np.corrcoef(np.arange(len(answers.labels)), answers.labels)[0, 1]) < 0.15


def test_gzsl_pool_also_holds_new_shifted_images_of_the_seen_classes():
    zsl, zsl_answers = load_numbers()
    gzsl, answers = load_numbers(setting="gzsl")
    expected = np.where(gzsl.classes.seen, 8, 30)
    assert gzsl.setting == "gzsl"
    assert np.bincount(answers.labels, minlength=100).tolist() == expected.tolist()
    seen = gzsl.classes.seen[answers.labels]
    assert abs(np.corrcoef(np.arange(len(seen)), seen)[0, 1]) < 0.15  # and they are mixed in
    # The unseen images are those of ZSL, with the right answers.
    by_bytes = {image.tobytes(): label for image, label in zip(pixels(gzsl.pool), answers.labels, strict=True)}
    for image, label in zip(pixels(zsl.pool), zsl_answers.labels, strict=True):
        assert by_bytes[image.tobytes()] == label
    # Every one of them is shifted, the seen ones as well.
    plain, _ = load_numbers(setting="gzsl", shift=NO_SHIFT)
    assert (np.abs(pixels(plain.pool) - pixels(gzsl.pool)).max(axis=(1, 2, 3)) > 0.1).all()


def test_val_pool_images_do_not_come_back_in_the_gzsl_pool_of_test():
    val, _ = load_numbers("val", shift=NO_SHIFT)  # noise would make any two images differ
    test, _ = load_numbers("test", "gzsl", shift=NO_SHIFT)
    assert not {i.tobytes() for i in pixels(val.pool)} & {i.tobytes() for i in pixels(test.pool)}


@pytest.mark.parametrize("part", ["slant", "blur", "noise"])
def test_each_part_of_the_shift_changes_the_pool_and_nothing_else(part):
    plain, answers = load_numbers(shift=NO_SHIFT, per_class=2, pool_per_class=5)
    strength = Shift(**{**vars(NO_SHIFT), part: 0.5})
    shifted, same_answers = load_numbers(shift=strength, per_class=2, pool_per_class=5)
    assert np.array_equal(pixels(plain.train), pixels(shifted.train))
    assert np.array_equal(answers.labels, same_answers.labels)
    assert np.abs(pixels(plain.pool) - pixels(shifted.pool)).mean() > 0.005
    assert shifted.source["shift"][part] == 0.5


def test_slant_leans_to_the_right():
    def lean(shift):
        image = numbers._images("pool", "test", "11", 60, shift)[:, 0].mean(axis=0)
        columns = np.arange(32)
        top, bottom = (rows.sum(axis=0) @ columns / rows.sum() for rows in (image[2:6], image[10:14]))
        return top - bottom

    assert lean(Shift(0.4, 0, 0)) - lean(NO_SHIFT) == pytest.approx(0.4 * 8, abs=0.8)


def test_source_records_what_was_made():
    problem, _ = load_numbers("val", form="features", per_class=1, pool_per_class=1)
    signatures = problem.source.pop("signatures")
    assert signatures.items() >= {"kind": "attributes", "coding": "one-hot tens and units", "width": 20}.items()
    assert problem.source == {
        "name": "numbers",
        "split": "val",
        "form": "features",
        "shift": vars(Shift()),
    }


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"split": "train"}, "unknown-name train"),
        ({"form": "image"}, "unknown-name image"),
        ({"setting": "zls"}, "unknown-name"),
        ({"per_class": 0}, "too-few per_class 1 0"),
        ({"pool_per_class": -1}, "too-few pool_per_class 1"),
    ],
)
def test_bad_arguments(arguments, refusal):
    with refused(refusal):
        load_numbers(**{"per_class": 1, "pool_per_class": 1, **arguments})


@pytest.mark.parametrize("values", [{"blur": -1.0}, {"noise": -0.1}, {"slant": float("nan")}, {"noise": float("inf")}])
def test_bad_shift(values):
    with refused("shift-value"):
        Shift(**values)
