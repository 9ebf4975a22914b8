"""Runs that are killed at random moments and have to end as if nobody had."""
