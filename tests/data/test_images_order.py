"""The photographs of folders in the form of xlsa17: which image is which, and what can be wrong with that."""

import io
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from refusals import refused
from scipy.io import savemat

from pren.data import load
from pren.data.benchmarks.xlsa17_images import names_below, spelled_class
from pren.images.files import ImageFiles
from pren.images.preprocessing import plain
from tests.data.test_xlsa17 import CLASSES, LABELS, TEST_UNSEEN, N, cell, contents, images

NAMES = [f"{CLASSES[label]}/{image}.jpg" for image, label in enumerate(LABELS)]
FEATURES = contents()["res101.mat"]
ORDER = {"image_files": FEATURES["image_files"]}


@cache
def photograph(number):
    """A file with one image, as grey as its number."""
    content = io.BytesIO()
    Image.new("RGB", (2, 2), (number, number, number)).save(content, "JPEG", quality=100)
    return content.getvalue()


@pytest.fixture
def root(tmp_path):
    """Write such a folder with its photographs; `files` replace or (None) remove whole files."""

    def write(files=None, below="photos"):
        for name, content in {**contents(), **(files or {})}.items():
            if isinstance(content, dict):
                savemat(tmp_path / name, content)
            elif content is not None:
                (tmp_path / name).write_text(content)
        for number, name in enumerate(NAMES):
            path = tmp_path / below / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(photograph(number))
        return tmp_path

    return write


def photos(folder, **options):
    return load("xlsa17", root=folder, **{"images": folder / "photos", **options})


def numbers(inputs):
    """Which images these are, by the names of their files."""
    return [int(inputs._path(place).stem) for place in range(len(inputs))]


OPTIONS = [
    {},
    {"train_on": "trainval"},
    {"setting": "gzsl"},
    {"setting": "gzsl", "seen_test": "random"},
    {"fold": 1},
    {"fold": 1, "setting": "gzsl"},
    {"scale": "original"},
]
ORDERS = {
    "res101.mat": {},
    "image_files.mat": {"image_files.mat": ORDER, "res101.mat": None},
    "mine.mat": {"mine.mat": FEATURES, "res101.mat": None},
}


class TestTheSameProblem:
    def check(self, photographs, features):
        (problem, answers), (expected, expected_answers) = photographs, features
        for ours, theirs in ((problem.train, expected.train), (problem.pool, expected.pool)):
            assert isinstance(ours, ImageFiles)
            assert numbers(ours) == images(theirs)
        assert problem.labels.tolist() == expected.labels.tolist()
        assert answers.labels.tolist() == expected_answers.labels.tolist()
        assert problem.classes.names == expected.classes.names
        assert problem.fingerprint()["split"] == expected.fingerprint()["split"]

    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_as_with_features(self, root, options):
        folder = root()
        self.check(photos(folder, **options), load("xlsa17", root=folder, **options))

    @pytest.mark.parametrize("order", ORDERS)
    def test_whichever_file_gives_the_order(self, root, tmp_path, order):
        (tmp_path / "elsewhere").mkdir()
        savemat(tmp_path / "elsewhere" / "features.mat", FEATURES)
        folder = root(ORDERS[order])
        problem, answers = photos(folder)
        self.check((problem, answers), load("xlsa17", root=folder, features=tmp_path / "elsewhere/features.mat"))
        assert list(problem.source["files"]) == ["att_splits.mat", order]

    def test_down_to_the_pixels(self, root):
        problem, _ = photos(root())
        assert problem.pool.sample_shape == (3, 224, 224)
        for inputs in (problem.train, problem.pool):
            levels = inputs.prepared(plain((3, 2, 2)))[np.arange(len(inputs))][:, 0, 0, 0] * 255
            assert levels.round().int().tolist() == numbers(inputs)
        assert set(numbers(problem.pool)) == TEST_UNSEEN

    def test_the_order_of_the_folder_does_not_matter_but_that_of_the_file_does(self, root):
        assert sorted(NAMES) != NAMES
        folder = root({"res101.mat": None, "image_files.mat": {"image_files": ORDER["image_files"][::-1]}})
        with refused("split-clash"):
            photos(folder)

    def test_the_record(self, root):
        folder = root({"image_files.mat": ORDER})
        source = photos(folder, fold=1)[0].source
        assert list(source["files"]) == ["att_splits.mat", "image_files.mat", "trainclasses1.txt", "valclasses1.txt"]
        assert source["images"] == {"listed": N, "train": 24, "pool": 16}
        assert str(folder) not in str(source)
        assert "images" not in load("xlsa17", root=folder, images=False)[0].source

    def test_other_photographs_are_other_data(self, root):
        before = photos(root())[0].fingerprint()
        path = root() / "photos" / NAMES[0]
        path.write_bytes(photograph(200))
        after = photos(path.parents[2])[0].fingerprint()
        assert (before["split"] == after["split"], before["data"] == after["data"]) == (True, False)


