"""The method of the paper, tensors in and tensors out. Read it beside the paper in this order.

`projection` (Eq. 1, 2), `ensemble` (Eq. 3, 4), `voting` (Eq. 5-7), `pseudo` (which images get a pseudo-label) and
`progressive` (Algorithm 1). `pren.training` makes it fast (processes, chunks, memory) and can be skipped.

Symbols: S and U are the seen and unseen classes, L = |S| + |U|; m is the length of a signature, h that of a projected
one, d that of an image feature; K heads, head k votes on the subset Z_k of U; E_k = P_k M are its label embeddings.
Classes are always in the order of their names, so that reordering a class table changes nothing.
"""
