"""Long tests of the real command, too slow for the test suite."""
