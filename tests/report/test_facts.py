"""What a report knows, against plain loops."""

from dataclasses import replace

import numpy as np
import pytest

from pren.label.outcome import Outcome
from pren.methods.registry import METHODS, create
from pren.problem import Problem
from pren.problem.scoring import scorer
from pren.report.evidence import Apart, attribute_names, describe_apart, evidence
from pren.report.facts import most_confused
from pren.report.image import ReportedImage
from pren.report.quality import confusions
from pren.report.reading import collect, confusions_of
from pren.report.scatter import draw_map, make_map


def test_images_are_those_of_the_predictions(features):
    outcome = features.outcome
    known, told = collect(features), collect(replace(features, outcome=None, missing="gone"))
    assert [image.confidence for image in known.images] == sorted((i.confidence for i in known.images), reverse=True)
    by_name = {image.name: image for image in known.images}
    for image in told.images:
        assert image.label == by_name[image.name].label
        assert image.confidence == pytest.approx(by_name[image.name].confidence, abs=1e-4)
    answers, names = outcome.answers.labels, outcome.problem.classes.names
    assert all(image.truth == names[answers[image.place]] for image in known.images)
    assert sum(not image.wrong for image in known.images) / 18 == pytest.approx(known.metrics.macc)
    assert told.details is None
    assert told.missing == "gone"


def test_the_runner_up_is_the_second_best_candidate(features):
    outcome = features.outcome
    names, candidates = outcome.problem.classes.names, np.flatnonzero(outcome.problem.candidates())
    scores = scorer(outcome.method, outcome.problem)(outcome.problem.pool)
    for image in collect(features).images:
        ranked = sorted(candidates, key=lambda row: -scores[image.place, row])
        assert (image.label, image.runner_up) == tuple(names[row] for row in ranked[:2])


def test_safe_labels_are_as_many_as_reach_the_precision_and_never_doubtful(features):
    facts = collect(features)
    least, safe = facts.least_safe, facts.safe
    sure = [image.confidence for image in facts.images]
    for count in range(1, len(sure) + 1):
        if np.mean(sure[:count]) >= 0.95 - 1e-9 and sure[count - 1] >= 0.5:
            longest = count
    assert len(safe) == longest
    assert 0.5 <= least <= min(image.confidence for image in safe)


def test_without_answers_doubt_goes_to_the_runner_up():
    images = [
        ReportedImage(0, "", "a", "b", 0.75),
        ReportedImage(1, "", "b", "a", 0.5),
        ReportedImage(2, "", "a", "c", 1.0),
    ]
    images += [ReportedImage(3, "", "c", "a", 0.0, given=True), ReportedImage(4, "", "c", "a")]
    found = confusions_of(images, None)
    assert found == {("a", "b"): 0.25, ("b", "a"): 0.5, ("a", "c"): 0.0}
    assert most_confused(found, 3) == [("a", "b", 0.75)]


def test_a_runner_up_of_labels_that_are_wholly_sure_is_no_confusion(features):
    confused = {("a", "b"): 0.5, ("a", "c"): 0.0}
    found = confusions(replace(collect(features), confused=confused))
    assert found.largest == [("a", "b", 0.5)]
    assert found.matrix.names == ["a", "b"]


def test_pairs_count_both_ways_and_the_diagonal_does_not():
    cells = {("a", "a"): 9.0, ("a", "b"): 1.0, ("b", "a"): 1.0, ("c", "a"): 3.0}
    assert most_confused(cells, 5) == [("a", "c", 3.0), ("a", "b", 2.0)]
    assert most_confused(cells, 1) == [("a", "c", 3.0)]


@pytest.mark.parametrize("name", ["eszsl", "ale", "sje", "devise"])
def test_attribute_weights_add_up_to_the_scores(name, make_problem):
    problem = make_problem()
    method = create(name).fit(problem)
    weights = method.attribute_weights(problem.pool)
    assert weights.shape == (len(problem.pool), problem.classes.signatures.shape[1])
    np.testing.assert_allclose(weights @ problem.classes.signatures.T, method.scores(problem.pool), atol=1e-6)


