"""Plant defects, one at a time, and see that a test notices each: ``python -m campaigns.mutants [--only WORD]``.

A defect is a text of a source file and what stands in its place. It is planted in a copy of the package; the tests that
should notice it are run against that copy, and the first one that fails is named.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[1]
SOURCE = REPOSITORY / "src"
SECONDS = 600.0  # a defect may make a loop endless


class Mutant(NamedTuple):
    """A defect in a file of the package, and the tests that are to notice it."""

    file: str
    before: str
    after: str
    tests: str


MUTANTS = (
    Mutant("core/voting.py", "outside = ~ensemble", "outside = ensemble", "core/test_voting.py"),
    Mutant("core/voting.py", "1 / (most**2 + 1)", "1 / (most + 1)", "core/test_voting.py"),
    Mutant("core/voting.py", "counted / counted.sum(dim=0)", "counted / counted.sum()", "core/test_voting.py"),
    Mutant("core/pseudo.py", "rank < per_class", "rank <= per_class", "core/test_pseudo.py"),
    Mutant("core/projection.py", "columns.T[::-1]", "columns[::-1]", "core/test_projection.py"),
    Mutant("core/projection.py", "0.5 * (half + half.T)", "half", "core/test_projection.py"),
    Mutant("core/progressive.py", "number <= self.first", "number < self.first", "core/test_progressive.py"),
    Mutant("core/ensemble.py", 'reduction="sum") / images', 'reduction="mean")', "core/test_ensemble.py"),
    Mutant("methods/pren_pool.py", "-0.5 * caution", "0.5 * caution", "methods/test_pren_pool.py"),
    Mutant("methods/pren_pool.py", "shares[unseen] / variance", "shares[unseen]", "methods/test_pren_pool.py"),
    Mutant("methods/refinement/soft_kmeans.py", "densities *= -0.5", "densities *= -1", "methods/refinement"),
    Mutant("methods/rivals/eszsl.py", "A.T @ A, self.sig", "A.T @ A, -self.sig", "methods/rivals/test_eszsl.py"),
    Mutant("methods/preparation/whitening.py", "eigh(covariance)", "eigh(-covariance)", "methods/preparation"),
    Mutant("problem/scoring.py", "scores - gamma", "scores + gamma", "problem/test_scoring.py"),
    Mutant("problem/scoring.py", "argsort(-scores", "argsort(scores", "problem/test_scoring.py"),
    Mutant("trust/confidence.py", "enough[-1]", "enough[0]", "trust/test_confidence.py"),
    Mutant("trust/confidence.py", "first - second", "first", "trust/test_confidence.py"),
    Mutant("trust/forecast.py", "rehearsals[:place], ", "rehearsals[: place + 1], ", "trust/test_forecast.py"),
    Mutant("trust/familiarity.py", "max(0.0, float(", "abs(float(", "trust/test_familiarity.py"),
    Mutant("trust/familiarity.py", "near - RIVALRY", "near + RIVALRY", "trust/test_familiarity.py"),
    Mutant("training/adam.py", "FORGOTTEN = 1e-30", "FORGOTTEN = 1e-20", "training/test_adam.py"),
    Mutant("images/extraction.py", "images.flip(3)", "images.flip(2)", "images/test_extraction.py"),
    Mutant("images/extraction.py", ".div(255)", ".div(256)", "images/test_extraction.py"),
    Mutant("images/cache.py", "zlib.crc32(key)", "0", "images/test_cache.py"),
    Mutant("images/cache.py", "size - size % self", "size % self", "images/test_cache.py"),
    Mutant("images/preprocessing.py", "(width, height), Image", "(height, width), Image", "images/test_images.py"),
    Mutant("store/checkpoint.py", "rounds[max(rounds)]", "rounds[min(rounds)]", "runs/test_resume.py"),
    Mutant("runs/run.py", "    check_same_data(folder, recorded", "    (folder, recorded", "runs/test_resume.py"),
    Mutant("runs/steps.py", "after(done, ", "after(done, -", "runs/test_fit.py"),
    Mutant("trust/names.py", "min(float(np.median(there)), float(sizes.mean()))", "float(np.median(there))", "trust"),
)


def first_failure(mutant: Mutant, place: Path) -> str:
    """The test that notices a defect, planted in a copy of the package in an empty folder; "" if none does."""
    shutil.copytree(SOURCE, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    file = place / "pren" / mutant.file
    text = file.read_text(encoding="utf-8")
    assert text.count(mutant.before) == 1, f"{mutant.file} does not hold {mutant.before!r} once"
    file.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, f"tests/{mutant.tests}"],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(place), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return "(takes too long)"
    if done.returncode not in (0, 1):
        raise SystemExit(f"{mutant.tests} cannot be run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    found = re.search(r"^(?:FAILED|ERROR) \S+?::(\S+)", done.stdout, flags=re.MULTILINE)
    return "" if done.returncode == 0 or found is None else found[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant the defects and print a table; 1 if a defect was not noticed."""
    parser = argparse.ArgumentParser(prog="python -m campaigns.mutants", description="Plant defects, and test.")
    parser.add_argument("--only", default="", metavar="WORD", help="defects in files whose names hold this")
    wanted = parser.parse_args(arguments).only
    unnoticed = 0
    for mutant in MUTANTS:
        if wanted in mutant.file:
            with tempfile.TemporaryDirectory(prefix="pren-mutant-") as place:
                found = first_failure(mutant, Path(place))
            unnoticed += not found
            print(f"| {mutant.file} | `{mutant.before}` | `{mutant.after}` | {found or 'NOT NOTICED'} |", flush=True)
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main())
