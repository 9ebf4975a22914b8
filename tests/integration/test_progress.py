"""Lines of progress where there is no terminal."""

import itertools
import time

from pren.cli.progress import TimeLeft, extraction, rounds
from pren.core.progressive import Round


def test_features_that_are_all_in_the_cache_have_no_rate(monkeypatch, capsys):
    """However slow the machine is: nothing was extracted, so nobody can say how long the rest takes."""
    clock = itertools.count(step=100)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with extraction() as show:
        show(8, 0, 16)
        assert capsys.readouterr().err == ""
        show(8, 4, 16)
    assert "extracting 8/16" in capsys.readouterr().err


def test_the_time_left_is_that_of_the_parts_that_are_done():
    clock = itertools.count(step=30)
    left = TimeLeft(lambda: float(next(clock)))  # 30 seconds for each
    told = [left.after(parts) for parts in (3, 2, 40, 0)]
    assert told == [["about 2 minutes left"], [], ["about 20 minutes left"], []]


def test_a_round_says_how_long_the_others_take(monkeypatch, capsys):
    clock = itertools.count(step=100)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with rounds("PrEN on data") as show:
        show(Round(0, 2, {"loss": 1.5}), None)
        show(Round(2, 2, {"loss": 1.25}), None)
    first, last = capsys.readouterr().err.splitlines()[1:]
    assert first.startswith("  round  0/2   loss    1.500   about ")
    assert first.endswith(" left")
    assert last == "  round  2/2   loss    1.250"
