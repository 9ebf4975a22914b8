"""The command line: one file per verb, each a thin shell over the library.

No module imports torch before a command runs, so that ``pren --help`` answers at once.
"""

import os
import signal
import sys
from typing import Any


def _end(*_: Any) -> None:
    os._exit(130)


# As a program, Ctrl-C while modules are still imported ends without a traceback; `main` takes over from there.
if os.path.basename(sys.argv[0]) in ("pren", "-m") and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # noqa: PTH119
    signal.signal(signal.SIGINT, _end)
