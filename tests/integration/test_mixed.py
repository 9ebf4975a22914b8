"""``--setting auto``: whether seen classes are in the pool, found out and said."""

import json
from pathlib import Path

import numpy as np
import pytest

SOON = ("--rehearsals", "0", "--no-report")


@pytest.fixture
def save(make_problem):
    """A file with 12 seen and 6 unseen classes, and answers."""

    def build(setting):
        made = make_problem(n_seen=12, n_unseen=6, shape=(16,), per_class=30, pool_per_class=20, setting=setting)
        np.savez(
            "my.npz",
            features=made.train[np.arange(len(made.train))].numpy(),
            labels=made.labels,
            signatures=made.classes.signatures,
            pool=made.pool[np.arange(len(made.pool))].numpy(),
            class_names=np.array(made.classes.names),
        )
        return "my.npz", made

    return build


@pytest.mark.usefixtures("tmp_path")
@pytest.mark.parametrize(("there", "found"), [("zsl", "zsl"), ("gzsl", "gzsl")])
def test_it_is_found_out_and_said(good, save, there, found):
    file, made = save(there)
    out = good("fit", file, "--setting", "auto", *SOON, "--out", "run").out
    assert f"({found}, finished)" in out
    assert ("look like seen classes: these are candidates, too" in out) == (found == "gzsl")
    shown = json.loads(good("show", "run", "--json").out)
    assert shown["setting"] == found
    good("fit", file, "--setting", found, *SOON, "--out", "asked")
    labels = {run: Path(f"{run}/predictions.csv").read_text() for run in ("run", "asked")}
    assert labels["run"] == labels["asked"]
    assert len(made.pool) == labels["run"].count("\n") - 1


def test_arrays_and_benchmarks_keep_their_setting_unless_asked(good, save):
    file, _ = save("gzsl")
    out = good("fit", file, *SOON, "--out", "run").out
    assert "(zsl, finished)" in out
    assert "look like seen classes" not in out


def test_a_folder_of_photographs_is_asked_by_default(good, mydata):
    out = good("fit", "mydata", "--method", "eszsl", *SOON, "--out", "run").out
    assert "(zsl, finished)" in out  # six photographs are too few to tell
    assert json.loads(good("show", "run", "--json").out)["setting"] == "zsl"
    named = good("fit", "mydata", "--method", "eszsl", "--setting", "gzsl", *SOON, "--out", "other").out
    assert "(gzsl, finished)" in named


def test_verbs_with_many_fits_need_to_be_told(bad, good, save):
    file, _ = save("gzsl")
    assert bad("compare", file, "--methods", "eszsl", "--setting", "auto", "--out", "out").says(
        "config-invalid zsl gzsl"
    )
    assert "Expect" in " ".join(good("forecast", file, "--setting", "auto", "--rehearsals", "2").out.split())
