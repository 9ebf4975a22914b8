"""What every room uses: errors, registries, seeds, files, processes."""
