"""Every method by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

from pren.errors import PrenError, suggest
from pren.methods.ale import ALE
from pren.methods.base import Method
from pren.methods.conse import ConSE
from pren.methods.dcl import DCL
from pren.methods.devise import DeViSE
from pren.methods.eszsl import ESZSL
from pren.methods.gfzsl import GFZSL
from pren.methods.latem import LatEm
from pren.methods.params import validate
from pren.methods.pren import PrEN
from pren.methods.qfsl import QFSL
from pren.methods.revise import ReViSE
from pren.methods.ridge import RidgeS2V
from pren.methods.sae import SAE
from pren.methods.sje import SJE
from pren.methods.sync import SynC
from pren.methods.uda import UDA


@dataclass(frozen=True)
class Entry:
    """A method as users name it.

    Attributes:
        name: What to write on the command line.
        title: What to write in a table.
        summary: One line.
        method: The class.
        preset: Parameters that make it this method, and so cannot be changed.
    """

    name: str
    title: str
    summary: str
    method: type[Method]
    preset: Mapping[str, Any] = field(default_factory=dict)


METHODS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("pren", "PrEN", "K heads with projected signatures vote and teach each other (transductive)", PrEN),
        Entry(
            "pren-no-projection",
            "PrEN w/o Proj",
            "PrEN whose heads all see the original signatures (transductive)",
            PrEN,
            {"projection": False},
        ),
        Entry(
            "progressive",
            "Progressive Training",
            "one head, original signatures, every unseen class a candidate (transductive)",
            PrEN,
            {"heads": 1, "projection": False, "subsets": "all"},
        ),
        Entry("eszsl", "ESZSL", "bilinear compatibility in closed form (inductive)", ESZSL),
        Entry("devise", "DeViSE", "bilinear compatibility, every violated margin counts (inductive)", DeViSE),
        Entry("ale", "ALE", "bilinear compatibility, violated margins count by rank (inductive)", ALE),
        Entry("sje", "SJE", "bilinear compatibility, the worst violated margin counts (inductive)", SJE),
        Entry("latem", "LatEm †", "several bilinear maps, the best one counts (inductive)", LatEm),
        Entry("sync", "SynC", "classifiers mixed from those of similar seen classes (inductive)", SynC),
        Entry("sae", "SAE S→F", "linear autoencoder, signatures decoded to features (inductive)", SAE),
        Entry(
            "sae-f2s",
            "SAE F→S",
            "linear autoencoder, features encoded to signatures (inductive)",
            SAE,
            {"direction": "f2s"},
        ),
        Entry("conse", "ConSE †", "signatures of the most probable seen classes, averaged (inductive)", ConSE),
        Entry("ridge-s2v", "Ridge s→v", "signatures regressed to class means of features (inductive)", RidgeS2V),
        Entry("uda", "UDA †", "signatures as sparse codes, with a dictionary adapted to the pool (transductive)", UDA),
        Entry("dcl", "DCL †", "linear SVMs on trusted and diverse pseudo-labels (transductive)", DCL),
        Entry("revise", "ReViSE †", "two autoencoders with a common code teach themselves (transductive)", ReViSE),
        Entry("gfzsl", "GFZSL", "Gaussians predicted from signatures, adapted by EM (transductive)", GFZSL),
        Entry("qfsl", "QFSL †", "a network whose pool must lie among the unseen classes (transductive)", QFSL),
    )
}


def get_entry(name: str) -> Entry:
    """Look a method up; an unknown name raises a `PrenError` with the nearest ones."""
    if name not in METHODS:
        raise PrenError(f"Unknown method {name!r}. {suggest(name, METHODS)}")
    return METHODS[name]


def create(name: str, **params: Any) -> Method:
    """Make a method by name.

    Raises:
        PrenError: For an unknown name or parameter, a bad value, or one that would make it another method.
    """
    entry = get_entry(name)
    for key, value in entry.preset.items():
        if params.get(key, value) != value:
            raise PrenError(f"{name} means {key}={value}: use another method to change it.")
    return entry.method(**validate(entry.method, {**params, **entry.preset}))


def list_methods(pattern: str = "*") -> list[Entry]:
    """The methods whose name matches a shell pattern."""
    return [entry for entry in METHODS.values() if fnmatch(entry.name, pattern)]
