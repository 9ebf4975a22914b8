"""Run folders on disk: whole or not at all, one writer at a time, resumable."""
