"""``pren reproduce`` through the command line; figures are invented, so that nothing takes long."""

import csv
import json
from pathlib import Path

import pytest

from pren.experiments import computing
from pren.experiments.cells import Result

TOP1 = {"pren": 0.66, "pren-no-projection": 0.61, "progressive": 0.50, "qfsl": 0.72}  # the others: 0.55
MORE: dict[int, float] = {}  # for PrEN with so many heads on CUB
CUB = ("--root", ".", "--features", "mine.mat")


def figures(task):
    """PrEN as the paper has it on a made-up CUB; on the embedded data its variants change places."""
    name, params = task.cell.method, task.cell.params
    top1 = TOP1.get(name, 0.55) + 0.01 * (task.cell.seed or 0)
    if name == "pren" and task.config.data == "numbers-features":
        top1 -= 0.26
    elif name == "pren" and (params["heads"] == 10 or params["dim"] == 10):
        top1 -= 0.2
    elif name == "pren":
        top1 += MORE.get(params["heads"], 0.0)
    return {"top1": top1, "macc": top1, "u": top1, "s": 0.5, "h": top1, "u_images": top1 - 0.1}


@pytest.fixture
def invented(monkeypatch):
    """Compute nothing; returns the tasks that would have been computed."""
    asked = []

    def run(tasks, folder, jobs, on_done):
        for task in tasks:
            asked.append(task)
            on_done(task, Result(figures=figures(task), fit_seconds=1.0))

    monkeypatch.setattr(computing, "run_tasks", run)
    monkeypatch.delenv("PREN_DATA", raising=False)
    return asked


def rows(name):
    with Path("reproduction", f"{name}.csv").open(encoding="utf-8") as file:
        return {row[next(iter(row))]: row for row in csv.DictReader(file)}


def test_quick_and_without_data(good, invented):
    result = good("reproduce", "all", "--quick")
    assert "QUICK. Table 2: Top-1" in result.out
    assert {"heads": 10, "rounds": 3}.items() <= invented[0].cell.params.items()
    assert "- Missing: CUB SS, CUB PS. cub is read from a folder: give it as root (--root)" in result.out
    assert "www.mpi-inf.mpg.de" in result.out
    for path in Path("reproduction").glob("*.md"):
        assert path.read_text().startswith("## QUICK. ")
    names = {path.stem for path in Path("reproduction").glob("*.tex")}
    assert names == {
        "datasets",
        "zsl-top1",
        "zsl-macc",
        "gzsl",
        "sensitivity-dim",
        "sensitivity-heads",
        "complexity",
        "claims",
    }
    assert {"sensitivity.png", "sensitivity.svg", "report.html"} <= {
        path.name for path in Path("reproduction").iterdir()
    }


def test_the_paper_and_we_are_never_in_one_column(good, invented, root):
    good("reproduce", "zsl", *CUB, "--seeds", "2")
    ours = rows("zsl-top1")["PrEN"]
    assert (ours["CUB PS, paper"], ours["CUB PS, here"]) == ("66.4", "66.5 ± 0.7")
    assert (ours["CUB SS, paper"], ours["CUB SS, here"]) == ("66.9", "66.5 ± 0.7")
    assert (ours["AWA2 PS, paper"], ours["AWA2 PS, here"]) == ("74.1", "missing")
    assert ours["numbers, here"] == "40.5 ± 0.7"
    assert rows("zsl-top1")["SynC"]["CUB PS, here"] == "55.0"  # has no seeds
    assert rows("zsl-macc")["UDA †"]["CUB SS, paper"] == "40.6"


def test_generalised(good, invented, root):
    good("reproduce", "gzsl", *CUB, "--seeds", "1")
    ours = rows("gzsl")["PrEN"]
    assert [ours[f"CUB PS {name}, paper"] for name in "usH"] == ["35.2", "55.8", "43.1"]
    assert [ours[f"CUB PS {name}, here"] for name in "usH"] == ["66.0", "50.0", "66.0"]


def test_the_papers_protocol(good, invented, root):
    good("reproduce", "gzsl", *CUB, "--seeds", "1", "--paper-protocol")
    assert {task.config.options.get("seen_test") for task in invented if task.config.data == "cub"} == {"random"}
    assert rows("gzsl-paper-protocol")["PrEN"]["CUB PS u, here"] == "56.0"
    assert "shares of images" in Path("reproduction/gzsl-paper-protocol.md").read_text()


