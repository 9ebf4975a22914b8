"""What a run was doing when it died, judged from what it left on disk."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pren.foundation.files import WRITING
from pren.store.manifest import MANIFEST

BEFORE = "before config.yaml"
START = "start-up"
COMPUTING = "computing a round"
CHECKPOINT = "writing a checkpoint"
PUBLISHING = "publishing a round"
REMOVING = "removing the old checkpoint"
RESULTS = "writing the results"
FINISHED = "finished, not yet ended"
PHASES = (BEFORE, START, COMPUTING, CHECKPOINT, PUBLISHING, REMOVING, RESULTS, FINISHED)

Snapshot = dict[str, tuple[int, int, int]]  # path in the run folder: inode, time of the last change, size


def snapshot(run: Path) -> Snapshot:
    """Take down what is in a run folder, which may be changing or not be there at all."""
    facts: Snapshot = {}
    for path in run.rglob("*"):
        with suppress(OSError):
            stat = path.lstat()
            # Not the time of the last write: a link does not change that.
            facts[path.relative_to(run).as_posix()] = (stat.st_ino, stat.st_ctime_ns, stat.st_size)
    return facts


def rounds_on_disk(facts: Snapshot) -> list[str]:
    """The folders of finished checkpoints, the newest last."""
    return sorted(name for name in facts if name.startswith("checkpoint/round-") and name.count("/") == 1)


def phase(before: Snapshot, after: Snapshot, last_round: int, *, spoke: bool) -> str:
    """Name what a process was doing when it was killed.

    Args:
        before: The folder when the process was started, with what earlier kills had left behind.
        after: The folder at its death.
        last_round: The number of the run's last round.
        spoke: Whether the process had said anything; it does once everything is imported.
    """
    if "config.yaml" not in after:
        return BEFORE
    fresh = {name for name, facts in after.items() if before.get(name) != facts}
    if not spoke and not fresh:
        return START
    if MANIFEST in after:
        return FINISHED
    if any(name.startswith(f"checkpoint/{WRITING}") for name in fresh):
        return CHECKPOINT
    rounds = rounds_on_disk(after)
    # Leftovers of an earlier process stay until the next checkpoint, so only newer ones count.
    if rounds and rounds[-1] not in before and (len(rounds) > 1 or any(name.startswith(WRITING) for name in fresh)):
        parts = [sum(name.startswith(f"{folder}/") for name in after) for folder in rounds]
        return PUBLISHING if min(parts) == max(parts) else REMOVING
    if rounds and rounds[-1].endswith(f"-{last_round:04d}"):
        return RESULTS
    return COMPUTING
