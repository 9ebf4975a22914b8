"""What a user can cause is refused: tests look at the code of the error and at the facts in it, not at sentences."""

from __future__ import annotations

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
