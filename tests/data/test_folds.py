"""Validation folds drawn from a problem's seen classes."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from refusals import refused

from pren.data import class_folds
from pren.data.survey import own_folds
from pren.images.files import ImageFiles
from pren.images.preprocessing import plain
from pren.methods.pren import PrEN
from pren.problem import ClassTable, Problem


def named(problem, labels):
    return [problem.classes.names[label] for label in labels]


@pytest.fixture(params=["zsl", "gzsl"])
def setting(request):
    return request.param


class TestClassFolds:
    def test_every_seen_class_plays_the_unseen_one_once(self, make_problem, setting):
        problem = make_problem(n_seen=7, setting=setting)
        folds = class_folds(problem)
        assert len(folds) == 3
        unseen = [np.array(fold.classes.names)[fold.classes.unseen].tolist() for fold, _ in folds]
        seen = named(problem, np.flatnonzero(problem.classes.seen))
        assert sorted(name for part in unseen for name in part) == sorted(seen)
        assert min(len(part) for part in unseen) >= 2

    def test_no_class_and_no_image_of_the_test(self, make_problem, setting):
        problem = make_problem(n_seen=6, setting=setting)
        test_classes = set(named(problem, np.flatnonzero(problem.classes.unseen)))
        train = {image.tobytes() for image in problem.train[np.arange(len(problem.train))].numpy()}
        for fold, answers in class_folds(problem):
            assert not test_classes & set(fold.classes.names)
            pool = fold.pool[np.arange(len(fold.pool))].numpy()
            learned = fold.train[np.arange(len(fold.train))].numpy()
            used = [image.tobytes() for image in (*pool, *learned)]
            assert len(set(used)) == len(used)
            assert set(used) == train
            assert answers.labels.shape == (len(fold.pool),)

    def test_labels_and_signatures_go_with_their_images(self, make_problem, setting):
        problem = make_problem(n_seen=6, setting=setting)
        images = problem.train[np.arange(len(problem.train))].numpy()
        of = {image.tobytes(): name for image, name in zip(images, named(problem, problem.labels), strict=True)}
        signature = dict(zip(problem.classes.names, problem.classes.signatures.tolist(), strict=True))
        for fold, answers in class_folds(problem):
            for inputs, labels in ((fold.train, fold.labels), (fold.pool, answers.labels)):
                found = [of[image.tobytes()] for image in inputs[np.arange(len(inputs))].numpy()]
                assert found == named(fold, labels)
            for name, row in zip(fold.classes.names, fold.classes.signatures.tolist(), strict=True):
                assert row == signature[name]

    def test_seen_images_are_held_out_in_gzsl_alone(self, make_problem):
        for setting, share in (("zsl", 0), ("gzsl", 2)):
            for fold, answers in class_folds(make_problem(n_seen=6, per_class=10, setting=setting)):
                counts = np.bincount(answers.labels, minlength=len(fold.classes))
                assert (counts[fold.classes.seen] == share).all()
                assert (counts[fold.classes.unseen] == 10).all()
                assert (
                    np.bincount(fold.labels, minlength=len(fold.classes)) > 0
                ).tolist() == fold.classes.seen.tolist()

    def test_the_order_of_the_classes_does_not_matter(self, make_problem, setting):
        one, other = (make_problem(n_seen=6, setting=setting, order=order) for order in (None, np.arange(10)[::-1]))
        for (a, answers_a), (b, answers_b) in zip(class_folds(one), class_folds(other), strict=True):
            assert a.fingerprint() == b.fingerprint()
            assert named(a, answers_a.labels) == named(b, answers_b.labels)

    def test_the_pool_does_not_matter(self, make_problem, setting):
        problem = make_problem(n_seen=6, setting=setting)
        other = replace(problem, pool=problem.train)
        assert [f.fingerprint() for f, _ in class_folds(problem)] == [f.fingerprint() for f, _ in class_folds(other)]

    @pytest.mark.parametrize(("seen", "count"), [(4, 2), (5, 2), (6, 3), (20, 3)])
    def test_how_many(self, make_problem, seen, count):
        assert len(class_folds(make_problem(n_seen=seen))) == count

    def test_too_few_classes(self, make_problem):
        with refused("seen-too-few"):
            class_folds(make_problem(n_seen=3))

    def test_images_keep_their_backbone(self, make_problem):
        fold: Problem = class_folds(make_problem(shape=(1, 8, 12)))[0][0]
        assert fold.backbone == "small-cnn"


def test_embedded_data_and_files_have_no_folds_of_their_own():
    assert own_folds("numbers-features") == ()
    assert own_folds("my.npz") == ()


@pytest.mark.slow
class TestPhotographs:
    @pytest.fixture
    def problem(self, tmp_path):
        """Pictures of six colours, five of them labelled."""
        rng = np.random.default_rng(0)
        colours = rng.integers(0, 200, (7, 3))
        labels, in_pool = np.repeat(np.arange(5), 3), np.repeat([5, 6], 2)
        names = [f"{place:02d}.png" for place in range(len(labels) + len(in_pool))]
        for name, label in zip(names, [*labels, *in_pool], strict=True):
            pixels = colours[label] + rng.integers(0, 50, (9, 12, 3))
            Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / name)
        classes = ClassTable.build(tuple("gfedcba"), colours / 255, np.arange(7) < 5)
        train, pool = (ImageFiles(tmp_path, part) for part in (names[:15], names[15:]))
        return Problem(train, labels, pool, classes)

    def test_they_stay_photographs(self, problem, setting):
        problem = replace(problem, setting=setting)
        for fold, _ in class_folds(problem):
            assert fold.train.photographs
            assert fold.pool.photographs
            wanted = plain((3, 8, 6))
            assert fold.train.prepared(wanted).sample_shape == (3, 8, 6)

    def test_a_backbone_gets_them_as_it_wants_them(self, problem):
        method = PrEN(backbone="test_resnet", weights="random", geometry="timm", heads=2, hidden=(4,), rounds=1)
        method.set_params(initial_batches=1, batches=1, batch_size=4)
        for fold, _ in class_folds(problem):
            method.fit(fold)
            assert method.preprocessing_.geometry == "timm"
            assert method.sample_shape_ == method.preprocessing_.sample_shape == (3, 160, 160)
            assert np.isfinite(method.scores(fold.pool)).all()

    def test_features_tell_what_made_them(self, make_problem):
        problem = replace(make_problem(n_seen=6), extractor={"asked": "for"})
        assert all(fold.extractor == {"asked": "for"} for fold, _ in class_folds(problem))
