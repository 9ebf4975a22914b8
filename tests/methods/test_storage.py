"""Saving and loading: the same scores to the bit, and no harm from files that are damaged or hostile."""

import json
import os
import pickle  # to write what must never be read
import subprocess
import zipfile
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors import safe_open
from safetensors.torch import save_file

from pren.foundation.errors import PrenError
from pren.methods.base import Method
from pren.methods.pren import PrEN
from pren.methods.registry import METHODS
from pren.methods.rivals.eszsl import ESZSL
from pren.methods.storage import FORMAT, MODEL_FILE, load_model, write_model


def read(folder):
    """Tensors and header of a model file."""
    with safe_open(folder / MODEL_FILE, framework="pt") as file:
        return {key: file.get_tensor(key) for key in file.keys()}, json.loads(file.metadata()["pren"])  # noqa: SIM118


def write(folder, tensors, header):
    """With the right checksum, so that what stands behind it is tested too; text is written as it is."""
    if isinstance(header, str):
        save_file(tensors, folder / MODEL_FILE, metadata={"pren": header})
    else:
        write_model(folder / MODEL_FILE, tensors, header)


@pytest.fixture(params=["pren", "eszsl"])
def saved(request, tmp_path, make_problem, small):
    """A folder with a model."""
    model = small() if request.param == "pren" else ESZSL()
    model.fit(make_problem()).save(tmp_path)
    return tmp_path


