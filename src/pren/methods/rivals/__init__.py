"""The rivals of the paper's tables, one file each, and what several of them share."""
