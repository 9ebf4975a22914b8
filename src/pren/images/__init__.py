"""From photographs to features."""