class TestRoundTrip:
    def test_scores_are_the_same_bits(self, fitted, tmp_path):
        model, problem = fitted
        model.save(tmp_path / "a" / "b")
        assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == [MODEL_FILE]
        again = load_model(tmp_path / "a" / "b")
        assert type(again) is type(model)
        assert np.array_equal(again.scores(problem.pool), model.scores(problem.pool))
        assert np.array_equal(again.predict(problem.pool), model.predict(problem.pool))

    def test_everything_else_is_the_same_too(self, fitted, tmp_path):
        model, _ = fitted
        model.save(tmp_path)
        again = load_model(str(tmp_path))
        assert again.get_params() == model.get_params()
        assert {name: type(value) for name, value in again.get_params().items()} == {
            name: type(value) for name, value in model.get_params().items()
        }
        assert again.classes_.names == model.classes_.names
        assert np.array_equal(again.classes_.signatures, model.classes_.signatures)
        assert np.array_equal(again.classes_.seen, model.classes_.seen)
        assert again.classes_.seen.dtype == bool
        assert again.classes_.normalised == model.classes_.normalised
        assert again.setting_ == model.setting_
        assert again.sample_shape_ == model.sample_shape_

    def test_the_same_model_is_the_same_file(self, fitted, tmp_path):
        model, _ = fitted
        model.save(tmp_path / "one")
        load_model(tmp_path / "one").save(tmp_path / "two")
        assert (tmp_path / "one" / MODEL_FILE).read_bytes() == (tmp_path / "two" / MODEL_FILE).read_bytes()

    @pytest.mark.parametrize(
        "params",
        [
            {"hidden": ()},
            {"hidden": (5, 4, 3)},
            {"output_relu": False},
            {"projection": False},
            {"completion": "complement", "dim": 3},
            {"augmentation": "flip"},
            {"gzsl_rule": "probability"},
            {"seed": 2**40},
        ],
        ids=str,
    )
    def test_every_kind_of_network_comes_back(self, small, make_problem, tmp_path, params):
        problem = make_problem(setting="gzsl", shape=(1, 8, 12) if "augmentation" in params else (5,))
        model = small(**params).fit(problem)
        model.save(tmp_path)
        assert np.array_equal(load_model(tmp_path).scores(problem.pool), model.scores(problem.pool))

    def test_any_class_name_comes_back(self, make_problem, tmp_path):
        names = ["[red]", "=1+1", "a, b", "ä ö", "日本", '"', "\u202e", "'"]
        model = ESZSL().fit(make_problem())
        table = model.classes_
        model.classes_ = type(table)(tuple(names), table.signatures, table.seen, table.normalised)
        model.save(tmp_path)
        assert load_model(tmp_path).classes_.names == tuple(names)

    def test_a_loaded_model_can_be_fitted_again(self, fitted, tmp_path):
        model, problem = fitted
        model.save(tmp_path)
        again = load_model(tmp_path).fit(problem)
        assert np.array_equal(again.scores(problem.pool), model.scores(problem.pool))

    def test_load_is_a_method_of_the_class_and_checks_it(self, saved):
        kind, other = (PrEN, ESZSL) if isinstance(load_model(saved), PrEN) else (ESZSL, PrEN)
        assert type(kind.load(saved)) is kind
        assert type(Method.load(saved)) is kind
        with refused("other-method"):
            other.load(saved)

    def test_saving_that_is_interrupted_leaves_the_old_model(self, saved, make_problem, monkeypatch):
        before = (saved / MODEL_FILE).read_bytes()

        def interrupt(_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ESZSL().fit(make_problem()).save(saved)
        assert (saved / MODEL_FILE).read_bytes() == before

    def test_saving_replaces_what_was_there(self, saved, make_problem):
        model = ESZSL(feature_reg=7.0).fit(make_problem())
        model.save(saved)
        assert load_model(saved).feature_reg == 7.0


class TestDamage:
    def refuse(self, folder, refusal="damaged"):
        before = (folder / MODEL_FILE).read_bytes()
        with refused(refusal):
            load_model(folder)
        assert (folder / MODEL_FILE).read_bytes() == before

    def test_no_model(self, tmp_path):
        for folder in (tmp_path, tmp_path / "nowhere"):
            with refused("model-missing"):
                load_model(folder)

    def test_a_folder_in_its_place(self, tmp_path):
        (tmp_path / MODEL_FILE).mkdir()
        with refused("file-odd"):
            load_model(tmp_path)

    def test_truncated_anywhere(self, saved):
        content = (saved / MODEL_FILE).read_bytes()
        for length in (0, 4, 8, 9, 100, len(content) // 2, len(content) - 1):
            (saved / MODEL_FILE).write_bytes(content[:length])
            self.refuse(saved)

    def test_something_else_altogether(self, saved):
        for content in (b"garbage" * 100, b"\0" * 1000, b"\xff" * 1000, b"{}" * 50):
            (saved / MODEL_FILE).write_bytes(content)
            self.refuse(saved)

    def test_a_pickle_does_not_run(self, saved, tmp_path):
        trap = tmp_path / "trap"

        class Hostile:
            def __reduce__(self):
                return subprocess.check_call, (["touch", str(trap)],)

        (saved / MODEL_FILE).write_bytes(pickle.dumps(Hostile()))
        self.refuse(saved)
        with zipfile.ZipFile(saved / MODEL_FILE, "w") as file:  # as torch.save writes it
            file.writestr("archive/data.pkl", pickle.dumps(Hostile()))
            file.writestr("archive/version", "3")
        self.refuse(saved)
        assert not trap.exists()
        pickle.loads(pickle.dumps(Hostile()))  # noqa: S301  (the trap does work)
        assert trap.exists()

    def test_another_file_of_tensors(self, saved):
        save_file({"weights": torch.zeros(3)}, saved / MODEL_FILE)
        self.refuse(saved)
        save_file({"weights": torch.zeros(3)}, saved / MODEL_FILE, metadata={"format": "pt"})
        self.refuse(saved)

    @pytest.mark.parametrize(
        "header",
        ["", "nonsense", "[]", "3", "null", "{}", f'{{"format": {FORMAT}}}', "[" * 100_000],
        ids=lambda text: text[:20],
    )
    def test_a_header_that_is_none(self, saved, header):
        tensors, _ = read(saved)
        write(saved, tensors, header)
        self.refuse(saved)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("format", str(FORMAT)),
            ("format", None),
            ("method", "perceptron"),
            ("method", 3),
            ("params", {"haeds": 3}),
            ("params", {"gamma": "x"}),
            ("params", []),
            ("setting", "fsl"),
            ("sample_shape", [5, "x"]),
            ("class_names", ["a"]),
            ("class_names", "abcdefgh"),
            ("class_names", ["a"] * 8),
            ("seen", [True]),
            ("seen", [True] * 8),
            ("sample_shape", [6]),
            ("sample_shape", [1, 8, 12]),
            ("sample_shape", []),
            ("learned", []),
            ("extra", 1),
        ],
        ids=str,
    )
    def test_a_header_that_does_not_fit(self, saved, key, value):
        tensors, header = read(saved)
        write(saved, tensors, {**header, key: value})
        self.refuse(saved)

    @pytest.mark.parametrize("key", ["format", "version", "method", "params", "class_names", "seen", "setting"])
    def test_a_header_that_lacks_something(self, saved, key):
        tensors, header = read(saved)
        del header[key]
        write(saved, tensors, header)
        self.refuse(saved)

    def test_another_format_number_is_named(self, saved):
        tensors, header = read(saved)
        for number in (FORMAT - 1, FORMAT + 1):
            write(saved, tensors, {**header, "format": number})
            self.refuse(saved, f"format-other {number} {FORMAT}")

    @pytest.mark.slow
    def test_any_flipped_bit(self, saved):
        content = (saved / MODEL_FILE).read_bytes()
        for place in np.random.default_rng(0).choice(len(content), 200, replace=False):
            flipped = bytearray(content)
            flipped[place] ^= 1
            (saved / MODEL_FILE).write_bytes(flipped)
            self.refuse(saved)

    def test_a_defect_of_ours_is_not_called_damage(self, saved, monkeypatch):
        """Somebody who is told that a file is damaged throws it away."""

        def defective(self, tensors, facts):
            return len(3)

        monkeypatch.setattr(type(load_model(saved)), "_restore", defective)
        with pytest.raises(TypeError):
            load_model(saved)

    @pytest.mark.parametrize("backbone", ["resnet-9000", 3, [], {}, ["small-cnn"], True], ids=str)
    def test_a_backbone_that_there_is_not(self, saved, backbone):
        tensors, header = read(saved)
        if header["method"] == "pren":
            write(saved, tensors, {**header, "learned": {"backbone": backbone}})
            self.refuse(saved)

    def test_facts_without_a_backbone_are_no_bare_key(self, saved):
        tensors, header = read(saved)
        if header["method"] == "pren":
            write(saved, tensors, {**header, "learned": {}})
            self.refuse(saved, "damaged backbone")

    def test_too_little_memory_is_not_called_damage(self, saved, monkeypatch):
        monkeypatch.setattr(type(load_model(saved)), "_restore", Mock(side_effect=MemoryError))
        with refused("memory"):
            load_model(saved)

    def test_hidden_layers_that_no_memory_holds(self, saved):
        tensors, header = read(saved)
        if header["method"] == "pren":
            write(saved, tensors, {**header, "params": {**header["params"], "hidden": [10**15]}})
            self.refuse(saved)

    @pytest.mark.parametrize("bad", [float("nan"), float("inf")])
    def test_tensors_that_hold_no_numbers(self, saved, bad):
        tensors, header = read(saved)
        key = next(key for key in sorted(tensors) if tensors[key].dtype.is_floating_point)
        tensors[key] = torch.full_like(tensors[key], bad)
        write(saved, tensors, header)
        self.refuse(saved, "damaged")


