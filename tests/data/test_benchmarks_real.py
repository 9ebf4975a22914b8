"""The standard benchmarks as they are: counts, and every trap that has cost somebody a paper.

The files are not part of this repository. They are looked for in the folder that the environment variable PREN_DATA
names, then in ../shared/data beside the repository.
"""

import os
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from scipy.io import loadmat, savemat

from pren.core.pseudo import PseudoLabels, top_per_class
from pren.data import load
from pren.data.benchmarks import xlsa17_images
from pren.data.benchmarks.registered import find_benchmark
from pren.data.benchmarks.xlsa17_images import read_images, spelled_class
from pren.evaluation import evaluate_scores
from pren.methods.rivals.eszsl import ESZSL
from pren.problem import Answers, ClassTable, Problem

CANDIDATES = [os.environ.get("PREN_DATA"), Path(__file__).parents[2].parent / "shared" / "data"]
ROOT = next((Path(folder) for folder in CANDIDATES if folder and (Path(folder) / "xlsa17" / "data").is_dir()), None)
pytestmark = pytest.mark.skipif(
    ROOT is None, reason="the benchmarks are not here: name the folder that holds xlsa17 in PREN_DATA"
)

FOLDERS = {"cub": "CUB", "sun": "SUN", "awa2": "AWA2", "sun10": "SUN"}
SPLIT_FOLDERS = {"PS": "data", "SS": "standard_split", "SUN10": "data"}


def text(cells):
    return [str(cell[0]) for cell in cells.ravel()]


@cache
def raw(name, split):
    """att_splits.mat as it is."""
    return loadmat(ROOT / "xlsa17" / SPLIT_FOLDERS[split] / FOLDERS[name] / "att_splits.mat")


def class_list(name, split, file):
    path = ROOT / "xlsa17" / SPLIT_FOLDERS[split] / FOLDERS[name] / f"{file}.txt"
    return path.read_text().split()


def raw_list(name, split, key):
    """Places of images, counted from 0."""
    return [int(number) - 1 for number in raw(name, split)[key].ravel()]


@cache
def image_files(name):
    """Folder and file name of every image, in the order the lists refer to."""
    folder = ROOT / "xlsa17" / "data" / FOLDERS[name]
    file = folder / ("efflite0.mat" if name == "cub" else "image_files.mat")
    return text(loadmat(file, variable_names=["image_files"])["image_files"])


@cache
def class_of_images(name):
    """The class of every image by its file name alone."""
    if FOLDERS[name] == "SUN":  # .../images/a/airport/airport/x.jpg is of the class airport_airport
        return ["_".join(path.split("/images/")[1].split("/")[1:-1]) for path in image_files(name)]
    return [path.split("/")[-2] for path in image_files(name)]


@pytest.fixture(scope="session")
def features_file(tmp_path_factory):
    """A features file of every image, whose first feature is its number; CUB's too, to tell images apart."""

    @cache
    def write(name):
        row = {c: place for place, c in enumerate(text(raw(name, next(iter(splits_of(name))))["allclasses_names"]))}
        count = len(class_of_images(name))
        path = tmp_path_factory.mktemp("features") / f"{name}.mat"
        cells = np.empty((count, 1), dtype=object)
        cells[:, 0] = [f"/elsewhere/{'/'.join(file.split('/')[-2:])}" for file in image_files(name)]
        content = {
            "features": np.stack([np.arange(count), np.ones(count)]).astype(np.float32),
            "labels": np.array([[row[c] + 1] for c in class_of_images(name)], dtype=np.uint16),
            "image_files": cells,
        }
        savemat(path, content)
        return path

    return write


def splits_of(name):
    return ("SUN10",) if name == "sun10" else ("PS", "SS")


@pytest.fixture(scope="session")
def loaded(features_file):
    """Load a benchmark with made-up features."""

    @cache  # a problem cannot be changed
    def read(name, split, **options):
        return load(name, root=ROOT, split=split, features=features_file(name), **options)

    return read


def images(inputs):
    return inputs[np.arange(len(inputs))][:, 0].numpy().astype(int).tolist()


def check_names(name, problem, answers):
    """Every label is the class that the image's file name spells."""
    spelled = class_of_images(name)
    for inputs, labels in ((problem.train, problem.labels), (problem.pool, answers.labels)):
        assert [problem.classes.names[label] for label in labels] == [spelled[image] for image in images(inputs)]


