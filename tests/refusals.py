"""What a user can cause is refused: tests look at the code of the error, and leave the sentence free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pren.foundation.errors import PrenError


@contextmanager
def refused(code: str) -> Iterator[pytest.ExceptionInfo[PrenError]]:
    """Expect a `PrenError` of this kind, with a sentence that says something."""
    with pytest.raises(PrenError) as caught:
        yield caught
    assert caught.value.code == code, f"{caught.value.code}: {caught.value}"
    assert str(caught.value).strip()
