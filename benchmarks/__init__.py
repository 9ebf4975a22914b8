"""Benchmarks: ratios of things measured in one run. `python -m benchmarks` runs them all."""
