"""The figures against plain loops, and against what is easy to get wrong in them."""

import json
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused
from sklearn.metrics import balanced_accuracy_score

from pren.evaluation import Metrics, evaluate_scores
from pren.problem import UNKNOWN, Answers, ClassTable, Setting


def table(seen: list[bool]) -> ClassTable:
    names = [f"{('ox', 'cat', 'bee')[i % 3]} {i}" for i in range(len(seen))]  # not in alphabetical order
    return ClassTable.build(names, np.eye(len(seen)), np.array(seen))


def answers(*labels: int) -> Answers:
    return Answers(np.array(labels, dtype=np.int64))


def rows(*indices: int) -> NDArray[np.int64]:
    return np.array(indices, dtype=np.int64)


def evaluate_predictions(
    predicted: NDArray[np.int64], known: Answers, classes: ClassTable, setting: Setting
) -> Metrics:
    """Of scores that lead to these predictions."""
    return evaluate_scores(np.eye(len(classes))[predicted], known, classes, setting)


FOUR = table([True, True, False, False])


class Case(NamedTuple):
    """Labels and predictions that can come up; at least one label is known."""

    classes: ClassTable
    setting: Setting
    labels: list[int]
    predicted: list[int]

    def evaluate(self) -> Metrics:
        return evaluate_predictions(rows(*self.predicted), answers(*self.labels), self.classes, self.setting)

    def scores(self) -> NDArray[np.float64]:
        """Scores without ties that lead to the predictions; in ZSL the seen classes would win if they were asked."""
        height = np.random.default_rng(0).random((len(self.labels), len(self.classes)))
        height[np.arange(len(self.labels)), self.predicted] = 2
        if self.setting == "zsl":
            height[:, self.classes.seen] += 3
        return height


@st.composite
def cases(draw: st.DrawFn) -> Case:
    seen = draw(st.lists(st.booleans(), min_size=2, max_size=6).filter(lambda s: any(s) and not all(s)))
    setting: Setting = draw(st.sampled_from(["zsl", "gzsl"]))
    candidates = [c for c, is_seen in enumerate(seen) if setting == "gzsl" or not is_seen]
    one = st.sampled_from(candidates)
    labels = draw(st.lists(one | st.just(UNKNOWN), min_size=1, max_size=25).filter(lambda ls: set(ls) != {UNKNOWN}))
    predicted = [draw(one) for _ in labels]
    return Case(table(seen), setting, labels, predicted)


def slow_top1(case: Case, among: set[int]) -> Fraction | None:
    """Exactly, one class after the other."""
    total, present = Fraction(0), 0
    for c in sorted(among):
        images = correct = 0
        for label, prediction in zip(case.labels, case.predicted, strict=True):
            if label == c:
                images += 1
                correct += prediction == c
        if images:
            total += Fraction(correct, images)
            present += 1
    return total / present if present else None


def same(figure: float | None, exact: Fraction | None) -> bool:
    if figure is None or exact is None:
        return figure is None and exact is None
    return figure == pytest.approx(float(exact), rel=1e-12)


@given(cases())
def test_top1_and_macc_match_plain_loops(case: Case) -> None:
    metrics = case.evaluate()
    correct = images = 0
    for label, prediction in zip(case.labels, case.predicted, strict=True):
        images += label != UNKNOWN
        correct += label == prediction
    assert metrics.setting == case.setting
    assert metrics.images == images
    assert metrics.unknown == len(case.labels) - images
    assert same(metrics.macc, Fraction(correct, images))
    assert same(metrics.top1, slow_top1(case, set(range(len(case.classes)))))


@given(cases())
def test_u_s_and_h_match_plain_loops(case: Case) -> None:
    metrics = case.evaluate()
    u = s = h = None
    if case.setting == "gzsl":
        u = slow_top1(case, {c for c, seen in enumerate(case.classes.seen) if not seen})
        s = slow_top1(case, {c for c, seen in enumerate(case.classes.seen) if seen})
        if u is not None and s is not None:
            h = 2 * u * s / (u + s) if u + s else Fraction(0)
    assert same(metrics.u, u)
    assert same(metrics.s, s)
    assert same(metrics.h, h)


@given(cases())
def test_per_class_rows_match_plain_loops(case: Case) -> None:
    expected = []
    for c, (name, seen) in enumerate(zip(case.classes.names, case.classes.seen.tolist(), strict=True)):
        if case.setting == "zsl" and seen:
            continue
        own = [prediction for label, prediction in zip(case.labels, case.predicted, strict=True) if label == c]
        accuracy = own.count(c) / len(own) if own else None
        expected.append((name, seen, len(own), own.count(c), accuracy))
    assert [(r.name, r.seen, r.images, r.correct, r.accuracy) for r in case.evaluate().per_class] == expected


