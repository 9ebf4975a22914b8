"""Run folders: everything needed to load, resume, explain or repeat a run."""
