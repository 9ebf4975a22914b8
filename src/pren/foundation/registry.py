"""Registries of names, open to other packages.

A package extends pren with an entry point in the group ``pren.plugins`` that names one of its modules; that module
registers its entries. It is imported at the first lookup of a name in each process, so the workers of ``pren compare``
know it too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from pren.foundation.errors import PrenError, suggest

log = logging.getLogger(__name__)

PLUGINS = "pren.plugins"
Entry = TypeVar("Entry")


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name, in the order of registration; `kind` names an entry in messages, such as "method"."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._entries: dict[str, Entry] = {}

    def add(self, name: str, entry: Entry) -> Entry:
        """Add an entry; `PrenError` if another entry has the name."""
        if self._entries.get(name, entry) is not entry:
            raise PrenError("name-taken", f"The {self._kind} {name!r} exists already: register another name.")
        self._entries[name] = entry
        return entry

    def register(self, name: str) -> Callable[[Entry], Entry]:
        """Add an entry, as a decorator."""
        return lambda entry: self.add(name, entry)

    def matching(self, pattern: str = "*") -> list[str]:
        """The names that match a shell pattern."""
        return [name for name in self if fnmatchcase(name, pattern)]

    def __getitem__(self, name: str) -> Entry:
        load_plugins()
        if name not in self._entries:
            hint = suggest(name, self._entries) if self._entries else "None is installed."
            raise PrenError("unknown-name", f"There is no {self._kind} {name!r}. {hint}")
        return self._entries[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The entry of a name, or the default; the `get` of `Mapping` expects a KeyError."""
        load_plugins()
        return self._entries.get(name, default)

    def __contains__(self, name: object) -> bool:
        load_plugins()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        load_plugins()
        return iter(self._entries)

    def __len__(self) -> int:
        load_plugins()
        return len(self._entries)


def resolve(home: str) -> Any:
    """Import the object "module:name"."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


@cache
def load_plugins() -> None:
    """Import the plugins of other packages, once; log those that fail and go on without them."""
    for plugin in entry_points(group=PLUGINS):
        try:
            plugin.load()
        except Exception as error:  # noqa: PERF203 - a plugin may raise anything
            log.warning("Cannot load the plugin %s (%s): %s", plugin.name, plugin.value, error)