@given(cases())
def test_confusion_rows_match_plain_loops(case: Case) -> None:
    count = Counter(
        (case.classes.names[label], case.classes.names[prediction])
        for label, prediction in zip(case.labels, case.predicted, strict=True)
        if label != UNKNOWN
    )
    confusion = case.evaluate().confusion
    assert {(cell.true, cell.predicted): cell.count for cell in confusion} == count
    assert len(confusion) == len(count)
    order = [(-cell.count, cell.true, cell.predicted) for cell in confusion]
    assert order == sorted(order)


@given(cases())
def test_scores_give_the_same_as_the_predictions_they_lead_to(case: Case) -> None:
    metrics = evaluate_scores(case.scores(), answers(*case.labels), case.classes, case.setting)
    other = {"ausuc": case.evaluate().ausuc}  # which depends on more than the predictions
    assert metrics.model_copy(update=other) == case.evaluate()


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_classes_changes_nothing(case: Case, random: object) -> None:
    order = list(range(len(case.classes)))
    random.shuffle(order)  # type: ignore[attr-defined]
    old = case.classes
    classes = ClassTable(tuple(old.names[c] for c in order), old.signatures[order], old.seen[order], old.normalised)
    labels = [UNKNOWN if label == UNKNOWN else order.index(label) for label in case.labels]
    before = evaluate_scores(case.scores(), answers(*case.labels), old, case.setting)
    after = evaluate_scores(case.scores()[:, order], answers(*labels), classes, case.setting)
    candidates = {row.name for row in before.per_class}
    assert [row.name for row in after.per_class] == [name for name in classes.names if name in candidates]
    by_name = {"per_class": tuple(sorted(after.per_class, key=lambda row: old.names.index(row.name)))}
    assert after.model_copy(update=by_name) == before


def test_the_order_of_the_classes_does_not_even_change_the_last_digit() -> None:
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    classes = table([True, False, False, False])

    def top1(*correct: int) -> float:  # out of ten images of each class; the others are taken for class 0
        labels = np.repeat(rows(1, 2, 3), 10)
        predicted = np.concatenate([rows(*[c] * n, *[0] * (10 - n)) for c, n in enumerate(correct, start=1)])
        return evaluate_predictions(predicted, Answers(labels), classes, "gzsl").top1

    assert top1(1, 2, 3) == top1(3, 2, 1)


@given(cases())
def test_the_record_is_json_without_nan_and_reads_back(case: Case) -> None:
    metrics = case.evaluate()
    text = json.dumps(metrics.to_dict(), allow_nan=False)
    assert json.loads(text) == metrics.to_dict()
    assert Metrics.model_validate_json(text) == metrics


def test_a_worked_example() -> None:
    metrics = evaluate_predictions(rows(0, 0, 2, 2, 3, 3, 3), answers(0, 0, 0, 2, 2, 3, UNKNOWN), FOUR, "gzsl")
    assert metrics.to_dict() == {
        "setting": "gzsl",
        "images": 6,
        "unknown": 1,
        "top1": pytest.approx((2 / 3 + 1 / 2 + 1) / 3),
        "macc": pytest.approx(4 / 6),
        "u": pytest.approx(0.75),
        "s": pytest.approx(2 / 3),
        "h": pytest.approx(12 / 17),
        "ausuc": metrics.ausuc,
        "per_class": [
            {"name": "ox 0", "seen": True, "images": 3, "correct": 2, "accuracy": pytest.approx(2 / 3)},
            {"name": "cat 1", "seen": True, "images": 0, "correct": 0, "accuracy": None},
            {"name": "bee 2", "seen": False, "images": 2, "correct": 1, "accuracy": 0.5},
            {"name": "ox 3", "seen": False, "images": 1, "correct": 1, "accuracy": 1.0},
        ],
        "confusion": [
            {"true": "ox 0", "predicted": "ox 0", "count": 2},
            {"true": "bee 2", "predicted": "bee 2", "count": 1},
            {"true": "bee 2", "predicted": "ox 3", "count": 1},
            {"true": "ox 0", "predicted": "bee 2", "count": 1},
            {"true": "ox 3", "predicted": "ox 3", "count": 1},
        ],
    }


def test_a_class_that_is_predicted_but_absent_does_not_count_as_zero() -> None:
    labels, predicted = rows(2, 2, 2, 2), rows(2, 2, 2, 3)
    metrics = evaluate_predictions(predicted, Answers(labels), FOUR, "zsl")
    assert metrics.top1 == 0.75  # not 0.375, the mean of 0.75 and 0
    assert [(row.images, row.accuracy) for row in metrics.per_class] == [(4, 0.75), (0, None)]


