"""``python -m campaigns.crash [--kills N] [--seed S]``: kill commands, resume them and compare.

Half of the kills are aimed at moments of writing, half come at random moments of ``pren fit``. For ten minutes, or for
so many kills, however long that takes: a whole campaign has 1,000.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from campaigns.crash.campaign import Outcome, all_cases, campaign, crash_run, make_references, summary
from campaigns.crash.jobs import JOBS
from campaigns.crash.moments import draw_moments
from campaigns.crash.strikes import Struck, strikes, strikes_summary
from campaigns.journal import Journal

SECONDS = 600.0
MANY = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and report.

    Returns:
        The exit code: 0 if there were enough kills and no run was lost.
    """
    parser = argparse.ArgumentParser(prog="python -m campaigns.crash", description="Kill runs, resume and compare.")
    parser.add_argument(
        "--kills", type=int, help=f"how many processes to kill (default: as many as in {SECONDS:.0f} s)"
    )
    parser.add_argument("--only", choices=("strikes", "moments"), help="one of the two halves")
    parser.add_argument(
        "--verb", choices=sorted({job.command[0] for job in JOBS}), help="one verb of pren, with --only strikes"
    )
    parser.add_argument("--seed", type=int, default=0, help="of settings and moments (0)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (2)")
    parser.add_argument("--folder", type=Path, help="the parent of the temporary folder")
    parser.add_argument("--keep", action="store_true", help="keep the folders of all runs")
    parser.add_argument("--journal", type=Path, help="a file for outcomes, from which an interrupted campaign goes on")
    parser.add_argument("--run", type=int, metavar="N", help="only run number N of the campaign")
    options = parser.parse_args(arguments)
    if options.verb is not None and options.only != "strikes":
        parser.error("--verb is for --only strikes: random moments are those of fit")

    folder = Path(tempfile.mkdtemp(prefix="pren-crash-", dir=options.folder))
    print(f"Runs are in {folder}", flush=True)
    halves = 1 if options.only else 2
    kills = MANY if options.kills is None else -(-options.kills // halves)
    seconds = SECONDS / halves if options.kills is None else None
    failed = False
    if options.run is None and options.only != "moments":
        failed |= _strike(options, folder, kills, seconds)
    if options.only != "strikes":
        failed |= _kill(options, folder, kills, seconds)
    if not failed and not options.keep:
        shutil.rmtree(folder)
    return 1 if failed else 0


def _strike(options: argparse.Namespace, folder: Path, kills: int, seconds: float | None) -> bool:
    """Kill during writes; returns whether data were lost."""
    journal = Journal(options.journal)
    outcomes = [Struck(**entry) for entry in journal.read("strike")]
    left = kills - sum(len(outcome.strikes) for outcome in outcomes)
    first = 1 + max((outcome.number for outcome in outcomes), default=-1)
    which = {"seed": options.seed, "keep": options.keep, "verb": options.verb}
    for outcome in strikes(folder, kills=left, seconds=seconds, first=first, **which):
        outcomes.append(outcome)
        journal.add("strike", asdict(outcome))
        print(outcome.line(), flush=True)
    print(strikes_summary(outcomes), flush=True)
    return any(outcome.lost is not None for outcome in outcomes)


def _kill(options: argparse.Namespace, folder: Path, kills: int, seconds: float | None) -> bool:
    """Kill at random moments; returns whether data were lost or kills were too few."""
    begun = time.monotonic()
    cases, journal = all_cases(options.seed), Journal(options.journal)
    outcomes: list[Outcome] = []
    if options.run is None:
        for entry in journal.read("moments"):
            number = entry["number"]
            outcomes.append(Outcome(case=cases[number % len(cases)], draws=draw_moments(options.seed, number), **entry))
        references = make_references(cases, folder, options.jobs)
        results = campaign(
            references,
            folder,
            kills=kills - sum(len(outcome.phases) for outcome in outcomes),
            seed=options.seed,
            jobs=options.jobs,
            keep=options.keep,
            seconds=None if seconds is None else seconds - (time.monotonic() - begun),
            done=[outcome.number for outcome in outcomes],
        )
    else:
        (reference,) = make_references([cases[options.run % len(cases)]], folder, jobs=1)
        results = iter([crash_run(options.run, options.seed, reference, folder / f"run-{options.run:03d}")])
    for outcome in results:
        outcomes.append(outcome)
        journal.add("moments", {"number": outcome.number, "phases": outcome.phases, "lost": outcome.lost})
        print(outcome.line(), flush=True)
        if outcome.lost is not None:
            print(f"  drawn: {'; '.join(map(str, outcome.draws))}")
            print(f"  again: python -m campaigns.crash --seed {options.seed} --run {outcome.number}", flush=True)
    print(summary(outcomes, time.monotonic() - begun))
    if options.run is None and seconds is None and sum(len(outcome.phases) for outcome in outcomes) < kills:
        print("Fewer kills than asked for: nearly every moment came too late.")
        return True
    return any(outcome.lost is not None for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
