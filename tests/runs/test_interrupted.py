"""Ctrl-C in any phase of a run: the folder is there from the first second, and the run goes on from it."""

import pytest
from refusals import refused

from pren.runs.fit import configure
from pren.runs.run import Progress, run_config
from pren.runs.settings import Settings
from pren.store.folder import RunFolder

from .conftest import SMALL, Interrupted

pytestmark = pytest.mark.slow

SOME = {"backbone": "test_resnet", "rehearsals": 2, "seed": 1}
PHASES = {
    "reading": ("pren.store.config.RunConfig.load_data", {"method": "eszsl"}),
    "extraction": ("pren.images.side_by_side.FeatureStore.extract", {"method": "eszsl"}),
    "fine-tuning": (
        "pren.images.finetune.finetuned.TailTrainer.tail",
        {"method": "eszsl", "finetune": True, "finetune_epochs": 1, "finetune_strength": 0.5},
    ),
    "training": ("pren.store.folder.RunFolder.save_round", {"method": "pren", "frozen": True, **SMALL, "dim": 2}),
    "rehearsing": ("pren.trust.rehearsal.clone", {"method": "eszsl"}),
    "labelling": ("pren.label.outcome.label_pool", {"method": "eszsl"}),
    "writing": ("pren.store.folder.write_manifest", {"method": "eszsl"}),
}


@pytest.fixture(autouse=True)
def place(photographs, tmp_path, monkeypatch):
    monkeypatch.setenv("PREN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def fit(weights, settings, out="run", resume=None, start=None):
    said = Settings.of({"data": "photographs", "weights": str(weights), **SOME, **settings})
    wanted = configure(said if resume is None else Settings.of({}), resume=resume)
    more = {"command": "pren fit" if resume is None else "pren fit --resume", "start": start, "progress": Progress()}
    return run_config(wanted, resume or out, resume=resume is not None, report=False, **more)


def interrupt(phase, weights, monkeypatch, start=None):
    """Interrupt a run in a phase; returns its settings."""
    where, settings = PHASES[phase]

    def interrupted(*_, **__):
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(where, interrupted)
        with pytest.raises(Interrupted):
            fit(weights, settings, start=start)
    return settings


@pytest.mark.parametrize("phase", PHASES)
def test_a_run_goes_on_from_every_phase(phase, tiny_weights, monkeypatch):
    settings = interrupt(phase, tiny_weights, monkeypatch)
    assert RunFolder("run").holds_run()
    assert not RunFolder("run").finished()
    resumed = fit(tiny_weights, {}, resume="run")
    whole = fit(tiny_weights, settings, out="whole")
    assert resumed.labels.labels.tolist() == whole.labels.labels.tolist()
    assert resumed.labels.confidence.tolist() == whole.labels.confidence.tolist()
    for record in (part.config.record for part in (resumed, whole)):
        assert record["hashes"] == whole.config.record["hashes"]
        assert record["id"] == whole.config.record["id"]
        assert record["command"] == RunFolder("run").config().record["command"] == "pren fit"


def test_a_continued_run_still_starts_from_the_model_of_the_other(tiny_weights, monkeypatch):
    settings = PHASES["training"][1]
    fit(tiny_weights, settings, out="first")
    interrupt("training", tiny_weights, monkeypatch, start="first")
    resumed = fit(tiny_weights, {}, resume="run")
    whole = fit(tiny_weights, settings, out="whole", start="first")
    assert resumed.history == whole.history
    assert resumed.history != fit(tiny_weights, settings, out="alone").history


def test_what_fails_before_anything_is_done_leaves_no_folder(tiny_weights, tmp_path):
    (tmp_path / "photographs/signatures.csv").write_text("nothing")
    with refused("folder-unusable"):
        fit(tiny_weights, {"method": "eszsl"})
    assert not (tmp_path / "run").exists()


def test_data_that_changed_after_they_were_read_are_refused(tiny_weights, tmp_path, monkeypatch):
    interrupt("rehearsing", tiny_weights, monkeypatch)
    pool = tmp_path / "photographs/unlabelled"
    (pool / "0.png").write_bytes((pool / "2.png").read_bytes())
    with refused("data-changed"):
        fit(tiny_weights, {}, resume="run")


@pytest.mark.parametrize(
    ("settings", "code"),
    [({"rehearsals": 1}, "rehearsals-one"), ({"rehearsals": 0, "min_accuracy": 0.9}, "no-rehearsals")],
)
def test_impossible_rehearsals_are_refused_before_anything_is_read(tiny_weights, tmp_path, monkeypatch, settings, code):
    monkeypatch.setattr("pren.store.config.RunConfig.load_data", None)
    with refused(code):
        fit(tiny_weights, {"method": "eszsl", **settings})
    assert not (tmp_path / "run").exists()