# Classes seen and unseen; images in trainval, test_seen, test_unseen and all of the seen classes. Each was counted by
# plain loops over att_splits.mat and the images' file names.
COUNTS = {
    ("cub", "PS"): (150, 50, 7057, 1764, 2967, 8821),
    ("cub", "SS"): (150, 50, 8855, None, 2933, 8855),
    ("sun", "PS"): (645, 72, 10320, 2580, 1440, 12900),
    ("sun", "SS"): (645, 72, 12900, None, 1440, 12900),
    ("awa2", "PS"): (40, 10, 23527, 5882, 7913, 29409),
    ("awa2", "SS"): (40, 10, 30337, None, 6985, 30337),
    ("sun10", "SUN10"): (707, 10, 14140, None, 200, 14140),
}
# Classes that stay seen and that play the unseen ones, and their images.
FOLDS = {
    ("cub", "PS"): [(100, 50, 4702, 2355), (100, 50, 4699, 2358), (100, 50, 4782, 2275)],
    ("cub", "SS"): [(100, 50, 5894, 2961), (100, 50, 5933, 2922), (100, 50, 5912, 2943)],
    ("sun", "PS"): [(580, 65, 9280, 1040)] * 3,
    ("sun", "SS"): [(581, 64, 11620, 1280)] * 3,
    ("awa2", "PS"): [(27, 13, 16187, 7340), (27, 13, 16724, 6803), (27, 13, 16245, 7282)],
    ("awa2", "SS"): [(27, 13, 20756, 9581), (27, 13, 20376, 9961), (27, 13, 21729, 8608)],
}
BOTH = list(COUNTS)
LISTED = list(FOLDS)


@pytest.mark.parametrize(("name", "split"), LISTED)
def test_the_files_hold_these_counts(name, split):
    lists = {key: raw_list(name, split, key) for key in raw(name, split) if key.endswith("_loc")}
    spelled = class_of_images(name)
    seen, unseen, trainval, test_seen, test_unseen, every = COUNTS[name, split]
    seen_classes = {spelled[image] for image in lists["trainval_loc"]}
    assert len(seen_classes) == seen
    assert seen_classes == set(class_list(name, split, "trainvalclasses"))
    assert {spelled[image] for image in lists["test_unseen_loc"]} == set(class_list(name, split, "testclasses"))
    assert len(set(class_list(name, split, "testclasses"))) == unseen
    assert (len(lists["trainval_loc"]), len(lists["test_unseen_loc"])) == (trainval, test_unseen)
    assert len(lists.get("test_seen_loc", [])) == (test_seen or 0)
    assert sum(c in seen_classes for c in spelled) == every


@pytest.mark.parametrize(("name", "split"), BOTH)
class TestCounts:
    def test_zsl(self, loaded, name, split):
        seen, unseen, trainval, _, test_unseen, every = COUNTS[name, split]
        problem, answers = loaded(name, split)
        assert (problem.classes.seen.sum(), problem.classes.unseen.sum()) == (seen, unseen)
        assert (len(problem.train), len(problem.pool)) == (every, test_unseen)
        check_names(name, problem, answers)
        problem, answers = loaded(name, split, train_on="trainval")
        assert (len(problem.train), len(problem.pool)) == (trainval, test_unseen)
        check_names(name, problem, answers)
        if split != "SUN10":
            assert images(problem.train) == sorted(raw_list(name, split, "trainval_loc"))
            assert sorted(images(problem.pool)) == sorted(raw_list(name, split, "test_unseen_loc"))

    def test_gzsl_with_the_fixed_list(self, loaded, name, split):
        seen, unseen, trainval, test_seen, test_unseen, _ = COUNTS[name, split]
        if test_seen is None:
            with refused("seen-test"):
                loaded(name, split, setting="gzsl")
            return
        problem, answers = loaded(name, split, setting="gzsl")
        assert (len(problem.train), len(problem.pool)) == (trainval, test_seen + test_unseen)
        in_pool = problem.classes.seen[answers.labels]
        assert (in_pool.sum(), (~in_pool).sum()) == (test_seen, test_unseen)
        assert len(set(answers.labels)) == seen + unseen
        check_names(name, problem, answers)

    def test_gzsl_with_a_random_fifth(self, loaded, name, split):
        _, _, _, _, test_unseen, every = COUNTS[name, split]
        problem, answers = loaded(name, split, setting="gzsl", seen_test="random")
        held_out = Counter(answers.labels[problem.classes.seen[answers.labels]])
        left = Counter(problem.labels)
        assert all(held_out[c] == round(0.2 * (held_out[c] + left[c])) for c in left)
        assert len(problem.train) + len(problem.pool) == every + test_unseen
        assert not set(images(problem.train)) & set(images(problem.pool))
        check_names(name, problem, answers)

    def test_the_split_hash_is_its_own(self, loaded, name, split):
        digests = {loaded(*key)[0].source["files"]["att_splits.mat"] for key in BOTH if key != ("sun10", "SUN10")}
        assert len(digests) == 6
        assert loaded(name, split)[0].source["files"]["att_splits.mat"] in digests


