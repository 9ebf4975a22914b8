"""Runs: fit a method, label the pool, and keep all that is needed to load, resume or repeat it."""
