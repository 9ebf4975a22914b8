"""``pren`` in processes without import time: a server has imported all, and forks one for every command.

Most of a short command's time are imports, in which a kill can harm nothing. A forked process is a process like any
other: it runs the `main` of the command line with arguments, surroundings and a folder of its own, and SIGKILL ends it.
The server is Python's own (`multiprocessing`), one for a campaign, and runs on one thread.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[2]
INSIDE = Path(__file__).parent / "inside"  # its sitecustomize.py counts the writes of a process
PYTHONPATH = os.pathsep.join([str(INSIDE), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
# The threads of the reference: another number may round differently.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


class Forked:
    """A ``pren`` that was started, with the methods of `subprocess.Popen` that are needed here."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path, folder: Path) -> None:
        self._process = _server().Process(target=_main, args=(arguments, environment, log, folder))
        self._process.start()

    def poll(self) -> int | None:
        """How it ended: minus the signal, if it was one; None if it has not."""
        return self._process.exitcode

    def kill(self) -> None:
        """Send SIGKILL, which nothing can catch."""
        self._process.kill()

    def stop(self) -> None:
        """Send SIGTERM, after which a server ends well."""
        self._process.terminate()

    def wait(self) -> int:
        """Wait until it has ended; returns how."""
        self._process.join()
        code = self._process.exitcode
        assert code is not None
        return code


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["campaigns.crash.imported"])
    with mock.patch.dict(os.environ, {**ENVIRONMENT, "PYTHONPATH": PYTHONPATH}):
        forkserver.ensure_running()
    return context


def _main(arguments: Sequence[str], environment: Mapping[str, str], log: Path, folder: Path) -> None:
    """The main function of a forked process."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["pren", *arguments]
    multiprocessing.set_start_method(None, force=True)  # the server's way of starting processes is not that of `pren`
    from pren.cli.__main__ import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # which multiprocessing leaves out