class TestFolds:
    @pytest.mark.parametrize("fold", [1, 2, 3])
    @pytest.mark.parametrize(("name", "split"), LISTED)
    def test_counts_and_nothing_of_the_test(self, loaded, name, split, fold):
        problem, answers = loaded(name, split, fold=fold)
        counts = (problem.classes.seen.sum(), problem.classes.unseen.sum(), len(problem.train), len(problem.pool))
        assert counts == FOLDS[name, split][fold - 1]
        names = np.array(problem.classes.names)
        assert set(names[problem.classes.seen]) == set(class_list(name, split, f"trainclasses{fold}"))
        assert set(names[problem.classes.unseen]) == set(class_list(name, split, f"valclasses{fold}"))
        assert not set(names) & set(class_list(name, split, "testclasses"))
        used = set(images(problem.train)) | set(images(problem.pool))
        assert used == set(raw_list(name, split, "trainval_loc"))
        check_names(name, problem, answers)

    @pytest.mark.parametrize(("name", "train", "val"), [("cub", 1173, 591), ("awa2", 4031, 1851), ("sun", 2320, 260)])
    def test_trap_train_loc_and_val_loc_contain_seen_test_images(self, loaded, name, train, val):
        test_seen = set(raw_list(name, "PS", "test_seen_loc"))
        assert len(test_seen & set(raw_list(name, "PS", "train_loc"))) == train
        assert len(test_seen & set(raw_list(name, "PS", "val_loc"))) == val
        for setting in ("zsl", "gzsl"):
            problem, _ = loaded(name, "PS", fold=1, setting=setting)  # fold 1 is what these lists were made from
            assert not test_seen & (set(images(problem.train)) | set(images(problem.pool)))

    @pytest.mark.parametrize(("name", "shared"), [("cub", (12, 10, 6)), ("sun", (9, 7, 6)), ("awa2", (2, 1, 3))])
    def test_trap_validation_classes_of_one_split_are_test_classes_of_the_other(self, loaded, name, shared):
        tested = set(class_list(name, "PS", "testclasses"))
        for fold, count in enumerate(shared, start=1):
            problem, _ = loaded(name, "SS", fold=fold)
            unseen = {n for n, u in zip(problem.classes.names, problem.classes.unseen, strict=True) if u}
            assert len(unseen & tested) == count
            assert problem.source["split"] == "SS"  # which is why every record names it

    @pytest.mark.parametrize("fold", [1, 2, 3])
    def test_sun10_uses_the_folds_of_sun_without_its_test_classes(self, loaded, fold):
        problem, answers = loaded("sun10", "SUN10", fold=fold)
        ten = set(class_list("sun", "PS", "testclasses_sun10"))
        train, val = (set(class_list("sun", "PS", f"{kind}classes{fold}")) for kind in ("train", "val"))
        assert (train | val) & ten  # the lists do contain some
        names = np.array(problem.classes.names)
        assert set(names[problem.classes.seen]) == train - ten
        assert set(names[problem.classes.unseen]) == val - ten
        assert {class_of_images("sun")[i] for i in images(problem.train) + images(problem.pool)} == (train | val) - ten
        check_names("sun", problem, answers)


