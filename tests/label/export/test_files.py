"""Models as files: onnxruntime says what the library says, or why not."""

import io
import json
import sys
import zipfile

import numpy as np
import pytest
import torch
from refusals import refused

from pren.label.export import export
from pren.label.export.files import as_bytes
from pren.label.export.program import Program
from pren.label.predictor import Predictor
from pren.methods.pren import PrEN
from pren.methods.registry import METHODS, create
from pren.trust import assess

pytestmark = pytest.mark.slow
runtime = pytest.importorskip("onnxruntime", reason="the extra export is not installed")
pytest.importorskip("onnxscript", reason="the extra export is not installed")

QUICK = {"heads": 4, "rounds": 1, "initial_batches": 3, "batches": 2, "batch_size": 8, "hidden": (8,)}
NOT_EXPORTED = ("uda",)


def fitted(name, problem, **params):
    quick = dict(QUICK) if METHODS[name].method is PrEN else {}
    if name == "progressive":
        del quick["heads"]
    return create(name, **{**quick, **params}).fit(problem)


def opened(path):
    session = runtime.InferenceSession(str(path))
    return session, json.loads(session.get_modelmeta().custom_metadata_map["pren"])


class Together(torch.nn.Module):
    """Many models of the same inputs in one graph: torch takes seconds for each graph, however small."""

    def __init__(self, models):
        super().__init__()
        self.models = torch.nn.ModuleList(model.module() for model in models)

    def forward(self, x):
        return tuple(model(x) for model in self.models)


def test_onnxruntime_gives_the_scores_of_the_library(make_problem, whole):
    """Of every method and every refinement, to 1e-5 of a score: networks compute in single precision."""
    problem = make_problem(setting="gzsl", m=5, pool_per_class=20)
    models = {name: fitted(name, problem, gamma=0.25) for name in METHODS if name not in NOT_EXPORTED}
    for refinement in ("soft-kmeans", "label-propagation"):
        models[refinement] = fitted("eszsl", problem, refinement=refinement, features="whitened")
    pool = whole(problem.pool)
    outputs = tuple(f"of {name}" for name in models)
    program = Program(Together(models.values()), "features", torch.from_numpy(pool[:2]), outputs, {"method": "all"})
    session = runtime.InferenceSession(as_bytes(program, "onnx"))
    for count in (1, 2, len(pool)):
        found = dict(zip(models, session.run(outputs, {"features": pool[:count]}), strict=True))
        expected = {name: model.scores(pool[:count]) for name, model in models.items()}
        wrong = [name for name in models if not np.allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)]
        assert wrong == []


@pytest.mark.parametrize("name", NOT_EXPORTED)
def test_a_method_that_cannot_says_why_and_leaves_nothing(name, make_problem, tmp_path):
    model = fitted(name, make_problem())
    with refused("export-unsupported"):
        export(Predictor(model), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def check_no_pickle(path, names):
    """A program of torch is an archive of plain files, with the facts among them."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    facts = next(json.loads(text) for name, text in contents.items() if name.endswith("extra/pren.json"))
    assert facts["classes"] == names
    pickles = [name for name, text in contents.items() if text[:1] == b"\x80" and text[-1:] == b"."]
    assert pickles == [name for name, text in contents.items() if zipfile.is_zipfile(io.BytesIO(text))] == []


@pytest.mark.parametrize("format", ["onnx", "torch"])
def test_confidence_is_the_second_output(format, make_problem, whole, tmp_path):
    problem = make_problem(n_seen=8, setting="gzsl", pool_per_class=12)
    model = fitted("eszsl", problem)
    predictor = Predictor(model, trust=assess(model, problem, 2, gamma=True))
    assert model.chosen_gamma_ != 0
    path, pool = tmp_path / "model", whole(problem.pool)
    facts = export(predictor, path, format, min_accuracy=0.3)
    if format == "onnx":
        scores, sure = opened(path)[0].run(["scores", "confidence"], {"features": pool})
    else:
        scores, sure = (part.numpy() for part in torch.export.load(path).module()(torch.from_numpy(pool)))
        check_no_pickle(path, list(problem.classes.names))
    found = predictor.label(pool, top=1, min_accuracy=0.3)
    assert np.allclose(scores, model.scores(pool))
    assert np.allclose(sure, found.confidence, equal_nan=True)
    assert np.array_equal(sure >= facts["threshold"], found.classes[:, 0] >= 0)
    assert facts["gamma"] == model.chosen_gamma_


def test_images_that_a_backbone_is_trained_on(make_problem, whole, tmp_path):
    problem = make_problem(shape=(1, 8, 12))
    model = fitted("pren", problem, refinement="soft-kmeans")
    facts = export(Predictor(model), tmp_path / "model.onnx")
    assert facts["input"] == {"shape": [1, 8, 12], "type": "float32"}
    assert facts["preprocessing"] is None
    pool = whole(problem.pool)
    (scores,) = opened(tmp_path / "model.onnx")[0].run(None, {"images": pool})
    assert np.allclose(scores, model.scores(pool), rtol=1e-5, atol=1e-6)


def test_facts_and_strange_names_of_classes_arrive(make_problem, whole, tmp_path):
    given = make_problem(setting="gzsl")
    names = ["[red]", 'quo"te', "új, 名", "=1+1", *given.classes.names[4:]]
    problem = given.from_arrays(
        whole(given.train),
        np.array(names)[given.labels],
        given.classes.signatures,
        whole(given.pool),
        names,
        setting="gzsl",
    )
    export(Predictor(fitted("eszsl", problem, gamma=0.25)), tmp_path / "model.onnx")
    facts = opened(tmp_path / "model.onnx")[1]
    assert (facts["classes"], facts["gamma"]) == (names, 0.25)


def test_what_is_missing_is_named(make_problem, tmp_path, monkeypatch):
    predictor = Predictor(fitted("eszsl", make_problem()))
    with refused("unknown-name"):
        export(predictor, tmp_path / "model", "tflite")
    with refused("no-rehearsals"):
        export(predictor, tmp_path / "model", min_accuracy=0.9)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with refused("extra-missing"):
        export(predictor, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_network_that_torch_cannot_trace_is_told(make_problem, tmp_path, monkeypatch):
    problem = make_problem()
    model = fitted("qfsl", problem)
    monkeypatch.setattr(type(model.network_), "forward", lambda self, x: x if x.sum().item() > 0 else -x)
    with refused("export-failed"):
        export(Predictor(model), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
