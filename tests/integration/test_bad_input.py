"""Whatever is wrong with the data or the folder: one message, exit code 2, and nothing lost."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow


def with_value(array, value, row=3):
    array = array.astype(float)
    array[row].flat[-1] = value
    return array


def with_label(a, label):
    labels = a["labels"].copy()
    labels[3] = label
    return {"labels": labels}


NOT_FINITE = ["NaN or infinite", "row 3"]
# What is wrong, how to change the arrays, and what the message must name.
WRONG = {
    "features of another length than the pool": (lambda a: {"features": a["features"][:, :-1]}, ["(5,)", "(6,)"]),
    "features that are no table": (lambda a: {"features": a["features"][0]}, ["features", "shape"]),
    "features with too many axes": (lambda a: {"features": a["features"][:, None]}, ["features", "shape"]),
    "a pool that is no table": (lambda a: {"pool": a["pool"][0]}, ["pool", "shape"]),
    "too few labels": (lambda a: {"labels": a["labels"][:-1]}, ["25", "(24,)"]),
    "labels in a table": (lambda a: {"labels": a["labels"][:, None]}, ["labels", "(25, 1)"]),
    "labels that are fractions": (lambda a: {"labels": a["labels"] + 0.5}, ["labels", "float64"]),
    "a label above the class table": (lambda a: with_label(a, 8), ["Label 8", "input 3", "0 to 7"]),
    "a label below the class table": (lambda a: with_label(a, -1), ["Label -1", "input 3"]),
    "a class without a signature": (
        lambda a: {"labels": np.array([*a["class_names"][a["labels"]][:-1], "unicorn"])},
        ["'unicorn'", "input 24", "no signature"],
    ),
    "labels as text without class names": (
        lambda a: {"labels": a["class_names"][a["labels"]], "class_names": None},
        ["add class_names"],
    ),
    "fewer signatures than names": (lambda a: {"signatures": a["signatures"][:-1]}, ["8 class names", "7 signatures"]),
    "signatures that are no table": (lambda a: {"signatures": a["signatures"][0]}, ["signatures"]),
    "signatures without attributes": (lambda a: {"signatures": a["signatures"][:, :0]}, ["signatures"]),
    "names that stand twice": (
        lambda a: {"class_names": np.array([*a["class_names"][:-1], "h class"])},
        ["'h class'", "0 and 7"],
    ),
    "a class without a name": (
        lambda a: {"class_names": np.array([*a["class_names"][:-1], " "])},
        ["Row 7", "no name"],
    ),
    "names that are numbers": (lambda a: {"class_names": np.arange(8)}, ["class_names"]),
    "an empty pool": (lambda a: {"pool": a["pool"][:0], "answers": None}, ["pool is empty"]),
    "no labelled images": (
        lambda a: {"features": a["features"][:0], "labels": a["labels"][:0]},
        ["No class has a labelled input"],
    ),
    "no unseen class": (
        lambda a: {key: a[key][:5] for key in ("signatures", "class_names")} | {"answers": None},
        ["Every class has labelled inputs"],
    ),
    "NaN features": (lambda a: {"features": with_value(a["features"], np.nan)}, ["features", *NOT_FINITE]),
    "infinite features": (lambda a: {"features": with_value(a["features"], np.inf)}, ["features", *NOT_FINITE]),
    "features too large": (lambda a: {"features": with_value(a["features"], 1e39)}, ["features", *NOT_FINITE]),
    "a NaN pool": (lambda a: {"pool": with_value(a["pool"], np.nan)}, ["pool", *NOT_FINITE]),
    "an infinite pool": (lambda a: {"pool": with_value(a["pool"], -np.inf)}, ["pool", *NOT_FINITE]),
    "NaN signatures": (lambda a: {"signatures": with_value(a["signatures"], np.nan)}, ["'e class'", "NaN or infinity"]),
    "infinite signatures": (
        lambda a: {"signatures": with_value(a["signatures"], np.inf)},
        ["'e class'", "NaN or infinity"],
    ),
    "a signature of zeros": (
        lambda a: {"signatures": a["signatures"] * (np.arange(8) != 3)[:, None]},
        ["'e class'", "all zeros"],
    ),
    "features that are text": (lambda a: {"features": a["features"].astype(str)}, ["features", "numbers"]),
    "too few answers": (lambda a: {"answers": a["answers"][:-1]}, ["answers", "(17,)"]),
    "an answer outside the class table": (
        lambda a: {"answers": a["answers"] + 3},
        ["answers", "Label 8", "input 0", "0 to 7"],
    ),
    "an array that nobody knows": (
        lambda a: {"feature": a["features"]},
        ["unknown array 'feature'", "Did you mean features"],
    ),
    "no pool": (lambda a: {"pool": None}, ["lacks pool"]),
    "no signatures and no labels": (lambda a: {"labels": None, "signatures": None}, ["lacks labels, signatures"]),
}


@pytest.mark.parametrize("what", WRONG)
def test_arrays_that_do_not_fit_together(bad, data, arrays, small, contents, what):
    change, parts = WRONG[what]
    name = data(**change(arrays()))
    before = contents()
    message = bad("fit", name, *small, "--out", "run")
    assert name in message.message
    for part in parts:
        assert part in message.message
    assert contents() == before


@pytest.mark.parametrize("method", ["pren", "eszsl"])
def test_one_class_is_enough_on_either_side(good, data, arrays, small, method):
    """The smallest problem that is one: one seen class, one unseen class, one image each."""
    content = arrays()
    rows = [0, 7]
    name = data(
        features=content["features"][:1],
        labels=content["labels"][:1],
        pool=content["pool"][:1],
        answers=np.array([1]),
        **{key: content[key][rows] for key in ("signatures", "class_names")},
    )
    good("fit", name, "--method", method, *(small if method == "pren" else ()), "--out", "run")
    assert Path("run/predictions.csv").read_text().splitlines()[1].startswith('"0","a class",')


def damaged_files():
    """Files that are no data, by name."""
    good = io.BytesIO()
    np.savez(good, features=np.zeros((4, 3)), labels=np.zeros(4, int), signatures=np.eye(3), pool=np.zeros((2, 3)))
    whole = good.getvalue()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("features", "not an array")
    single = io.BytesIO()
    np.save(single, np.zeros((4, 3)))
    objects = io.BytesIO()
    np.savez(objects, **{key: np.array([{}], dtype=object) for key in ("features", "labels", "signatures", "pool")})
    return {
        "garbage": b"this is not a data file",
        "empty": b"",
        "truncated": whole[: len(whole) // 2],
        "without its last byte": whole[:-1],
        "with a flipped bit": bytes(flipped),
        "another zip file": other.getvalue(),
        "a single array": single.getvalue(),
        "Python objects": objects.getvalue(),
        "the beginning of a zip file": b"PK\x03\x04" + b"\0" * 100,
    }


@pytest.mark.parametrize("what", damaged_files())
def test_files_that_are_no_data(bad, small, contents, what):
    Path("data.npz").write_bytes(damaged_files()[what])
    before = contents()
    assert "data.npz" in bad("fit", "data.npz", *small, "--out", "run").message
    assert contents() == before


def test_no_file(bad, small):
    assert bad("fit", "nowhere.npz", *small, "--out", "run").says("file-missing nowhere.npz")
    Path("folder.npz").mkdir()
    assert bad("fit", "folder.npz", *small, "--out", "run").says("array-unreadable folder.npz")
    Path("afile").touch()
    assert bad("fit", "afile/data.npz", *small, "--out", "run").says("array-unreadable data.npz")
    assert not Path("run").exists()


def test_paths_that_no_system_takes(bad, small, data):
    for path in ("x" * 300 + ".npz", "a\0b.npz"):
        bad("fit", path, *small, "--out", "run")
    bad("fit", data(), *small, "--out", "x" * 300)
    assert not Path("run").exists()


class TestFolders:
    def test_one_that_holds_a_run(self, good, bad, data, small, contents):
        good("fit", data(), *small, "--out", "run")
        before = contents()
        message = bad("fit", data(), *small, "--out", "run")
        assert message.says("run-exists")
        assert message.says("run-exists --resume")
        assert {name: content for name, content in contents().items() if name != "data.npz"} == {
            name: content for name, content in before.items() if name != "data.npz"
        }

    def test_one_that_holds_something_else(self, bad, data, small, contents):
        name = data()
        Path("out").mkdir()
        Path("out/.hidden").write_text("precious")
        before = contents()
        assert bad("fit", name, *small, "--out", "out").says("out-taken")
        assert contents() == before

    def test_a_file(self, bad, data, small, contents):
        name = data()
        Path("out").write_text("precious")
        before = contents()
        for folder in ("out", "out/deeper"):
            assert str(folder) in bad("fit", name, *small, "--out", folder).message
        assert contents() == before

    def test_a_link_to_nowhere(self, bad, data, small, contents):
        name = data()
        Path("out").symlink_to("nowhere")
        before = contents()
        bad("fit", name, *small, "--out", "out")
        assert contents() == before

    @pytest.mark.parametrize("verb", ["show", "evaluate"])
    def test_one_that_holds_no_run(self, bad, data, verb):
        Path("empty").mkdir()
        for folder in ("nowhere", "empty", data()):
            assert bad(verb, folder).says(f"not-a-run {folder}")

    @pytest.mark.parametrize("verb", ["show", "evaluate"])
    @pytest.mark.parametrize("content", ["", "data: [", "data: x\nwhat: y\n", "[]", "data: data.npz\nmethod: pern\n"])
    def test_one_whose_configuration_is_damaged(self, good, bad, data, verb, content):
        good("fit", data(), "--method", "eszsl", "--out", "run")
        Path("run/config.yaml").write_text(content)
        bad(verb, "run")

    @pytest.mark.parametrize("record", [3, [], {"hashes": 3}, {"hashes": None}], ids=str)
    @pytest.mark.parametrize("verb", ["show", "evaluate"])
    def test_one_whose_record_is_damaged(self, good, pren, data, verb, record):
        good("fit", data(), "--method", "eszsl", "--out", "run")
        lines = Path("run/config.yaml").read_text().partition("record:")[0]
        Path("run/config.yaml").write_text(f"{lines}record: {record}\n".replace("None", "null").replace("'", '"'))
        result = pren(verb, "run")  # what is not needed may be missing, but nothing may break
        assert result.code in (0, 2)

    @pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"top1": "high", "macc": 1}'])
    def test_one_whose_metrics_are_damaged(self, good, bad, data, content):
        good("fit", data(), "--method", "eszsl", "--out", "run")
        Path("run/metrics.json").write_text(content)
        assert bad("show", "run").says("damaged metrics.json")

    def test_one_whose_model_is_damaged(self, good, bad, data):
        name = data()
        good("fit", name, "--method", "eszsl", "--out", "run")
        model = Path("run/model.safetensors")
        model.write_bytes(model.read_bytes()[:-10])
        assert bad("evaluate", "run").says("damaged model.safetensors")
        assert bad("predict", "run", name, "--out", "labels.csv").says("damaged model.safetensors")
        model.unlink()
        assert bad("evaluate", "run").says("damaged model.safetensors")
        assert not Path("labels.csv").exists()


def test_a_defect_is_not_hidden(pren, data, monkeypatch):
    """What the user cannot mend keeps its traceback (and Python exits with 1)."""
    from pren.methods.rivals.eszsl import ESZSL

    def fail(self, problem):
        raise ZeroDivisionError

    monkeypatch.setattr(ESZSL, "_fit", fail)
    with pytest.raises(ZeroDivisionError):
        pren("fit", data(), "--method", "eszsl", "--out", "run")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 36.4 TiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_too_little_memory_is_explained(bad, data, monkeypatch, error):
    from pren.methods.rivals.eszsl import ESZSL

    def fail(self, problem):
        raise error

    monkeypatch.setattr(ESZSL, "_fit", fail)
    assert bad("fit", data(), "--method", "eszsl", "--out", "run").says("memory")


NO_TEXT = os.fsdecode(b"run\xff")


def test_a_folder_whose_name_is_no_text_is_refused_before_anything_is_done(bad, good, data, monkeypatch):
    name = data()
    with monkeypatch.context() as patch:
        patch.setattr("pren.runs.run.open_problem", None)
        assert bad("fit", name, "--method", "eszsl", "--out", NO_TEXT).says("not-text 8")
    assert bad("compare", name, "--methods", "eszsl", "--out", NO_TEXT).says("not-text")
    assert not Path(NO_TEXT).exists()
    good("fit", name, "--method", "eszsl", "--out", "run")
    Path("run").rename(NO_TEXT)
    for verb in ("show", "evaluate"):
        assert bad(verb, NO_TEXT).says("not-text")