class TestTraps:
    def test_numbers_count_from_one(self, loaded):
        assert min(number for key in ("trainval_loc", "test_seen_loc") for number in raw("cub", "PS")[key].ravel()) == 1
        problem, _ = loaded("cub", "PS")
        assert 0 in images(problem.train)
        assert max(max(images(problem.train)), max(images(problem.pool))) == 11787

    def test_classes_and_images_stand_in_another_order_than_in_cubs_own_files(self, loaded):
        own = ROOT / "CUB_200_2011"
        if not own.is_dir():
            pytest.skip("CUB_200_2011 is not here")
        classes = dict(line.split() for line in (own / "classes.txt").read_text().splitlines())
        files = dict(line.split() for line in (own / "images.txt").read_text().splitlines())
        label = dict(line.split() for line in (own / "image_class_labels.txt").read_text().splitlines())
        ours = text(raw("cub", "PS")["allclasses_names"])
        assert sorted(ours) == sorted(classes.values())
        assert ours != list(classes.values())
        assert sum(a == b for a, b in zip(files.values(), image_files("cub"), strict=True)) == 172
        class_of_file = {file: classes[label[number]] for number, file in files.items()}
        for setting in ("zsl", "gzsl"):
            problem, answers = loaded("cub", "PS", setting=setting)
            for inputs, labels in ((problem.train, problem.labels), (problem.pool, answers.labels)):
                by_name = [class_of_file[image_files("cub")[image]] for image in images(inputs)]
                assert [problem.classes.names[row] for row in labels] == by_name

    def test_cubs_own_signatures_are_in_per_cent_and_in_the_order_of_its_own_classes(self, loaded):
        own = ROOT / "CUB_200_2011"
        if not own.is_dir():
            pytest.skip("CUB_200_2011 is not here")
        table = np.loadtxt(own / "attributes" / "class_attribute_labels_continuous.txt")
        row = {line.split()[1]: place for place, line in enumerate((own / "classes.txt").read_text().splitlines())}
        problem, _ = loaded("cub", "PS")
        by_name = table[[row[name] for name in problem.classes.names]]
        assert by_name.max() == 100
        by_name = by_name / np.linalg.norm(by_name, axis=1, keepdims=True)
        np.testing.assert_allclose(problem.classes.signatures, by_name, atol=1e-6)

    @pytest.mark.parametrize(("name", "split"), LISTED)
    def test_the_order_of_the_test_list_is_its_labels_but_not_that_of_the_pool(self, loaded, name, split):
        spelled = class_of_images(name)
        listed = [spelled[image] for image in raw_list(name, split, "test_unseen_loc")]
        runs = 1 + sum(a != b for a, b in pairwise(listed))
        n_unseen = COUNTS[name, split][1]
        assert runs == n_unseen
        _, answers = loaded(name, split)
        sizes = np.array(list(Counter(listed).values())) / len(listed)
        changes = np.mean(np.diff(answers.labels) != 0)
        expected = 1 - np.sum(sizes**2)  # of an order that has nothing to do with the classes
        assert abs(changes - expected) < 5 * np.sqrt(expected * (1 - expected) / len(listed)) + 1e-3

    @pytest.mark.parametrize("split", ["PS", "SS"])
    def test_awa2_has_slightly_negative_signatures(self, loaded, split):
        problem, _ = loaded("awa2", split)
        assert -0.004 < problem.classes.signatures.min() < -0.003

    @pytest.mark.parametrize(("name", "split"), LISTED)
    def test_signatures_have_unit_length(self, loaded, name, split):
        problem, _ = loaded(name, split)
        column = {c: place for place, c in enumerate(text(raw(name, split)["allclasses_names"]))}
        published = raw(name, split)["att"].T[[column[c] for c in problem.classes.names]]
        np.testing.assert_allclose(np.linalg.norm(published, axis=1), 1, atol=1e-12)
        np.testing.assert_allclose(problem.classes.signatures, published, atol=1e-12)

    @pytest.mark.parametrize(("name", "largest"), [("cub", 100), ("sun", 1)])
    def test_original_signatures_of_the_standard_split(self, loaded, name, largest):
        """SUN's lie the other way round in the file than CUB's."""
        problem, _ = loaded(name, "SS", scale="original")
        table = problem.classes.signatures
        assert table.max() == largest
        normalised, _ = loaded(name, "SS")
        np.testing.assert_allclose(
            table / np.linalg.norm(table, axis=1, keepdims=True), normalised.classes.signatures, atol=1e-12
        )
        with refused("signatures-unknown"):
            loaded(name, "PS", scale="original")

    @pytest.mark.parametrize("split", ["PS", "SS"])
    def test_sentences_of_cub(self, loaded, split, caplog):
        if not (ROOT / "xlsa17/data/CUB/sent_splits.mat").is_file():
            pytest.skip("CUB's sentences are not there")
        both, _ = loaded("cub", split, signatures="attributes,sentences")
        assert both.classes.signatures.shape == (200, 312 + 1024)
        blocks = np.split(both.classes.signatures[both.classes.seen], [312], axis=1)
        for block in blocks:
            np.testing.assert_allclose(block.mean(axis=0), 0, atol=1e-12)
            np.testing.assert_allclose((block**2).sum(axis=1).mean(), 1)
        assert ("32 of the 50 classes that are unseen" in caplog.text) == (split == "SS")

    @pytest.mark.parametrize("name", ["sun", "awa2"])
    def test_image_files_carry_somebodys_paths_and_are_matched_by_their_tails(self, features_file, tmp_path, name):
        assert all(path.startswith("/BS/") for path in image_files(name))
        load(name, root=ROOT, features=features_file(name))  # whose images are /elsewhere
        content = {k: v for k, v in loadmat(features_file(name)).items() if not k.startswith("__")}
        first, second = np.flatnonzero(content["labels"].ravel() == content["labels"][0, 0])[:2]
        content["image_files"][[first, second]] = content["image_files"][[second, first]]
        savemat(tmp_path / "swapped.mat", content)  # two images of one class, so labels and lists still fit
        with refused("images-order image_files.mat"):
            load(name, root=ROOT, features=tmp_path / "swapped.mat")

    @pytest.mark.parametrize(("name", "split"), BOTH)
    def test_the_record_names_files_and_not_places(self, loaded, name, split):
        problem, _ = loaded(name, split)
        assert str(ROOT) not in str(problem.source)
        assert problem.source["name"] == name
        assert problem.source["split"] == split
        assert len(problem.source["files"]["att_splits.mat"]) == 64


