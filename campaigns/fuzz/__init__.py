"""Mutated settings, arrays and run folders: for any input, pren succeeds or explains the error.

``python -m campaigns.fuzz`` runs thousands of cases; the tests run a few hundred of the same properties.
"""
