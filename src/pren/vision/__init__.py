"""From images to features."""