class TestOrder:
    def test_image_files_mat_comes_first_and_then_the_usual_features(self, root):
        wrong = {**FEATURES, "image_files": cell([f"{name}.jpg" for name in NAMES])}
        folder = root({"a.mat": wrong})
        assert "res101.mat" in photos(folder)[0].source["files"]
        folder = root({"a.mat": wrong, "res101.mat": wrong, "image_files.mat": ORDER})
        assert "image_files.mat" in photos(folder)[0].source["files"]

    def test_the_usual_features_without_names_leave_it_to_others(self, root):
        files = {"res101.mat": {k: v for k, v in FEATURES.items() if k != "image_files"}}
        assert "b.mat" in photos(root({**files, "b.mat": FEATURES}))[0].source["files"]

    def test_several_others_must_agree(self, root):
        elsewhere = {**FEATURES, "image_files": cell([f"C:\\x\\{name}".replace("/", "\\") for name in NAMES])}
        folder = root({"res101.mat": None, "a.mat": FEATURES, "b.mat": elsewhere})
        assert "a.mat" in photos(folder)[0].source["files"]
        root({"res101.mat": None, "b.mat": {**FEATURES, "image_files": FEATURES["image_files"][::-1]}})
        with refused("images-order"):
            photos(folder)

    @pytest.mark.parametrize("named", [False, True])
    def test_nothing_says_it(self, root, named):
        files = {"res101.mat": {"features": FEATURES["features"], "labels": FEATURES["labels"]} if named else None}
        with refused("images-order"):
            photos(root(files))

    @pytest.mark.parametrize(
        ("files", "refusal"),
        [
            ({"image_files.mat": {"x": 1}}, "mat-missing-key image_files.mat image_files"),
            ({"image_files.mat": {"image_files": np.ones(N)}}, "mat-shape image_files"),
            ({"image_files.mat": {"image_files": cell([])}}, "images-missing"),
            ({"image_files.mat": {"image_files": ORDER["image_files"][:-1]}}, "mat-entry 1 79"),
            ({"res101.mat": {**FEATURES, "labels": FEATURES["labels"][1:]}}, "mat-shape 80 image_files 79"),
            ({"res101.mat": {**FEATURES, "labels": FEATURES["labels"] - 1}}, "mat-entry 0"),
        ],
    )
    def test_damaged(self, root, files, refusal):
        with refused(refusal) as error:
            photos(root(files))
        assert str(root()) in str(error.value)


class TestLabels:
    def test_where_file_and_folders_disagree(self, root):
        labels = FEATURES["labels"].copy()
        labels[7] = labels[7] % 8 + 1
        with refused("images-labels") as error:
            photos(root({"res101.mat": {**FEATURES, "labels": labels}}))
        assert all(fact in str(error.value) for fact in (f"/BS/somebody/x/{NAMES[7]}", CLASSES[LABELS[7]]))

    def test_folders_that_spell_no_class(self, root):
        flat = cell([f"/x/all/{number}.jpg" for number in range(N)])
        folder = root({"res101.mat": {**FEATURES, "image_files": flat}})
        (folder / "flat").mkdir()
        for number in range(N):
            (folder / "flat" / f"{number}.jpg").write_bytes(photograph(number))
        problem, _ = photos(folder, images=folder / "flat")
        assert numbers(problem.train) == images(load("xlsa17", root=folder)[0].train)
        root({"image_files.mat": {"image_files": flat}})
        with refused("images-labels"):
            photos(folder, images=folder / "flat")

    @pytest.mark.parametrize(
        ("path", "spelled"),
        [
            ("/BS/x/SUN/images/b/bakery/kitchen/x.jpg", "bakery_kitchen"),
            ("/BS/x/SUN/images/k/kitchen/x.jpg", "kitchen"),
            ("/BS/x/SUN/images/a/airport/airport/x.jpg", "airport_airport"),
            ("C:\\data\\bakery\\kitchen\\x.jpg", "bakery_kitchen"),
            ("/y//JPEGImages/killer+whale/killer+whale_10001.jpg", "killer+whale"),
            ("killer+whale/x.jpg", "killer+whale"),
            ("/kitchen/other/x.jpg", None),
            ("kitchen", None),
            ("a/Kitchen/x.jpg", None),
        ],
    )
    def test_what_folders_spell(self, path, spelled):
        classes = ["kitchen", "bakery_kitchen", "airport_airport", "killer+whale"]
        row = spelled_class(path, {name: row for row, name in enumerate(classes)})
        assert (None if row is None else classes[row]) == spelled


part = st.text("ab.+ _", min_size=1, max_size=3).filter(lambda text: text.strip(".") == text)
path = st.lists(part, min_size=1, max_size=3)


