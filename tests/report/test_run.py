"""The report of a run as text: what it says, and what it says when something is missing."""

import re
import shutil
from dataclasses import replace

import pytest
from refusals import refused

from pren.label.names import GroupName
from pren.report import write_report
from pren.report.reading import collect
from pren.runs.reopening import load_result
from pren.store.folder import RunFolder

from .conftest import EVIL, EVIL_FILE, fit, make_photographs

pytestmark = pytest.mark.slow


def said(path):
    """A page without its script, style and tags."""
    text = re.sub(r"<(script|style)>.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", text).replace("&nbsp;", " ").replace("\xa0", " ")


@pytest.fixture(scope="module")
def report(hostile):
    return hostile.paths.report.read_text(encoding="utf-8")


def test_everything_is_there(report, hostile):
    for id in "label classes pairs coverage table confusion map training attributes details".split():
        assert f'<section id="{id}"' in report
    text = said(hostile.paths.report)
    assert "12 unlabelled photographs of 3 unseen classes. Learned from 5 seen classes with 15 labelled" in text
    assert "2 rehearsals" in text
    assert "By the answers" in text
    assert "pren fit" in text  # the command
    assert "Not defined for PrEN" in text
    assert report.count("data:image/jpeg") >= 12


def test_as_many_to_label_as_were_asked_for(hostile, tmp_path):
    for count in (2, 12):
        facts = collect(hostile, count)
        assert len(facts.details.to_label) == count
    page = write_report(hostile, tmp_path / "two.html", 2).path.read_text(encoding="utf-8")
    section = page.split('<section id="label"')[1].split("</section>")[0]
    assert section.count("data:image/jpeg") == 2


def test_words_are_shown_as_words(hostile, tmp_path):
    problem = hostile.outcome.problem
    source = {"mean": [0.0] * 3, "encoder": "x", "attributes": None, "templates": []}
    texts = {name: [f"words of {name}"] for name in problem.classes.names}
    told = replace(
        problem, recipe={"sources": [{**source, "texts": texts}]}, classes=replace(problem.classes, attributes=None)
    )
    page = write_report(replace(hostile, outcome=replace(hostile.outcome, problem=told)), tmp_path / "w.html").path
    text = said(page)
    assert "attribute 1" not in text
    assert "words of yellow" in text
    assert EVIL not in page.read_text(encoding="utf-8")


def test_it_is_the_same_every_time_and_breaks_no_checksum(hostile, report, tmp_path):
    written = write_report(hostile, tmp_path / "again.html")
    assert written.path.read_text(encoding="utf-8") == report
    assert written.size == len(report.encode())
    RunFolder.open(hostile.paths.folder)


def test_hostile_names_are_text(report):
    assert "<img src=x" not in report
    assert "<svg onload" not in report
    assert report.count("<script>") == 1
    assert "&lt;img src=x" in report


def test_names_to_check_come_first(hostile, tmp_path):
    doubtful = GroupName(EVIL, 4, 0.5, (("yellow", 0.4),), (EVIL_FILE, "photo_00.png"), True)
    sure = GroupName("grey", 8, 0.9, (), ("photo_02.png",), False)
    page = write_report(replace(hostile, names=(doubtful, sure)), tmp_path / "r.html").path
    text = page.read_text(encoding="utf-8")
    assert "<img src=x" not in text
    section = text[text.index('<section id="names"') : text.index('<section id="label"')]
    assert section.count("<article") == 1
    assert section.count("data:image/jpeg") == 2
    assert "4 photographs · name 50" in section
    assert "4 photographs hang on it" in said(page)
    assert '<section id="names"' not in hostile.paths.report.read_text(encoding="utf-8")


def test_without_the_data_it_says_so(hostile, tmp_path):
    written = write_report(replace(hostile, outcome=None, missing="It has <moved>."), tmp_path / "r.html")
    text = said(written.path)
    assert "because the data cannot be opened: It has &lt;moved&gt;. If they have moved" in text
    assert written.photographs == 0
    assert "data:image" not in written.path.read_text()
    assert '<section id="table"' in written.path.read_text()


def test_features_have_no_photographs_but_everything_else(features, tmp_path):
    text = said(write_report(features, tmp_path / "r.html").path)
    assert "These data are features" in text
    assert "supports it" in text
    assert "Safe to use" in text


def test_without_answers_and_rehearsals(tmp_path):
    folder = make_photographs(tmp_path / "photographs", answers=False)
    run = fit(folder, tmp_path / "run", rehearsals=0)
    text = said(run.paths.report)
    assert "no forecast of how many labels are right" in text
    assert "--rehearsals 10" in text
    assert "By the answers" not in text


def test_without_answers_the_second_best_class_tells_what_is_confused(tmp_path):
    folder = make_photographs(tmp_path / "photographs", answers=False)
    run = fit(folder, tmp_path / "run")
    text = said(run.paths.report)
    assert "There are no answers" in text
    assert " Wrong " not in text


def test_an_unfinished_run_has_no_report(hostile, tmp_path):
    shutil.copytree(hostile.paths.folder, tmp_path / "run")
    (tmp_path / "run" / "manifest.json").unlink()
    with refused("run-unfinished"):
        load_result(tmp_path / "run")


def test_where_the_pool_is_of_another_kind_no_label_is_called_safe(tmp_path):
    run = fit("numbers-features", tmp_path / "run", "pren-pool")
    assert run.forecast.apart > 1
    text = said(run.paths.report)
    assert "Perhaps safe to use" in text
    assert "Check some of the" in text
    assert "Use the" not in text


def test_labels_without_confidence_are_ranked_by_their_lead(tmp_path):
    folder = make_photographs(tmp_path / "photographs", answers=False)
    run = fit(folder, tmp_path / "run", rehearsals=0)
    images = collect(run).images
    assert [image.lead for image in images] == sorted((image.lead for image in images), reverse=True)
    assert "expected right" not in said(run.paths.report)
