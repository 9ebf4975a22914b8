"""Mutated settings, arrays and run folders: whatever pren is given, it succeeds or says what is wrong.

``python -m campaigns.fuzz`` runs thousands of cases; the tests run a few hundred of the same properties.
"""
