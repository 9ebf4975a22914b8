"""``python -m pren.research.worker FOLDER``: compute one cell in its own process.

So its peak memory can be measured, and a crash costs one cell only. It ends with the process that started it, which
closes its standard input.
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
    """Read the task, and write the result to the same folder."""
    end_with_parent(sys.stdin.fileno())
    keep_memory()
    task = Task.model_validate_json((folder / TASK_FILE).read_bytes())
    try:
        result = compute(task)
    except PrenError as error:
        result = Result(error=str(error))
    except Exception as error:  # other cells go on
        where = f"{CELLS}/{task.cell.file()}"
        said = f"{type(error).__name__}: {error}. This is a defect of pren or of the method: see {where}"
        result = Result(error=said, traceback=shortened(traceback.format_exc().splitlines()))
    write_json(folder / RESULT_FILE, result.model_dump(mode="json"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
