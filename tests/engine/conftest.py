"""What the tests of the engine share."""

import pytest

from pren.engine.processes import single_process


@pytest.fixture(scope="session")
def fabric():
    return single_process("cpu")
