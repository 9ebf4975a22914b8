"""The rivals in the paper's tables, one file each, and their common parts."""
