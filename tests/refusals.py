"""Refusals and warnings: tests look at the code or the logger, and at the facts in the message, not at its sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pren.foundation.errors import PrenError


@contextmanager
def refused(expected: str) -> Iterator[pytest.ExceptionInfo[PrenError]]:
    """Expect a `PrenError`: its code and, after blanks, what its sentence has to name (files, numbers, options)."""
    with pytest.raises(PrenError) as caught:
        yield caught
    code, *facts = expected.split()
    message = str(caught.value)
    assert caught.value.code == code, f"{caught.value.code}: {message}"
    assert message.strip()
    assert [fact for fact in facts if fact not in message] == [], message


def warnings_by(logger: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What one logger warned of."""
    return [one.getMessage() for one in caplog.records if (one.name, one.levelno) == (logger, logging.WARNING)]