def test_claims(good, invented, root):
    good("reproduce", "claims", *CUB, "--seeds", "1")
    verdicts = {says: row["verdict"] for says, row in rows("claims").items()}
    first, _, gain, rivals, qfsl, gfzsl, split, u, _, s, dim, heads, cost = verdicts.values()
    assert first == "holds in part"  # on CUB, but not on numbers
    assert (gain, qfsl, heads, cost) == ("holds",) * 4
    assert split == "does not hold here"  # the made-up splits are the same
    assert (rivals, u, s) == ("holds in part", "holds in part", "holds")
    assert gfzsl == "cannot be tested here"
    assert dim == "holds"
    figures = [row["figures, here"] for row in rows("claims").values()]
    assert figures[0] == "CUB SS: 66.0 / 61.0 / 50.0; CUB PS: 66.0 / 61.0 / 50.0; numbers: 40.0 / 61.0 / 50.0"
    assert "10: 46.0" in figures[-2]


def test_claims_that_do_not_hold(good, invented, root, monkeypatch):
    monkeypatch.setitem(MORE, 60, 0.05)  # not flat
    monkeypatch.setitem(TOP1, "progressive", 0.6)  # too near
    monkeypatch.setitem(TOP1, "qfsl", 0.6)  # not above
    monkeypatch.setitem(TOP1, "sync", 0.7)  # above
    good("reproduce", "claims", *CUB, "--seeds", "1")
    _, _, gain, rivals, qfsl, _, _, u, h, _, dim, heads, _ = [row["verdict"] for row in rows("claims").values()]
    assert (gain, rivals, qfsl, u, h) == ("does not hold here",) * 5
    assert (dim, heads) == ("holds", "holds in part")
    assert (
        "from 30 on it stays within 5.0 points"
        in rows("claims")["K is safe above 30, and 10 is far below (CUB PS)"]["figures, here"]
    )


def test_curves(good, invented, root):
    good("reproduce", "sensitivity", *CUB, "--seeds", "1")
    points = {(t.cell.params["dim"], t.cell.params["heads"]) for t in invented if t.config.data == "cub"}
    assert points == {(h, 50) for h in (10, 20, 30, 40, 50, 60)} | {(None, K) for K in (10, 20, 30, 40, 50, 60)}
    text = Path("reproduction/sensitivity-dim.md").read_text()
    assert "| CUB PS | 10 | 46.0 |" in text
    assert "| CUB PS | 70 | 66.0 |" in text


def test_nothing_is_computed_twice(good, invented):
    good("reproduce", "zsl", "--seeds", "1")
    count = len(invented)
    good("reproduce", "zsl", "--seeds", "1")
    assert len(invented) == count
    good("reproduce", "zsl", "--seeds", "1", "--cells", "reproduction", "--out", "other")
    assert len(invented) == count
    assert len(list(Path("other/cells").iterdir())) == count
    out = good("reproduce", "zsl", "--seeds", "2", "--stored").out
    assert len(invented) == count
    assert "40.0 (1)" in out


def test_parts_share_a_report(good, invented):
    good("reproduce", "datasets")
    good("reproduce", "zsl", "--seeds", "1")
    text = Path("reproduction/report.html").read_text()
    assert "Table 1: data" in text
    assert "Table 2: Top-1" in text
    assert json.loads(good("report", "reproduction", "--json").out)["report"] == "reproduction/report.html"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tabel",), "The paper has no part 'tabel'."),
        (("zsl", "--params", "nowhere.yaml"), "nowhere.yaml"),
        (("zsl", "--cells", "nowhere"), "nowhere holds no results of 'pren compare'"),
    ],
)
def test_what_cannot_be(pren, invented, arguments, said):
    result = pren("reproduce", *arguments)
    assert result.code == 2
    assert said in result.err


def test_damaged_tables(pren, good, invented):
    good("reproduce", "datasets")
    Path("reproduction/sheets.json").write_text('{"sheets": [{}]}')
    for command in (("reproduce", "datasets"), ("report", "reproduction")):
        result = pren(*command)
        assert result.code == 2
        assert "sheets.json is damaged" in result.err


def test_parts_of_the_report_have_names_of_their_own(good, invented):
    good("reproduce", "zsl", "--seeds", "1")
    text = Path("reproduction/report.html").read_text()
    assert ">Table 2: Top-1</a>" in text
    assert ">Table 2: mAcc</a>" in text