class TestPlaces:
    @pytest.mark.parametrize("below", ["", "xlsa17"])
    def test_the_root_is_the_folder_itself_or_the_one_that_holds_it(self, features_file, below, monkeypatch):
        for name in ("cub", "sun10"):
            load(name, root=ROOT / below, features=features_file(name))
        monkeypatch.setenv("PREN_DATA", str(ROOT / below))
        load("awa2", features=features_file("awa2"))

    @pytest.mark.parametrize("name", ["sun", "sun10", "awa2"])
    def test_features_that_are_missing_are_named_with_their_place(self, name):
        if list((ROOT / "xlsa17" / "data" / FOLDERS[name]).glob("res101.mat")):
            pytest.skip("they are here")
        with refused("features-missing res101.mat"):
            load(name, root=ROOT)

    def test_features_are_looked_for_beside_the_proposed_split(self):
        _, answers = load("cub", root=ROOT, split="SS", features="efflite0.mat")
        assert len(answers.labels) == 2933

    def test_a_folder_without_the_benchmark(self, tmp_path):
        with refused("data-missing"):
            load("cub", root=tmp_path)


@pytest.fixture(scope="session")
def birds():
    if not (ROOT / "CUB_200_2011" / "images").is_dir():
        pytest.skip("the images of CUB are not here")
    return ROOT / "CUB_200_2011"