@pytest.mark.slow
class TestTensors:
    """Whatever is not of the shape and type that the method writes is refused, for every method."""

    @pytest.fixture(params=METHODS)
    def saved(self, request, tmp_path, make_problem_of, quick):
        quick(request.param).fit(make_problem_of(request.param)).save(tmp_path)
        return tmp_path

    def test_any_missing_tensor(self, saved):
        tensors, header = read(saved)
        assert tensors
        for missing in tensors:
            write(saved, {key: value for key, value in tensors.items() if key != missing}, header)
            with refused("damaged"):
                load_model(saved)

    def test_any_tensor_of_another_shape(self, saved, make_problem):
        """What can be told is refused; the rest (PrEN's scores need no signatures) changes nothing."""
        pool = make_problem().pool
        expected = load_model(saved).scores(pool)
        tensors, header = read(saved)
        for key, value in tensors.items():
            for wrong in (torch.cat([value, value]), value[..., :-1], value.flatten()[0]):
                write(saved, {**tensors, key: wrong.contiguous()}, header)
                try:
                    model = load_model(saved)
                except PrenError:
                    continue
                assert np.array_equal(model.scores(pool), expected)

    def test_any_tensor_of_another_kind(self, saved):
        tensors, header = read(saved)
        for key, value in tensors.items():
            for kind in (torch.bfloat16, torch.complex64):
                write(saved, {**tensors, key: value.to(kind)}, header)
                try:
                    model = load_model(saved)
                except PrenError:
                    continue
                assert np.isfinite(model.scores(np.zeros((2, 5), dtype=np.float32))).all()

    def test_a_tensor_too_many(self, saved):
        tensors, header = read(saved)
        write(saved, {**tensors, "model.more": torch.zeros(2)}, header)
        with refused("damaged"):
            load_model(saved)

    def test_a_model_of_features_too_many_to_hold(self, saved):
        """Numbers in the header ask for no memory."""
        tensors, header = read(saved)
        write(saved, tensors, {**header, "sample_shape": [10**12]})
        with refused("damaged"):
            load_model(saved)


