"""Long trials of the real command: what a test suite has no time for."""
