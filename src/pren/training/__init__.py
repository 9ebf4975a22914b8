"""What makes it run: processes, division of heads, kept memory, chunks, and the trainer that all networks share.

`core` says what is computed; nothing here changes it.
"""
