"""Fuzz for ten minutes, or a number of cases: ``python -m campaigns.fuzz [--cases N] [--seed N] [--only NAME]``."""

from __future__ import annotations

import argparse
import faulthandler
import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from campaigns.fuzz import (
    arrays,
    commands,
    configs,
    folders,
    matlab,
    metamorphic,
    own_folders,
    pictures,
    requests,
    shards,
    tables,
    words,
)
from campaigns.fuzz.command import REFUSED, SECONDS, SUCCESS, TOO_LARGE
from campaigns.fuzz.engine import Property, Report, run
from campaigns.fuzz.templates import prepare
from campaigns.journal import Journal

PROPERTIES = (
    Property("configs", 0.05, configs.CASES, configs.check),
    Property("commands", 0.1, commands.CASES, commands.check),
    Property("requests", 0.1, requests.CASES, requests.check),
    Property("arrays", 0.1, arrays.CASES, arrays.check),
    Property("matlab", 0.05, matlab.CASES, matlab.check),
    Property("folders", 0.15, folders.CASES, folders.check),
    Property("own folders", 0.1, own_folders.CASES, own_folders.check),
    Property("words", 0.05, words.CASES, words.check),
    Property("shards", 0.05, shards.CASES, shards.check),
    Property("tables", 0.05, tables.CASES, tables.check),
    Property("metamorphic", 0.1, metamorphic.CASES, metamorphic.check),
)
PICTURES, PICTURES_SHARE = "pictures", 0.1  # guided by coverage, and so not by hypothesis
CASES, SECONDS_IN_ALL = 20_000, 600.0
MEMORY = 2 << 30  # bytes beyond what is in use; more is an error, so that the machine keeps some


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the properties and print the results.

    Returns:
        1 if a property does not hold, 0 if all do.
    """
    shares = {prop.name: prop.share for prop in PROPERTIES} | {PICTURES: PICTURES_SHARE}
    parser = argparse.ArgumentParser(prog="python -m campaigns.fuzz", description="Mutated inputs for pren.")
    parser.add_argument("--cases", type=int, help=f"how many in all ({CASES} is a whole campaign)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same cases")
    parser.add_argument(
        "--seconds", type=float, help=f"stop early after so long ({SECONDS_IN_ALL:.0f} without --cases)"
    )
    parser.add_argument("--only", choices=[*shares], help="test one property")
    parser.add_argument("--journal", type=Path, help="a file for outcomes, from which an interrupted campaign goes on")
    parser.add_argument("--blind", action="store_true", help="do not guide photographs by coverage, for comparison")
    options = parser.parse_args(arguments)
    chosen = {name: share for name, share in shares.items() if options.only in (None, name)}
    limit = SECONDS_IN_ALL if options.cases is None and options.seconds is None else options.seconds

    _limit_memory()
    reports: dict[str, Report] = {}
    with tempfile.TemporaryDirectory(prefix="pren-fuzz-") as folder:
        workshop = prepare(Path(folder))
        for name, share in chosen.items():
            share /= sum(chosen.values())
            seconds, cases = None if limit is None else limit * share, max(1, round((options.cases or CASES) * share))
            # A hang in C code ends the process and prints its line.
            faulthandler.dump_traceback_later(36_000 if seconds is None else seconds + 60 * SECONDS, exit=True)
            if name == PICTURES:
                with _quiet():
                    reports[name], arcs = pictures.run(cases, options.seed, seconds, guided=not options.blind)
                print(f"Pictures took {len(arcs)} ways from line to line.", flush=True)
            else:
                prop = next(prop for prop in PROPERTIES if prop.name == name)
                reports[name] = run(prop, workshop, cases, options.seed, seconds, Journal(options.journal))
            faulthandler.cancel_dump_traceback_later()
            if reports[name].failure:
                print(_failure(name, reports[name]), file=sys.stderr, flush=True)
    print(_table(reports))
    return int(any(report.failure for report in reports.values()))


@contextmanager
def _quiet() -> Iterator[None]:
    """Close standard error: libtiff writes to it from C."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))


def _failure(name: str, report: Report) -> str:
    return f"\n{name} does not hold.\n{report.failure}\nRepeat with: python -m campaigns.fuzz {report.repeat}\n"


def _table(reports: dict[str, Report]) -> str:
    header = ("property", "cases", SUCCESS, REFUSED, TOO_LARGE, "seconds", "")
    rows: list[tuple[str, ...]] = [header]
    for name, report in reports.items():
        counts = [report.outcomes[outcome] for outcome in (SUCCESS, REFUSED, TOO_LARGE)]
        state = "FAILED" if report.failure else "holds"
        rows.append((name, str(sum(counts)), *map(str, counts), f"{report.seconds:.0f}", state))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
