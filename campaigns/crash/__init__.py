"""Runs that are killed at random moments, and must end like uninterrupted ones."""
