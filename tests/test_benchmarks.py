"""The benchmarks run; what they measure is for `make bench`, not for a test."""

import json

import pytest

from benchmarks.__main__ import BENCHMARKS, main


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
