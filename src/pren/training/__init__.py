"""How networks are trained: processes, division of heads, reused memory, chunks, and one trainer for all networks.

`core` says what is computed; nothing here changes it.
"""
