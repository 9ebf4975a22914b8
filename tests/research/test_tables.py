"""Tables: what they say, and that no name can break them."""

import csv
import io
import re
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pren.research.cells import Result
from pren.research.summary import Spread, summarise
from pren.research.tables import csv_table, escape_latex, escape_markdown, latex, markdown, table_of, write_tables

TOP = {"fit_seconds": 1.0, "predict_seconds": 0.25, "peak_bytes": 200_000_000}


def result(top1, macc=0.5):
    return Result(figures={"top1": top1, "macc": macc}, **TOP)


ROWS = [
    summarise("birds", "A", False, [result(0.5), result(0.6), result(0.7)]),
    summarise("birds", "B", False, [result(0.6004)]),
    summarise("birds", "C", True, [result(0.1), Result(error="no luck")]),
    summarise("birds", "D", False, [Result(error="never")]),
]


def test_spread_is_that_of_a_sample():
    values = [0.25, 0.5, 1.0]
    assert Spread.of(values) == Spread(statistics.fmean(values), statistics.stdev(values))
    assert Spread.of([0.5, None]) == Spread(0.5, None)
    assert Spread.of([None]) is None


def test_cells_and_the_best_of_them():
    header, cells, bold = table_of(ROWS, "zsl")
    assert header == ["method", "runs", "Top-1", "mAcc", "fit s", "predict s", "peak MB", "note"]
    assert cells[0] == ["A", "3", "60.0 ± 10.0", "50.0 ± 0.0", "1.00 ± 0.00", "0.25 ± 0.00", "200 ± 0", ""]
    assert cells[1] == ["B", "1", "60.0", "50.0", "1.00", "0.25", "200", ""]
    assert cells[2][1:3] == ["2", "10.0"]
    assert cells[2][-1] == "failed (1 of 2 seeds): no luck"
    assert cells[3] == ["D", "1", "–", "–", "–", "–", "–", "failed: never"]
    # A and B look the same, and are equally good.
    assert [row[2] for row in bold] == [True, True, False, False]
    assert [row[3] for row in bold] == [True, True, True, False]
    assert not any(any(row[:2]) or any(row[4:]) for row in bold)


def test_without_failures_there_is_no_note():
    assert "note" not in table_of(ROWS[:2], "zsl")[0]


def test_long_times_need_no_hundredths():
    shown = []
    for seconds in (0.256, 15.94, 623.95):
        row = summarise("birds", "A", False, [Result(figures={}, fit_seconds=seconds, predict_seconds=seconds)])
        shown.append(table_of([row], "zsl")[1][0][4:6])
    assert shown == [["0.26", "0.26"], ["15.9", "15.9"], ["624", "624"]]


def test_what_was_not_computed_says_so():
    row = summarise("birds", "E", False, [])
    _, cells, bold = table_of([*ROWS[:2], row], "zsl")
    assert cells[2] == ["E", "0", "–", "–", "–", "–", "–", "not computed"]
    assert not any(bold[2])


def test_a_dagger_is_explained():
    assert "†" not in markdown(ROWS, "zsl")
    daggered = [summarise("birds", "A † S→F", False, [result(0.5)])]
    assert markdown(daggered, "zsl").count("†") == 2
    assert latex(daggered, "zsl").count(r"\dag{}") == 2
    assert r"A \dag{} S$\rightarrow$F" in latex(daggered, "zsl")


def test_where_all_fail_nothing_is_best():
    assert not any(map(any, table_of(ROWS[3:], "zsl")[2]))


def test_gzsl_has_figures_of_its_own():
    row = summarise("birds", "A", False, [Result(figures={"u": 0.1, "s": 0.2, "h": 0.15, "ausuc": 0.05}, **TOP)])
    header, cells, _ = table_of([row], "gzsl")
    assert header[1:6] == ["runs", "u", "s", "H", "AUSUC"]
    assert cells[0][1:6] == ["1", "10.0", "20.0", "15.0", "5.0"]


def test_markdown():
    other = summarise("cats", "A", False, [result(0.2)])
    text = markdown([*ROWS, other], "zsl")
    assert [line for line in text.splitlines() if line.startswith("##")] == ["## birds (zsl)", "## cats (zsl)"]
    assert "| A | 3 | **60.0 ± 10.0** | **50.0 ± 0.0** |" in text
    assert "| D | 1 | – | – | – | – | – | failed: never |" in text
    assert "over runs with different seeds; parameters given for C, defaults for the others." in text


def test_latex():
    text = latex(ROWS, "zsl")
    assert r"A & 3 & \textbf{60.0 $\pm$ 10.0} & \textbf{50.0 $\pm$ 0.0} &" in text
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in lines} == {7}


def test_csv_has_full_precision(tmp_path):
    write_tables(ROWS, "zsl", tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert [row["method"] for row in rows] == ["A", "B", "C", "D"]
    assert float(rows[1]["top1_mean"]) == 0.6004
    assert (rows[1]["top1_std"], rows[3]["top1_mean"]) == ("", "")
    assert rows[3]["reason"] == "never"
    assert (rows[2]["runs"], rows[2]["failed"]) == ("2", "1")
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "table.md", "table.tex"}


def unescaped_markdown(text):
    return re.sub(r"\\(.)", r"\1", text)


@given(st.text())
def test_markdown_shows_any_name_in_one_cell(name):
    escaped = escape_markdown(name)
    assert len(escaped.splitlines()) <= 1
    assert not re.search(r"(?<!\\)(?:\\\\)*[|`*_<>\[\]&]", escaped)  # nothing without a backslash of its own
    assert unescaped_markdown(escaped).isprintable()
    if name.isprintable():
        assert unescaped_markdown(escaped) == " ".join(name.split())


@given(st.text(alphabet=st.characters(exclude_characters="±→†")))
def test_latex_shows_any_name_as_text(name):
    escaped = escape_latex(name)
    bare = re.sub(r"\\text[a-z]+\{\}|\\[&%$#_{}]", "", escaped)
    assert not set("\\&%$#_{}~^<>|") & set(bare)
    assert len(escaped.splitlines()) <= 1


@pytest.mark.parametrize("hostile", ["a|b\n| c", "**x**", "<script>", "\\input{x}", "100% & $5_{x}$", "\x1b[31m"])
def test_hostile_names_do_not_change_the_form(hostile):
    row = summarise(hostile, hostile, False, [Result(error=hostile)])
    lines = markdown([row], "zsl").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 3
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {9}
    assert "<script>" not in markdown([row], "zsl")
    assert r"\input" not in latex([row], "zsl")
    assert "\x1b" not in markdown([row], "zsl") + latex([row], "zsl")
    header, table = csv_table([row], "zsl")
    assert dict(zip(header, table[0], strict=True))["reason"] == hostile
