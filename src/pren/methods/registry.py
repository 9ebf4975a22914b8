"""Every method by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pren.foundation.errors import PrenError
from pren.foundation.registry import Registry, resolve
from pren.methods.base import Method
from pren.methods.params import validate


@dataclass(frozen=True)
class MethodEntry:
    """A method as users name it.

    Attributes:
        name: What to write on the command line.
        title: What to write in a table.
        summary: One line.
        home: The class, or where it is: "module:Class" below `pren.methods`. Only what is used is imported.
        preset: Parameters that make it this method, and so cannot be changed.
    """

    name: str
    title: str
    summary: str
    home: type[Method] | str
    preset: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def method(self) -> type[Method]:
        """The class."""
        if not isinstance(self.home, str):
            return self.home
        found: type[Method] = resolve(f"pren.methods.{self.home}")
        return found


DEFAULT = "pren-pool"  # what `pren fit` takes when no method is named
METHODS: Registry[MethodEntry] = Registry("method")
for _entry in (
    MethodEntry(
        "pren-pool",
        "PrEN-Pool",
        "classes placed by signatures, then by the pool; the default (transductive)",
        "pren_pool:PrENPool",
    ),
    MethodEntry(
        "pren", "PrEN", "K heads with projected signatures vote and teach each other (transductive)", "pren:PrEN"
    ),
    MethodEntry(
        "pren-no-projection",
        "PrEN w/o Proj",
        "PrEN whose heads all see the original signatures (transductive)",
        "pren:PrEN",
        {"projection": False},
    ),
    MethodEntry(
        "progressive",
        "Progressive Training",
        "one head, original signatures, every unseen class a candidate (transductive)",
        "pren:PrEN",
        {"heads": 1, "projection": False, "subsets": "all"},
    ),
    MethodEntry("eszsl", "ESZSL", "bilinear compatibility in closed form (inductive)", "rivals.eszsl:ESZSL"),
    MethodEntry(
        "devise", "DeViSE", "bilinear compatibility, every violated margin counts (inductive)", "rivals.devise:DeViSE"
    ),
    MethodEntry("ale", "ALE", "bilinear compatibility, violated margins count by rank (inductive)", "rivals.ale:ALE"),
    MethodEntry("sje", "SJE", "bilinear compatibility, the worst violated margin counts (inductive)", "rivals.sje:SJE"),
    MethodEntry("latem", "LatEm †", "several bilinear maps, the best one counts (inductive)", "rivals.latem:LatEm"),
    MethodEntry("sync", "SynC", "classifiers mixed from those of similar seen classes (inductive)", "rivals.sync:SynC"),
    MethodEntry("sae", "SAE S→F", "linear autoencoder, signatures decoded to features (inductive)", "rivals.sae:SAE"),
    MethodEntry(
        "sae-f2s",
        "SAE F→S",
        "linear autoencoder, features encoded to signatures (inductive)",
        "rivals.sae:SAE",
        {"direction": "f2s"},
    ),
    MethodEntry(
        "conse", "ConSE †", "signatures of the most probable seen classes, averaged (inductive)", "rivals.conse:ConSE"
    ),
    MethodEntry(
        "ridge-s2v", "Ridge s→v", "signatures regressed to class means of features (inductive)", "rivals.ridge:RidgeS2V"
    ),
    MethodEntry("clip", "CLIP", "cosine of a CLIP model's two towers, nothing learned (inductive)", "rivals.clip:CLIP"),
    MethodEntry(
        "uda",
        "UDA †",
        "signatures as sparse codes, the dictionary adapted to the pool (transductive)",
        "rivals.uda:UDA",
    ),
    MethodEntry("dcl", "DCL †", "linear SVMs on trusted and diverse pseudo-labels (transductive)", "rivals.dcl:DCL"),
    MethodEntry(
        "revise",
        "ReViSE †",
        "two autoencoders with a common code teach themselves (transductive)",
        "rivals.revise:ReViSE",
    ),
    MethodEntry(
        "gfzsl", "GFZSL", "Gaussians predicted from signatures, adapted by EM (transductive)", "rivals.gfzsl:GFZSL"
    ),
    MethodEntry(
        "qfsl", "QFSL †", "a network whose pool must lie among the unseen classes (transductive)", "rivals.qfsl:QFSL"
    ),
):
    METHODS.add(_entry.name, _entry)


def register_method(name: str, *, title: str, summary: str, **preset: Any) -> Callable[[type[Method]], type[Method]]:
    """Make a method known by name, as a decorator of its class.

    Args:
        name: What to write on the command line. The class is named so, too: that is how a saved model finds it.
        title: What to write in a table.
        summary: One line that ends with "(inductive)" or "(transductive)".
        **preset: Parameters that make it this method.
    """

    def add(method: type[Method]) -> type[Method]:
        method.name = name
        METHODS.add(name, MethodEntry(name, title, summary, method, preset))
        return method

    return add


def create(name: str, **params: Any) -> Method:
    """Make a method by name.

    Raises:
        PrenError: For an unknown name or parameter, a bad value, or one that would make it another method.
    """
    entry = METHODS[name]
    for key, value in entry.preset.items():
        if params.get(key, value) != value:
            raise PrenError("param-preset", f"{name} means {key}={value}: use another method to change it.")
    unknown = params.keys() - entry.method.params.keys()
    foreign = sorted(unknown & METHODS["pren"].method.params.keys()) if unknown and name == DEFAULT else []
    if foreign:  # the default may stand for a method that was not named, and most advice is about PrEN
        raise PrenError(
            "param-unknown", f"{entry.title} has no parameter {', '.join(foreign)}, but PrEN has: add --method pren."
        )
    return entry.method(**validate(entry.method, {**params, **entry.preset}))


def trains_backbone(name: str) -> bool:
    """Whether a method can train a backbone on photographs; others take them as features alone."""
    return "backbone" in METHODS[name].method.params


def list_methods(pattern: str = "*") -> list[MethodEntry]:
    """The methods whose name matches a shell pattern."""
    return [METHODS[name] for name in METHODS.matching(pattern)]
