"""Lines of progress where there is no terminal."""

import itertools
import time

from pren.cli.progress import extraction


def test_features_that_are_all_in_the_cache_have_no_rate(monkeypatch, capsys):
    """However slow the machine is: nothing was extracted, so nobody can say how long the rest takes."""
    clock = itertools.count(step=100)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with extraction() as show:
        show(8, 0, 16)
        assert capsys.readouterr().err == ""
        show(8, 4, 16)
    assert "extracting 8/16" in capsys.readouterr().err
