"""Parts of a reproduction that can be told without computing cells."""

import pytest
import torch

from pren.methods.registry import METHODS
from pren.research.parameters import Parameters
from pren.research.reproduction import paper
from pren.research.reproduction.claims import Finding, _verdict
from pren.research.reproduction.complexity import WIDTH, _heads, complexity, multiply_adds, share_of_more_heads
from pren.research.reproduction.sheets import Sheet, keep_sheets, read_sheets
from pren.store.config import RunConfig

pytestmark = pytest.mark.slow


def test_the_papers_rows_are_methods_here():
    assert {*paper.TOP1, *paper.MACC, *paper.GZSL} <= set(METHODS)
    gains = {figure: [] for figure in ("TOP1", "MACC")}
    for figure, found in gains.items():
        table = getattr(paper, figure)
        found += [table["pren"][column] - table["progressive"][column] for column in paper.COLUMNS]
    means = {figure: round(sum(found) / len(found), 1) for figure, found in gains.items()}
    assert means == {"TOP1": 15.2, "MACC": 16.5}  # by its own tables, as spelled out beside the claim


def test_multiply_adds_are_those_of_the_layers():
    head = WIDTH * 512 + 512 * 512 + 512 * 70
    for K in (1, 3):
        assert multiply_adds(_heads(K), torch.zeros(4, WIDTH)) == K * head
    assert multiply_adds(torch.nn.Conv2d(3, 8, 3, padding=1), torch.zeros(2, 3, 10, 10)) == 10 * 10 * 3 * 3 * 3 * 8


def test_what_heads_cost():
    backbone, one, fifty = complexity().rows
    assert backbone[2] == "3.66 G"
    assert (one[2], fifty[2]) == ("0.56 M", "28.01 M")
    assert share_of_more_heads() == pytest.approx(49 * 0.560128e6 / 3.66e9, rel=0.01)


def test_columns_without_figures_can_be_left_out():
    sheet = Sheet(
        name="x",
        title="X",
        header=["method", "A, paper", "A, here", "B, paper", "B, here"],
        rows=[["p", "1", "missing", "3", "4"], ["q", "2", "missing", "5", "missing"]],
    )
    shown = sheet.without("missing")
    assert shown.header == ["method", "B, paper", "B, here"]
    assert shown.rows == [["p", "3", "4"], ["q", "5", "missing"]]


def test_sheets_are_text_in_every_form(tmp_path):
    sheet = Sheet(name="x", title="<b>_X_", header=["a|b", "c%"], rows=[["1 & 2", "=cmd"]], notes=["# no heading"])
    keep_sheets(tmp_path, [sheet])
    assert read_sheets(tmp_path) == [sheet]
    assert r"1 \& 2 & =cmd" in (tmp_path / "x.tex").read_text()
    markdown = (tmp_path / "x.md").read_text()
    assert r"a\|b" in markdown
    assert "<b>" not in markdown
    keep_sheets(tmp_path, [sheet.model_copy(update={"title": "new"}), sheet.model_copy(update={"name": "y"})])
    assert [(kept.name, kept.title) for kept in read_sheets(tmp_path)] == [("x", "new"), ("y", "<b>_X_")]


def test_parameters_can_be_joined():
    assert not Parameters()
    joined = Parameters({"a": {"x": 1}, "b": {}}) | Parameters({"a": {"x": 2}}, (RunConfig(data="numbers"),))
    assert joined.everywhere == {"a": {"x": 2}, "b": {}}
    assert len(joined.tuned) == 1
    assert joined


@pytest.mark.parametrize(("method", "hidden"), [("pren", (512, 512)), ("qfsl", ()), ("revise", 512)])
def test_the_embedded_data_leave_every_method_its_own_defaults(method, hidden):
    """ReViSE's `hidden` is a number: what suits one method is an error for another."""
    assert RunConfig(data="numbers-features", method=method).resolved().params["hidden"] == hidden


def test_the_embedded_data_decide_a_verdict_only_alone():
    paper_says, ours = Finding(False, "CUB PS"), Finding(True, "numbers", embedded=True)
    assert _verdict([]) == "cannot be tested here"
    assert _verdict([ours]) == "holds"
    assert _verdict([paper_says, ours]) == "does not hold here"
    assert _verdict([paper_says, Finding(True, "CUB SS"), ours]) == "holds in part"
