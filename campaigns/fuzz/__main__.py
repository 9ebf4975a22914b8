"""Run the fuzzing: ``python -m campaigns.fuzz [--cases N] [--seed N] [--seconds N] [--only NAME]``."""

from __future__ import annotations

import argparse
import faulthandler
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from campaigns.fuzz import arrays, configs, folders, own_folders, tables
from campaigns.fuzz.command import REFUSED, SECONDS, SUCCESS, TOO_LARGE
from campaigns.fuzz.engine import Property, Report, run
from campaigns.fuzz.templates import prepare

PROPERTIES = (
    Property("configs", 0.3, configs.CASES, configs.check),
    Property("arrays", 0.3, arrays.CASES, arrays.check),
    Property("folders", 0.25, folders.CASES, folders.check),
    Property("own folders", 0.1, own_folders.CASES, own_folders.check),
    Property("tables", 0.05, tables.CASES, tables.check),
)
MEMORY = 4 << 30  # bytes beyond what is in use; whoever wants more gets an error, and not the machine's last page


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for and print what was found.

    Returns:
        1 if a property does not hold, 0 if all do.
    """
    parser = argparse.ArgumentParser(prog="python -m campaigns.fuzz", description="Mutated inputs for pren.")
    parser.add_argument("--cases", type=int, default=10_000, help="how many in all")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same cases")
    parser.add_argument("--seconds", type=float, help="stop early after so long")
    parser.add_argument("--only", choices=[prop.name for prop in PROPERTIES], help="a single property gets all cases")
    options = parser.parse_args(arguments)
    chosen = [prop for prop in PROPERTIES if options.only in (None, prop.name)]
    whole = sum(prop.share for prop in chosen)

    _limit_memory()
    reports: dict[str, Report] = {}
    with tempfile.TemporaryDirectory(prefix="pren-fuzz-") as folder:
        workshop = prepare(Path(folder))
        for prop in chosen:
            share = prop.share / whole
            seconds = None if options.seconds is None else options.seconds * share
            # A hang outside Python's reach ends the process, with the line it hangs in.
            faulthandler.dump_traceback_later(3600 if seconds is None else seconds + 60 * SECONDS, exit=True)
            reports[prop.name] = run(prop, workshop, max(1, round(options.cases * share)), options.seed, seconds)
            faulthandler.cancel_dump_traceback_later()
            if reports[prop.name].failure:
                print(_failure(prop.name, reports[prop.name]), file=sys.stderr, flush=True)
    print(_table(reports))
    return int(any(report.failure for report in reports.values()))


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
