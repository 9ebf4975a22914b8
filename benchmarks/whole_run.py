"""Where a whole run of PrEN spends its time: ``python -m benchmarks.whole_run [--heads K] [--rounds N] [--data NAME]``.

Shares of one run on CUB's first validation fold (PREN_DATA says where CUB is), or on `numbers-features`. Python's
profiler looks on; it adds little, because the calls are few and long. It counts processor time, so that a busy machine
does not distort the shares (with several threads: the time of all of them).
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Sequence

from benchmarks.tables import Table
from pren.data import load
from pren.methods.pren import PrEN

# The part of a call, by text in its name in the profile.
PARTS = {
    "matrix products of the heads": ("torch.bmm", "torch.baddbmm"),
    "Adam": ("_fused_adam_",),
    "votes and probabilities of the pool": ("einsum", "masked_fill", "softmax", "amax", "argmax", "scatter_add_"),
    "checks that weights are numbers": ("isfinite",),
}


def shares(profile: cProfile.Profile) -> dict[str, float]:
    """The share of the whole time that each part took itself."""
    taken = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    seconds = {f"{file}:{name}": row[2] for (file, _, name), row in taken.items()}
    whole = sum(seconds.values())
    found = {
        part: sum(time for call, time in seconds.items() if any(name in call for name in names)) / whole
        for part, names in PARTS.items()
    }
    return {**found, "everything else": 1 - sum(found.values())}


def run(data: str, heads: int, rounds: int) -> Table:
    """Profile one fit."""
    name, options = ("cub", {"features": "efflite0.mat", "fold": 1}) if data == "cub" else (data, {})
    problem, _ = load(name, **options)  # type: ignore[arg-type]
    method = PrEN(heads=heads, rounds=rounds)
    profile = cProfile.Profile(time.process_time)
    profile.runcall(method.fit, problem)
    table = Table(f"A run of PrEN on {data}: {heads} heads, {rounds} rounds", ["part", "share of the time, %"])
    table.rows += [(part, f"{100 * share:.1f}") for part, share in shares(profile).items()]
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.whole_run")
    parser.add_argument("--data", default="cub", choices=["cub", "numbers-features"])
    parser.add_argument("--heads", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args(arguments)
    print(run(options.data, options.heads, options.rounds).markdown())


if __name__ == "__main__":
    main()
