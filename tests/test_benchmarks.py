"""The benchmarks run; what they measure is for `make bench`, not for a test."""

import json

import pytest

from benchmarks import extraction, processes, whole_run
from benchmarks.__main__ import BENCHMARKS, main


@pytest.fixture
def fewer_processes(monkeypatch):
    """Two processes in a benchmark are its full size; what one prints, another prints too."""
    in_a_process, seconds = extraction._in_a_process, processes._seconds_per_round
    monkeypatch.setattr(
        extraction, "_in_a_process", lambda *given: (in_a_process if given[2] else extraction._measure)(*given)
    )
    monkeypatch.setattr(processes, "_seconds_per_round", lambda data, params, _, out: seconds(data, params, 1, out))


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_processes")
@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_runs_and_writes_its_tables(name, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("before\n")
    main([name, "--quick", "--results", str(tmp_path), "--markdown", str(page)])
    content = json.loads((tmp_path / f"{name}.json").read_text())
    assert content["tables"]
    assert capsys.readouterr().out.strip()
    assert page.read_text().startswith("before\n")
    assert "| --- |" in page.read_text()


def test_an_unknown_benchmark_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "no benchmark named nonsense" in capsys.readouterr().err


def test_the_parts_of_a_run_are_the_whole(capsys):
    whole_run.main(["--data", "numbers-features", "--heads", "2", "--rounds", "1"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[4:] if line]
    shares = {part: float(share) for part, share in rows}
    assert sum(shares.values()) == pytest.approx(100, abs=0.5)
    assert all(shares[part] > 0 for part in ("matrix products of the heads", "Adam", "everything else"))