def test_top1_is_scikit_learns_balanced_accuracy() -> None:
    rng = np.random.default_rng(3)
    labels, predicted = rng.integers(4, size=200), rng.integers(4, size=200)
    metrics = evaluate_predictions(predicted, Answers(labels), FOUR, "gzsl")
    assert metrics.top1 == pytest.approx(balanced_accuracy_score(labels, predicted))
    assert metrics.top1 != pytest.approx(metrics.macc)


def test_only_zsl_keeps_the_seen_classes_out_of_the_running() -> None:
    scores = np.array([[9.0, 0, 2, 1], [0, 9, 1, 2]])
    assert evaluate_scores(scores, answers(2, 3), FOUR, "zsl").top1 == 1
    assert evaluate_scores(scores, answers(2, 3), FOUR, "gzsl").top1 == 0


def test_infinite_scores_are_scores() -> None:
    scores = np.array([[-np.inf, -np.inf, 1, -np.inf], [0, 0, 0, np.inf]])
    assert evaluate_scores(scores, answers(2, 3), FOUR, "gzsl").top1 == 1


@pytest.mark.parametrize(
    ("labels", "predicted", "expected"),
    [
        ((0, 2), (1, 3), (0, 0, 0)),
        ((0, 2), (0, 3), (0, 1, 0)),
        ((0, 2), (1, 2), (1, 0, 0)),
        ((0, 2), (0, 2), (1, 1, 1)),
        ((2, 3), (2, 2), (0.5, None, None)),
        ((0, 1), (0, 2), (None, 0.5, None)),
        ((0, UNKNOWN), (0, 2), (None, 1, None)),
    ],
)
def test_u_s_and_h_where_something_is_zero_or_missing(
    labels: tuple[int, ...], predicted: tuple[int, ...], expected: tuple[float | None, ...]
) -> None:
    metrics = evaluate_predictions(rows(*predicted), answers(*labels), FOUR, "gzsl")
    assert (metrics.u, metrics.s, metrics.h) == expected


@pytest.mark.parametrize("setting", ["zsl", "gzsl"])
def test_no_known_label_is_an_error_that_says_so(setting: Setting) -> None:
    for labels in (answers(UNKNOWN, UNKNOWN), answers()):
        with refused("no-answers"):
            evaluate_scores(np.zeros((len(labels.labels), 4)), labels, FOUR, setting)


def test_zsl_refuses_images_of_seen_classes() -> None:
    with refused("answer-seen"):
        evaluate_scores(np.zeros((3, 4)), answers(2, UNKNOWN, 1), FOUR, "zsl")


@pytest.mark.parametrize("shape", [(2, 3), (3, 4), (4, 2), (2,), (2, 4, 1)])
def test_scores_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with refused("scores-shape"):
        evaluate_scores(np.zeros(shape), answers(2, 3), FOUR, "zsl")


@pytest.mark.parametrize("column", [0, 3])
def test_nan_scores_are_refused_wherever_they_are(column: int) -> None:
    scores = np.zeros((3, 4))
    scores[1:, column] = np.nan
    with refused("not-finite"):
        evaluate_scores(scores, answers(2, UNKNOWN, 3), FOUR, "zsl")


@pytest.mark.parametrize("bad", [4, -2])
def test_rows_outside_the_class_table_are_refused(bad: int) -> None:
    with refused("answer-unknown"):
        evaluate_predictions(rows(2, 2), answers(2, bad), FOUR, "gzsl")


def test_metrics_cannot_be_changed() -> None:
    metrics = evaluate_predictions(rows(2), answers(2), FOUR, "zsl")
    with pytest.raises(pydantic.ValidationError):
        metrics.top1 = 0.5


@pytest.mark.parametrize("seed", range(5))
def test_shares_of_images_by_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    classes = ClassTable.build(list("abcde"), rng.random((5, 3)), np.array([True, True, False, False, False]))
    labels, scores = rng.integers(0, 5, 40), rng.random((40, 5))
    right = {True: [], False: []}
    for label, row in zip(labels, scores, strict=True):
        right[bool(classes.seen[label])].append(max(range(5), key=row.__getitem__) == label)
    u, s = (sum(right[seen]) / len(right[seen]) for seen in (False, True))
    found = evaluate_scores(scores, Answers(labels), classes, "gzsl").by_images()
    assert found == pytest.approx({"u_images": u, "s_images": s, "h_images": 2 * u * s / (u + s)})


def test_shares_of_images_without_any():
    classes = ClassTable.build(list("abc"), np.eye(3), np.array([True, False, False]))
    found = evaluate_scores(np.eye(3)[[1, 2]], Answers(np.array([1, 1])), classes, "gzsl").by_images()
    assert found == {"u_images": 0.5, "s_images": None, "h_images": None}