def test_methods_without_such_a_sum_say_so(make_problem):
    problem = make_problem()
    assert create("pren-pool").fit(problem).attribute_weights(problem.pool) is None
    assert create("latem").fit(problem).attribute_weights(problem.pool) is None
    assert create("eszsl", refinement="soft-kmeans").fit(problem).attribute_weights(problem.pool) is None
    assert "pren-pool" in METHODS


def test_evidence_is_the_mean_part_in_the_lead(make_problem):
    problem = make_problem()
    outcome = Outcome.of(create("eszsl").fit(problem), problem, None, None)
    weights, table = outcome.method.attribute_weights(problem.pool), problem.classes
    found = {each.label: each for each in evidence(outcome.method, problem, outcome.labels)}
    candidates, scores = np.flatnonzero(problem.candidates()), outcome.method.scores(problem.pool)
    for name, each in found.items():
        parts = []
        for image, row in enumerate(outcome.labels.classes):
            if table.names[row] == name:
                second = sorted(candidates, key=lambda c: -scores[image, c])[1]
                parts.append(weights[image] * (table.signatures[row] - table.signatures[second]))
        mean = np.mean(parts, axis=0)
        assert each.favours[0] == (f"attribute {mean.argmax() + 1}", pytest.approx(mean.max()))
        assert all(value < 0 for _, value in each.opposes)


def test_descriptions_differ_where_they_differ_most():
    names = ["a", "b", "c"]
    problem = Problem.from_arrays(
        np.zeros((1, 2)),
        [0],
        [[1, 0, 0], [0, 1, 0.1], [0, 1, 0.9]],
        np.zeros((1, 2)),
        names,
        normalise=False,
        attributes=("x", "y", "z"),
    )
    assert describe_apart(problem, "b", "c") == Apart([("z", 0.1, 0.9)])
    assert [name for name, *_ in describe_apart(problem, "a", "b").attributes] == ["x", "y", "z"]


def test_numbers_of_a_text_encoder_are_not_shown_but_the_words_are(make_problem):
    """Columns: two of attributes, three of an encoder, one without a name."""
    problem = make_problem(m=6)
    one, other, *_ = problem.classes.names
    sources = [
        {"mean": [0.0] * 2, "encoder": None, "attributes": ["x", "y"], "templates": [], "texts": {}},
        {"mean": [0.0] * 3, "encoder": "minilm", "attributes": None, "templates": [], "texts": {one: ["a", "b"]}},
        {"mean": [0.0], "encoder": None, "attributes": None, "templates": [], "texts": {}},
        {"mean": [], "encoder": "minilm", "attributes": None, "templates": ["a {}."], "texts": {one: ["a bird."]}},
    ]
    described = replace(problem, recipe={"sources": sources})
    assert attribute_names(described) == ["x", "y", None, None, None, "attribute 6"]
    apart = describe_apart(described, one, other)
    assert {name for name, *_ in apart.attributes} == {"x", "y", "attribute 6"}
    assert apart.words == (["a", "b"], [])
    outcome = Outcome.of(create("eszsl").fit(described), described, None, None)
    shown = {name for each in evidence(outcome.method, described, outcome.labels) for name, _ in each.favours}
    assert shown <= {"x", "y", "attribute 6"}
    only_words = replace(problem, recipe={"sources": [{**sources[1], "mean": [0.0] * 6}]})
    assert describe_apart(only_words, one, other).attributes == []
    assert evidence(outcome.method, only_words, outcome.labels) is None


def test_equal_inputs_have_a_map():
    """And no warning, which would be an error here."""
    for features in (np.ones((6, 4)), np.zeros((6, 4))):
        for labels in ("abcabc", "aaaaaa"):
            images = {place: ReportedImage(place, "", label, "", 0.5) for place, label in enumerate(labels)}
            assert len(draw_map(make_map(features, list(labels)), images).dots) == 6
