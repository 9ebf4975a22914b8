"""Everything that can be fitted, one file each, under one registry."""
