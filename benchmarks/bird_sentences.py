"""Sentences about CUB's species, as a person with a field guide could write them, from the largest attributes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_COLOURS = "blue brown iridescent purple rufous grey yellow olive green pink orange black white red buff"
_PATTERN = "solid spotted striped multi-colored"
# CUB's 28 groups of attributes in the order of its columns, and the words for each value.
GROUPS: list[tuple[str, list[str]]] = [
    ("bill", "curved dagger-like hooked needle-like hooked spatulate all-purpose cone-shaped specialized".split()),
    ("wings", _COLOURS.split()),
    ("upperparts", _COLOURS.split()),
    ("underparts", _COLOURS.split()),
    ("breast pattern", _PATTERN.split()),
    ("back", _COLOURS.split()),
    ("tail shape", "forked rounded notched fan-shaped pointed squared".split()),
    ("upper tail", _COLOURS.split()),
    ("head pattern", "spotted malar crested masked unusual eyebrow eyering plain eyeline striped capped".split()),
    ("breast", _COLOURS.split()),
    ("throat", _COLOURS.split()),
    ("eyes", _COLOURS.replace("iridescent ", "").split()),
    ("bill length", ["as long as its head", "longer than its head", "shorter than its head"]),
    ("forehead", _COLOURS.split()),
    ("under tail", _COLOURS.split()),
    ("nape", _COLOURS.split()),
    ("belly", _COLOURS.split()),
    ("wing shape", "rounded pointed broad tapered long".split()),
    ("size", ["large", "small", "very large", "medium-sized", "very small"]),
    (
        "shape",
        [
            *("water bird", "marsh bird", "long-legged bird", "duck", "owl", "gull", "hummingbird", "pigeon"),
            *("tree-clinging bird", "hawk", "sandpiper", "ground bird", "swallow", "perching bird"),
        ],
    ),
    ("back pattern", _PATTERN.split()),
    ("tail pattern", _PATTERN.split()),
    ("belly pattern", _PATTERN.split()),
    ("plumage", _COLOURS.split()),
    ("legs", _COLOURS.split()),
    ("bill colour", _COLOURS.split()),
    ("crown", _COLOURS.split()),
    ("wing pattern", _PATTERN.split()),
]


def largest(values: NDArray[np.float64]) -> dict[str, str]:
    """Of the 312 attributes of a species the word with the largest value in each group."""
    words, start = {}, 0
    for group, names in GROUPS:
        words[group] = names[int(values[start : start + len(names)].argmax())]
        start += len(names)
    assert start == len(values)
    return words


def sentences(values: NDArray[np.float64]) -> list[str]:
    """Four sentences about a species from its 312 attributes."""
    w = largest(values)
    bill = f"a {w['bill colour']}, {w['bill']} bill that is {w['bill length']}"
    head = f"a {w['crown']} crown, a {w['forehead']} forehead, a {w['throat']} throat, a {w['nape']} nape"
    breast, belly = f"{w['breast']} breast is {w['breast pattern']}", f"{w['belly']} belly is {w['belly pattern']}"
    return [
        f"a {w['size']} {w['plumage']} bird, shaped like a {w['shape']}, with {bill}.",
        f"its head is {w['head pattern']}, with {head} and {w['eyes']} eyes.",
        f"its {breast}, its {belly}, and it has {w['legs']} legs.",
        f"its {w['wings']} wings are {w['wing pattern']} and {w['wing shape']}, its {w['back']} back is "
        f"{w['back pattern']}, and its {w['upper tail']} tail is {w['tail pattern']} and {w['tail shape']}.",
    ]
