"""The report of comparisons and studies."""

import json
import shutil
from statistics import fmean

import pytest
from refusals import refused

from pren.research.folder import held_folder
from pren.research.pages import is_experiment, report_experiments


@pytest.fixture
def text(experiments, tmp_path):
    return report_experiments(experiments, tmp_path / "r.html").path.read_text(encoding="utf-8")


def test_means_deviations_and_seeds(text):
    assert "65.0 ± 7.1" in text
    assert "50.0" in text
    assert ">0–2<" in text
    assert "none needed" in text
    assert text.index(">SJE") < text.index(">ESZSL")  # the best first
    assert text.count('class="seed"') == 2


def test_failures_are_told_as_text(text):
    assert "failed (1 of 3 seeds): &lt;script&gt;" in text
    assert text.count("<script>") == 1


def test_a_study_shows_its_trials_and_its_best(text):
    assert "40.0\xa0%" in text
    assert "way=&lt;i&gt;" in text
    assert '<section id="trials"' in text


def test_data_have_the_name_that_the_table_gives_them(experiments, tmp_path):
    folder = shutil.copytree(experiments, tmp_path / "named")
    (folder / "table.csv").write_text(f"data,top1_mean\nmine,0.5\nmine,{fmean([0.6, 0.7])}\n")
    assert "mine (zsl)" in report_experiments(folder).path.read_text()
    (folder / "table.csv").write_text("data,top1_mean\nother,0.1\n")
    assert "data d (zsl)" in report_experiments(folder).path.read_text()


def test_methods_with_different_parameters_are_told_apart(experiments, tmp_path):
    folder = shutil.copytree(experiments, tmp_path / "more")
    path = folder / "cells" / "eszsl-None.json"
    content = json.loads(path.read_text())
    content["cell"]["params"] = {"feature_reg": 3.0}
    (folder / "cells" / "eszsl-other.json").write_text(json.dumps(content))
    assert "ESZSL (feature_reg=3.0)" in report_experiments(folder).path.read_text().replace("<wbr>", "")


def test_a_report_is_no_reason_not_to_go_on(experiments, tmp_path):
    (tmp_path / "tuned").mkdir()
    shutil.copytree(experiments / "tuned", tmp_path / "tuned" / "eszsl")
    report_experiments(tmp_path / "tuned")
    with held_folder(tmp_path / "tuned"):
        pass


def test_damage_and_nothing(experiments, tmp_path):
    folder = shutil.copytree(experiments, tmp_path / "damaged")
    (folder / "cells" / "sje-0.json").write_text("{")
    with refused("damaged sje-0.json"):
        report_experiments(folder)
    (tmp_path / "empty" / "cells").mkdir(parents=True)
    with refused("no-results"):
        report_experiments(tmp_path / "empty")
    assert is_experiment(experiments)
    assert not is_experiment(tmp_path / "nowhere")
