"""``pren report``, and the report that other verbs leave."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

QUICK = "backbone=small-cnn rounds=1 heads=2 dim=2 hidden=[8] batch_size=4 initial_batches=1 batches=1 n_max=2".split()
REPORT = Path("run/report.html")


@pytest.fixture
def fitted(good, mydata):
    settings = [f"--set={setting}" for setting in QUICK]

    def run(*arguments):
        return good("fit", "mydata", "--method=pren", *settings, *arguments, "--out", "run")

    return run


def test_fit_leaves_one_and_names_it(fitted):
    assert "Report (open it in a browser): run/report.html" in fitted().out
    assert REPORT.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_nobody_needs_to_have_one(fitted, good):
    assert "Report" not in fitted("--no-report").out
    assert not REPORT.exists()
    assert json.loads(good("show", "run", "--json").out)["report"] is None


def test_it_is_made_anew_and_the_run_stays_whole(fitted, good):
    fitted()
    before = REPORT.read_bytes()
    REPORT.write_text("scribbled over")
    assert good("report", "run").out.startswith("Report: run/report.html (")
    assert REPORT.read_bytes() == before
    good("evaluate", "run")
    REPORT.unlink()
    good("show", "run")


def test_a_run_that_was_killed_before_its_report_gets_one(fitted, good):
    fitted("--no-report")
    good("fit", "--resume", "run")
    assert REPORT.is_file()


def test_it_goes_where_it_is_wanted_and_over_nothing(fitted, good, bad):
    fitted("--no-report")
    said = json.loads(good("report", "run", "--out", "page.html", "--json").out)
    assert said == {
        "report": "page.html",
        "bytes": Path("page.html").stat().st_size,
        "photographs": said["photographs"],
    }
    assert said["photographs"] >= 6
    before = Path("page.html").read_bytes()
    assert bad("report", "run", "--out", "page.html").says("out-taken page.html")
    assert Path("page.html").read_bytes() == before


def test_data_that_have_moved(fitted, good, bad, mydata):
    fitted()
    whole = REPORT.read_bytes()
    mydata.rename("elsewhere")
    assert "no photographs" in good("report", "run").err
    assert "data:image" not in REPORT.read_text(encoding="utf-8")
    good("report", "run", "--data", "elsewhere")
    assert b"data:image" in REPORT.read_bytes()
    assert len(REPORT.read_bytes()) == pytest.approx(len(whole), abs=200)  # the paths of the data differ
    assert bad("report", "run", "--data", "./nowhere").says("file-missing nowhere")


def test_a_report_that_cannot_be_written_does_not_fail_the_run(fitted, monkeypatch):
    from pren.foundation.errors import PrenError
    from pren.report import page as room

    def full(path, content):
        raise PrenError("planted", f"Cannot write {path}: no space.")

    monkeypatch.setattr(room, "write_bytes", full)
    result = fitted()
    assert "The report was not written: Cannot write" in " ".join(result.err.split())
    assert Path("run/manifest.json").is_file()


def test_gzsl_and_given_labels(good, arrays):
    content = arrays(setting="gzsl")
    given = np.full(len(content["pool"]), -1)
    given[:3] = content["answers"][:3]
    np.savez("my.npz", **content, given=given)
    good("fit", "my.npz", "--setting=gzsl", "--rehearsals=2", "--out", "run")
    text = REPORT.read_text(encoding="utf-8")
    assert ">unseen<" in text
    assert ">seen<" in text


def test_only_sure_labels(good, data):
    good("fit", data(), "--method=eszsl", "--rehearsals=2", "--min-accuracy=1", "--out", "run")
    rows = Path("run/predictions.csv").read_text().splitlines()[1:]
    empty = sum(row.split(",")[1] == '""' for row in rows)
    text = REPORT.read_text(encoding="utf-8")
    assert (f"{empty} input" in text) is (empty > 0)
    shutil.move("data.npz", "gone.npz")
    good("report", "run")


def test_what_is_no_run(bad, good, data):
    assert bad("report", "nowhere").says("not-a-run")
    Path("empty").mkdir()
    assert bad("report", "empty").says("not-a-run")
    good("fit", data(), "--method=eszsl", "--out", "run")
    Path("run/manifest.json").unlink()
    assert bad("report", "run").says("run-unfinished")


def test_comparisons_and_studies(good, data, here):
    good("compare", data(), "--methods=eszsl,sje", "--seeds=2", "--out", "all")
    assert good("report", "all").out.startswith("Report: all/report.html")
    assert "SJE" in Path("all/report.html").read_text(encoding="utf-8")
    good("tune", data(), "--method=eszsl", "--trials=2", "--out", "tuned/eszsl")
    good("report", "tuned")
    good("tune", data(), "--method=eszsl", "--trials=3", "--out", "tuned/eszsl")
    good("report", "tuned/eszsl")
    good("compare", data(), "--methods=eszsl", "--out", "all", "--params", "tuned/eszsl")
