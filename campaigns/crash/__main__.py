"""``python -m campaigns.crash [--kills N] [--seed S]``: kill runs at random moments, resume them and compare."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from campaigns.crash.campaign import all_cases, campaign, crash_run, make_references, summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and report.

    Returns:
        The exit code: 0 if there were enough kills and no run was lost.
    """
    parser = argparse.ArgumentParser(prog="python -m campaigns.crash", description="Kill runs, resume and compare.")
    parser.add_argument("--kills", type=int, default=200, help="how many processes to kill (200)")
    parser.add_argument("--seed", type=int, default=0, help="fixes settings and moments (0)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (2)")
    parser.add_argument(
        "--folder", type=Path, help="where to make the temporary folder; the system's choice if left out"
    )
    parser.add_argument("--keep", action="store_true", help="leave the folders of all runs")
    parser.add_argument("--run", type=int, metavar="N", help="only run number N of the campaign")
    options = parser.parse_args(arguments)

    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="pren-crash-", dir=options.folder))
    print(f"Runs are in {folder}", flush=True)
    cases = all_cases(options.seed)
    outcomes = []
    if options.run is None:
        references = make_references(cases, folder, options.jobs)
        kills, seed, jobs = options.kills, options.seed, options.jobs
        results = campaign(references, folder, kills=kills, seed=seed, jobs=jobs, keep=options.keep)
    else:
        (reference,) = make_references([cases[options.run % len(cases)]], folder, jobs=1)
        results = iter([crash_run(options.run, options.seed, reference, folder / f"run-{options.run:03d}")])
    for outcome in results:
        outcomes.append(outcome)
        print(outcome.line(), flush=True)
        if outcome.lost is not None:
            print(f"  drawn: {'; '.join(map(str, outcome.draws))}")
            print(f"  again: python -m campaigns.crash --seed {options.seed} --run {outcome.number}", flush=True)
    print(summary(outcomes, time.monotonic() - begun))
    failed = any(outcome.lost is not None for outcome in outcomes)
    if options.run is None and sum(len(outcome.phases) for outcome in outcomes) < options.kills:
        print("Fewer kills than asked for: nearly every moment came too late.")
        failed = True
    if not failed and not options.keep:
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
