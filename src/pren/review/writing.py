"""``python -m pren.review.writing TASK``: fit into a run folder in a process of its own.

Photographs are read by processes that fork, which a program with threads, such as a server, must not do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pren.foundation.children import end_with_parent, ended_by
from pren.foundation.errors import PrenError


def write_run_apart(start: Path, out: Path, moved: dict[str, str]) -> None:
    """Fit like a run, with the labels that there are now, into a new folder; its report is written, too.

    Args:
        start: The run whose settings are used.
        out: The new folder.
        moved: Where data, weights or cache are now.
    """
    task = json.dumps({"start": str(start), "out": str(out), **moved})
    command = [sys.executable, "-m", "pren.review.writing", task]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.read()
    if process.returncode:
        how = ended_by(process.returncode) if process.returncode < 0 else "an error: its log says more"
        raise PrenError("fit-ended", f"Fitting into {out} ended by {how}.")
    fault = json.loads(said)
    if fault:
        raise PrenError(fault["code"], fault["message"])


def main(task: dict[str, Any]) -> dict[str, str]:
    """Fit; returns what went wrong."""
    end_with_parent(sys.stdin.fileno())
    from pren.runs.fit import fit

    try:
        fit(**task)
    except PrenError as error:
        return {"code": error.code, "message": str(error)}
    return {}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))))