EVERY = sorted(METHODS)
QUICK = {"epochs": 1, "heads": 4, "dim": 2, "rounds": 1, "initial_batches": 2, "batches": 1}


@pytest.fixture(scope="module")
def models(make_problem, tmp_path_factory):
    """A folder with a model of each method."""
    problem, root = make_problem(n_seen=6, n_unseen=3, m=5), tmp_path_factory.mktemp("models")
    for name in EVERY:
        kind = METHODS[name].method
        known = {key: value for key, value in {**METHODS[name].preset, **QUICK}.items() if key in kind.params}
        if kind.one_space:
            continue
        kind(**known).fit(problem).save(root / name)
    return root, problem


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_numbers_that_torch_cannot_compute_with(saved, dtype):
    tensors, header = read(saved)
    name = max(tensors, key=lambda key: tensors[key].numel())
    tensors[name] = tensors[name].to(torch.float32).to(dtype)
    write(saved, tensors, header)
    with refused("damaged"):
        load_model(saved)


@pytest.mark.parametrize("shape", [[10**30], [2**31, 2**31], [3] * 9, [], [0], [-5], [1 << 20] * 4])
def test_shapes_that_no_input_has(saved, shape):
    tensors, header = read(saved)
    write(saved, tensors, {**header, "sample_shape": shape})
    with refused("damaged"):
        load_model(saved)


@pytest.mark.slow
def test_scores_are_numbers_or_an_error(models):
    """Whatever stands in a model file: every float at its maximum, and other classes that are seen."""
    root, problem = models
    for folder in sorted(root.iterdir()):
        tensors, header = read(folder)
        learned = [name for name, tensor in tensors.items() if tensor.is_floating_point() and name != "signatures"]
        forged = [
            ({**tensors, name: torch.full_like(tensors[name], torch.finfo(tensors[name].dtype).max)}, header)
            for name in learned
        ]
        forged += [(tensors, {**header, "seen": seen}) for seen in ([True] * 8 + [False], [False] * 8 + [True], [True])]
        for number, content in enumerate(forged):
            broken = folder / "broken" / str(number)
            broken.mkdir(parents=True)
            write(broken, *content)
            scores, refusal = np.zeros((1, 1)), ""
            try:
                scores = load_model(broken).scores(problem.pool)
            except PrenError as error:
                refusal = error.code
            assert refusal in ("", "damaged", "scores-not-finite"), (folder.name, number)
            assert (scores < np.inf).all(), (folder.name, number)