class TestImages:
    """The photographs, without a look into them."""

    def test_every_bird_is_found_and_labelled_rightly(self, birds):
        place = find_benchmark(ROOT, "cub", "PS")
        content = read_images(place, True, text(raw("cub", "PS")["allclasses_names"]))
        assert list(content.names) == image_files("cub")
        assert len(set(content.names)) == 11788
        assert all((birds / "images" / name).is_file() for name in content.names)
        labels = loadmat(place.features / content.file.name, variable_names=["labels"])["labels"].ravel()
        assert content.labels.tolist() == [int(label) - 1 for label in labels]
        own = [line.split()[1] for line in (birds / "images.txt").read_text().splitlines()]
        assert sum(a == b for a, b in zip(own, content.names, strict=True)) == 172

    @pytest.mark.parametrize(
        ("split", "options"),
        [("PS", {}), ("PS", {"setting": "gzsl"}), ("SS", {}), ("PS", {"fold": 2}), ("SS", {"train_on": "trainval"})],
    )
    def test_it_is_the_problem_that_features_give(self, birds, loaded, split, options):
        problem, answers = load("cub", root=ROOT, split=split, images=True, **options)
        expected, expected_answers = loaded("cub", split, **options)
        for ours, theirs in ((problem.train, expected.train), (problem.pool, expected.pool)):
            files = [ours._path(place).relative_to(birds / "images").as_posix() for place in range(len(ours))]
            assert files == [image_files("cub")[image] for image in images(theirs)]
        assert np.array_equal(problem.labels, expected.labels)
        assert np.array_equal(answers.labels, expected_answers.labels)
        assert problem.classes.names == expected.classes.names
        if not options and split == "PS":  # the hash of the data is made with it, and reads every file
            assert problem.fingerprint()["split"] == expected.fingerprint()["split"]

    @pytest.mark.parametrize(("name", "split"), BOTH)
    def test_folders_spell_the_class_of_every_image(self, name, split):
        classes = text(raw(name, split)["allclasses_names"])
        rows = {c: row for row, c in enumerate(classes)}
        spelled = [spelled_class(path, rows) for path in image_files(name)]
        assert None not in spelled
        assert [classes[row] for row in spelled] == class_of_images(name)
        assert set(spelled) == set(range(len(classes)))

    @pytest.mark.parametrize(("name", "split"), [pair for pair in BOTH if pair[0] != "cub"])
    @pytest.mark.parametrize("below", ["", "images"])
    def test_files_laid_out_as_the_archives_have_them(self, loaded, tmp_path, monkeypatch, name, split, below):
        start = "/JPEGImages/" if name == "awa2" else "/images/"
        below = start[1:] if below else ""
        names = [below + path.split(start)[1] for path in image_files(name)]
        monkeypatch.setattr(xlsa17_images, "list_images", lambda folder: sorted(names))  # as if they were there
        problem, answers = load(name, root=ROOT, split=split, images=tmp_path)
        expected, expected_answers = loaded(name, split)
        for ours, theirs in ((problem.train, expected.train), (problem.pool, expected.pool)):
            assert [ours._path(place) for place in range(len(ours))] == [tmp_path / names[i] for i in images(theirs)]
        assert np.array_equal(problem.labels, expected.labels)
        assert np.array_equal(answers.labels, expected_answers.labels)


def top1(problem, answers):
    return evaluate_scores(ESZSL().fit(problem).scores(problem.pool), answers, problem.classes, "zsl").top1


@pytest.fixture(scope="session")
def cub():
    return load("cub", root=ROOT, features="efflite0.mat")


class TestRealFeatures:
    def test_eszsl_is_far_above_chance(self, cub):
        assert cub[0].train.sample_shape == (1280,)
        assert top1(*cub) > 0.45  # chance is 0.02

    def test_with_shuffled_signatures_it_is_near_chance(self, cub):
        problem, answers = cub
        table = problem.classes
        order = np.random.default_rng(0).permutation(len(table))
        shuffled = ClassTable.build(table.names, table.signatures[order], table.seen)
        assert top1(Problem(problem.train, problem.labels, problem.pool, shuffled), answers) < 0.06

    def test_the_same_files_give_the_same_bits(self, cub):
        again, answers = load("cub", root=ROOT, features="efflite0.mat")
        assert again.fingerprint() == cub[0].fingerprint()
        assert np.array_equal(answers.labels, cub[1].labels)

    def test_the_order_of_the_pool_changes_no_selection(self, cub):
        problem, answers = cub
        scores = ESZSL().fit(problem).scores(problem.pool)
        order = np.random.default_rng(1).permutation(len(problem.pool))
        one = top_per_class(scores, problem.classes.unseen, 15, PseudoLabels.none())
        two = top_per_class(scores[order], problem.classes.unseen, 15, PseudoLabels.none())
        pairs = set(zip(one.images.tolist(), one.labels.tolist(), strict=True))
        assert pairs == set(zip(order[two.images].tolist(), two.labels.tolist(), strict=True))
        before, after = (
            evaluate_scores(scores[o], Answers(answers.labels[o]), problem.classes, "zsl").top1
            for o in (np.arange(len(order)), order)
        )
        assert after == pytest.approx(before)

    @pytest.mark.parametrize("fold", [1, 2, 3])
    def test_the_folds_are_problems_of_their_own(self, fold):
        assert top1(*load("cub", root=ROOT, features="efflite0.mat", fold=fold)) > 0.4
