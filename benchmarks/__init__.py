"""Benchmarks: ratios of times that are measured in one run. `python -m benchmarks` runs them all."""
