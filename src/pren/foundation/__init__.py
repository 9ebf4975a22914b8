"""What every room stands on: errors, names that can be added to, seeds, files, processes."""
