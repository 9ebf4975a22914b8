"""Long searches for defects that the tests have no time for."""
