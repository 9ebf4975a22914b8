"""Run the benchmarks: ``python -m benchmarks [NAME ...] [--quick] [--markdown FILE]``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from benchmarks import (
    allocation,
    backbone_step,
    decoding,
    engines,
    exported,
    extraction,
    gradients,
    labelling,
    machine,
    memory,
    million,
    pools,
    prediction,
    processes,
    report,
    scaling,
    training_step,
)
from benchmarks.tables import Table
from benchmarks.timing import CLOCKS, OtherLoad, Settings

BENCHMARKS = {
    "training_step": training_step.run,
    "gradients": gradients.run,
    "prediction": prediction.run,
    "scaling": scaling.run,
    "memory": memory.run,
    "pools": pools.run,
    "processes": processes.run,
    "allocation": allocation.run,
    "backbone_step": backbone_step.run,
    "decoding": decoding.run,
    "engines": engines.run,
    "extraction": extraction.run,
    "labelling": labelling.run,
    "report": report.run,
    "exported": exported.run,
    "million": million.run,
}
RESULTS = Path(__file__).parent / "results"
BEGIN, END = "<!-- begin: written by python -m benchmarks -->", "<!-- end -->"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run benchmarks, print the tables and store them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios of timings in one run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to check that all benchmarks run")
    parser.add_argument("--threads", type=int, help="threads of torch")
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default="wall", help="on a busy machine, use 'cpu' with --threads 1"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the JSON files")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables to this page")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    settings = Settings(quick=options.quick, clock=options.clock)

    about = f"{machine.describe()}; {options.clock} clock"
    print(about, end="\n\n", flush=True)
    sections = []
    for name in options.names or BENCHMARKS:
        load = OtherLoad()
        tables = BENCHMARKS[name](settings)
        others = load.share()
        for table in tables:
            print(table.text(), end="\n\n", flush=True)
        print(_load(others), end="\n\n", flush=True)
        sections += [table.markdown() for table in tables] + [_load(others)]
        _write_json(options.results / f"{name}.json", about, others, tables)
    if options.markdown is not None:
        _write_markdown(options.markdown, "\n\n".join([f"Machine: {about}.", *sections]))


def _load(others: float | None) -> str:
    return "" if others is None else f"Other processes took {others:.0%} of all cores meanwhile."


def _write_json(path: Path, about: str, others: float | None, tables: Sequence[Table]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": about, "other_load": others, "tables": [asdict(table) for table in tables]}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _write_markdown(path: Path, tables: str) -> None:
    """Replace the text between the two marks of a page; a page without marks gets them at its end."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after or chr(10)}", encoding="utf-8")


if __name__ == "__main__":
    main()