class TestNames:
    @given(st.lists(path, min_size=1, unique_by="/".join), st.lists(part, max_size=4), st.data())
    def test_any_end_of_the_paths_that_is_there(self, names, prefix, data):
        """However much of the authors' folders the user has too, every name is of a file that is there."""
        kept = data.draw(st.integers(0, len(prefix)))
        there = {"/".join(prefix[kept:] + name) for name in names}
        for separator in ("/", "\\", "//"):
            found = names_below(["/" + separator.join(prefix + name) for name in names], there)
            assert set(found) <= there
            assert all(name.endswith("/".join(steps)) for name, steps in zip(found, names, strict=True))
            assert len(set(found)) == len(names)

    def test_paths_of_different_depth(self):
        there = {"a/abbey/1.jpg", "a/airport/airport/2.jpg"}
        for folder in ("/BS/SUN/images", "a", ""):
            paths = [f"{folder}/a/abbey/1.jpg", f"{folder}/a/airport/airport/2.jpg"]
            assert names_below(paths, there) == ["a/abbey/1.jpg", "a/airport/airport/2.jpg"]

    @pytest.mark.parametrize("below", ["photos/x", "photos/somebody/x"])
    def test_folders_further_up_are_found_too(self, root, below):
        problem, _ = photos(root(below=below))
        assert problem.train._path(0) == root(below=below) / below / NAMES[numbers(problem.train)[0]]

    @pytest.mark.parametrize("wrong", ["/BS/x/../../secret.jpg", "..\\secret.jpg", "", "/", ".", "a/" * 65])
    def test_paths_that_lead_elsewhere(self, root, wrong):
        names = cell([wrong or " ", *ORDER["image_files"].ravel()[1:]])
        with refused("path-outside"):
            photos(root({"res101.mat": {**FEATURES, "image_files": names}}))

    def test_an_image_twice(self, root):
        names = ORDER["image_files"].copy()
        same = np.flatnonzero(LABELS[0] == LABELS)
        names[same[1]] = names[same[0]]
        with refused("images-repeat"):
            photos(root({"res101.mat": {**FEATURES, "image_files": names}}))

    def test_links_out_of_the_folder(self, root):
        folder = root()
        path = folder / "photos" / NAMES[3]
        path.rename(folder / "outside.jpg")
        path.symlink_to(folder / "outside.jpg")
        with refused("file-odd"):
            photos(folder)


class TestMissing:
    def test_how_many_and_the_first_few(self, root):
        folder = root()
        for number in (3, 5, 40, 41, 79):
            (folder / "photos" / NAMES[number]).unlink()
        with refused("images-missing 5 80 res101.mat") as error:
            photos(folder)
        assert f"{NAMES[3]}, {NAMES[5]}, {NAMES[40]}." in str(error.value)

    @pytest.mark.parametrize(
        ("options", "refusal"),
        [
            ({"images": True}, "images-missing"),
            ({"images": "nowhere"}, "images-missing"),
            ({"features": "res101.mat"}, "option-conflict"),
            ({"images": True, "features": "res101.mat"}, "option-conflict"),
            ({"images": [1]}, "data-option-value 1"),
        ],
    )
    def test_options_that_cannot_be(self, root, options, refusal):
        with refused(refusal):
            photos(root(), **options)

    def test_a_file_is_no_folder(self, root):
        with refused("images-missing"):
            photos(root(), images=root() / "res101.mat")


# The folder of each benchmark, a place for its images, and who publishes them.
USUAL = {
    "cub": ("CUB", "CUB_200_2011/images", "data.caltech.edu"),
    "sun": ("SUN", "SUN/images", "cs.brown.edu/~gmpatter/sunattributes.html"),
    "sun10": ("SUN", "images", "cs.brown.edu/~gmpatter/sunattributes.html"),
    "awa2": ("AWA2", "Animals_with_Attributes2/JPEGImages", "cvml.ista.ac.at/AwA2"),
}


@pytest.mark.parametrize("name", USUAL)
def test_the_usual_places_of_benchmarks(root, tmp_path, name):
    folder, usual, _published = USUAL[name]
    root({"testclasses_sun10.txt": "\n".join(CLASSES[5:])})
    place = tmp_path / "xlsa17" / "data" / folder
    place.mkdir(parents=True)
    for path in [*tmp_path.glob("*.mat"), *tmp_path.glob("*.txt")]:
        path.rename(place / path.name)
    for images_option in (True, Path("nowhere")):
        with refused("images-missing"):
            load(name, root=tmp_path, images=images_option)
    expected = numbers(load(name, root=tmp_path, images=tmp_path / "photos")[0].pool)
    (tmp_path / usual).parent.mkdir(exist_ok=True)
    (tmp_path / "photos").rename(tmp_path / usual)
    assert numbers(load(name, root=tmp_path, images=True)[0].pool) == expected
    (tmp_path / usual / NAMES[0]).unlink()
    with refused("images-missing"):
        load(name, root=tmp_path, images=True)
