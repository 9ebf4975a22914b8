"""`pren review` and `pren serve` on the command line, without waiting for a signal."""

from __future__ import annotations

import sys

import pytest

from pren.cli import __main__ as command_line
from pren.review import running


@pytest.fixture
def pren(monkeypatch, capsys):
    """Run a command whose server stops as soon as it has said that it answers."""

    def run(*arguments):
        monkeypatch.setattr(running, "run", lambda app, listening, on_start: on_start())
        monkeypatch.setattr(sys, "argv", ["pren", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "300")
        try:
            command_line.main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        return code, *capsys.readouterr()

    return run


def test_serve_says_where_and_prints_a_token_only_if_it_has_made_it(pren, piled, monkeypatch):
    monkeypatch.delenv("PREN_TOKEN", raising=False)
    code, out, _ = pren("serve", piled[0] / "run", "--port", 0)
    assert code == 0
    assert "Serving" in out
    assert "http://127.0.0.1:" in out
    assert "Token: " in out
    monkeypatch.setenv("PREN_TOKEN", "a-secret")
    code, out, _ = pren("serve", piled[0] / "run", "--port", 0)
    assert code == 0
    assert "a-secret" not in out
    assert "Token" not in out
    code, _, err = pren("serve", piled[0] / "run", "--host", "0.0.0.0", "--no-token")
    assert code == 2
    assert "token-needed" in err
    assert pren("serve", piled[0] / "none")[0] == 2


def test_review_opens_the_browser_unless_told_otherwise(pren, pile, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    where = ("--data", pile[0] / "photographs", "--cache", pile[0] / "cache")
    code, out, _ = pren("review", pile[0] / "run", "--no-browser", *where)
    assert code == 0
    assert opened == []
    assert "/?token=" in out
    # A program that never answered leaves the review free for the next.
    code, out, _ = pren("review", pile[0] / "run", *where)
    assert code == 0
    assert opened[0] in out
    assert pren("review", pile[0] / "none")[0] == 2
