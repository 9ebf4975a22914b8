"""``python -m pren.research.worker FOLDER``: compute one cell in a process of its own.

So its peak memory is its own, and a crash costs that cell only. It ends when the process that started it does: the
system then closes standard input.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from pren.foundation.allocation import keep_memory
from pren.foundation.children import end_with_parent
from pren.foundation.errors import PrenError
from pren.foundation.files import write_json
from pren.research.cells import Result, Task, compute
from pren.research.folder import CELLS
from pren.research.workers import RESULT_FILE, TASK_FILE, shortened


def main(folder: Path) -> None:
    """Read the task, and leave the result beside it."""
    end_with_parent(sys.stdin.fileno())
    keep_memory()
    task = Task.model_validate_json((folder / TASK_FILE).read_bytes())
    try:
        result = compute(task)
    except PrenError as error:
        result = Result(error=str(error))
    except Exception as error:  # which is no reason to stop the others
        where = f"{CELLS}/{task.cell.file()}"
        said = f"{type(error).__name__}: {error}. This is a defect of pren or of the method: see {where}"
        result = Result(error=said, traceback=shortened(traceback.format_exc().splitlines()))
    write_json(folder / RESULT_FILE, result.model_dump(mode="json"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
