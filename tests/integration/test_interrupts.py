"""Interrupts that come where Python cannot raise them."""

import sys
import time

import pytest

from pren.cli import __main__ as command_line


class Closing:
    """Is interrupted while it is cleared away."""

    def __del__(self):
        raise KeyboardInterrupt


def test_an_interrupt_that_nobody_could_catch_comes_again(monkeypatch, capsys):
    monkeypatch.setattr(sys, "unraisablehook", command_line.resend_interrupt)
    with pytest.raises(KeyboardInterrupt):
        interrupted(Closing)
    assert capsys.readouterr().err == ""


def interrupted(kind):
    kind()
    for _ in range(2000):  # or until the interrupt is there, which ends no sleep
        time.sleep(0.01)


def test_other_exceptions_of_destructors_are_told(monkeypatch, capsys):
    monkeypatch.setattr(sys, "unraisablehook", command_line.resend_interrupt)
    monkeypatch.setattr(Closing, "__del__", lambda _: 1 / 0)
    Closing()
    assert "ZeroDivisionError" in capsys.readouterr().err
