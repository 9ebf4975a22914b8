"""Run folders on disk: every write is complete or has no effect, one writer at a time, resumable."""
