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


DEFAULT = "pren-vote"  # what `pren fit` takes when no method is named
METHODS: Registry[MethodEntry] = Registry("method")
# Name, title, home and summary.
_TABLE = """\
pren-vote | PrEN-Vote | pren_vote:PrENVote | groups from the pool, named together by K heads; the default (transductive)
pren-pool | PrEN-Pool | pren_pool:PrENPool | PrEN-Vote without the vote: each group has its nearest name (transductive)
pren | PrEN | pren:PrEN | K heads with projected signatures vote and teach each other (transductive)
pren-no-projection | PrEN w/o Proj | pren:PrEN | PrEN whose heads all see the original signatures (transductive)
progressive | Progressive Training | pren:PrEN | one head, original signatures, any unseen class possible (transductive)
eszsl | ESZSL | rivals.eszsl:ESZSL | bilinear compatibility in closed form (inductive)
devise | DeViSE | rivals.devise:DeViSE | bilinear compatibility, every violated margin counts (inductive)
ale | ALE | rivals.ale:ALE | bilinear compatibility, violated margins count by rank (inductive)
sje | SJE | rivals.sje:SJE | bilinear compatibility, the worst violated margin counts (inductive)
latem | LatEm † | rivals.latem:LatEm | several bilinear maps, the best one counts (inductive)
sync | SynC | rivals.sync:SynC | classifiers mixed from those of similar seen classes (inductive)
sae | SAE S→F | rivals.sae:SAE | linear autoencoder, signatures decoded to features (inductive)
sae-f2s | SAE F→S | rivals.sae:SAE | linear autoencoder, features encoded to signatures (inductive)
conse | ConSE † | rivals.conse:ConSE | signatures of the most probable seen classes, averaged (inductive)
ridge-s2v | Ridge s→v | rivals.ridge:RidgeS2V | signatures regressed to class means of features (inductive)
clip | CLIP | rivals.clip:CLIP | cosine of a CLIP model's two towers, nothing learned (inductive)
uda | UDA † | rivals.uda:UDA | signatures as sparse codes, the dictionary adapted to the pool (transductive)
dcl | DCL † | rivals.dcl:DCL | linear SVMs on trusted and diverse pseudo-labels (transductive)
revise | ReViSE † | rivals.revise:ReViSE | two autoencoders with a common code teach themselves (transductive)
gfzsl | GFZSL | rivals.gfzsl:GFZSL | Gaussians predicted from signatures, adapted by EM (transductive)
qfsl | QFSL † | rivals.qfsl:QFSL | a network whose pool must lie among the unseen classes (transductive)
"""
_PRESETS: dict[str, dict[str, Any]] = {
    "pren-no-projection": {"projection": False},
    "progressive": {"heads": 1, "projection": False, "subsets": "all"},
    "sae-f2s": {"direction": "f2s"},
}
for _line in _TABLE.splitlines():
    _name, _title, _home, _summary = _line.split(" | ")
    METHODS.add(_name, MethodEntry(_name, _title, _summary, _home, _PRESETS.get(_name, {})))


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
        raise PrenError("param-unknown", f"Only PrEN has a parameter {', '.join(foreign)}: add --method pren.")
    return entry.method(**validate(entry.method, {**params, **entry.preset}))


def trains_backbone(name: str) -> bool:
    """Whether a method can train a backbone on photographs; others take them as features alone."""
    return "backbone" in METHODS[name].method.params


def list_methods(pattern: str = "*") -> list[MethodEntry]:
    """The methods whose name matches a shell pattern."""
    return [METHODS[name] for name in METHODS.matching(pattern)]
