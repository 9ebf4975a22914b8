"""Things by name, ours and those of other packages.

A package adds to pren without a change of ours: it declares an entry point in the group ``pren.plugins`` that names one
of its modules, and that module registers what it brings. The module is imported when a name is first looked up, in
whatever process that is, so the workers of ``pren compare`` know it too.
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
    """Names and what they stand for, in the order in which they were added.

    Args:
        kind: What one of them is called in a message, such as "method".
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._entries: dict[str, Entry] = {}

    def add(self, name: str, entry: Entry) -> Entry:
        """Add an entry under a name that is still free.

        Raises:
            PrenError: If the name is taken by something else.
        """
        if self._entries.get(name, entry) is not entry:
            raise PrenError(
                "name-taken", f"There is a {self._kind} {name!r} already: register yours under another name."
            )
        self._entries[name] = entry
        return entry

    def register(self, name: str) -> Callable[[Entry], Entry]:
        """Add what follows, as a decorator."""
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
        """The entry of a name, or else the default; a mapping's own would expect a KeyError."""
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
    """What "module:name" stands for: it is imported now, not when it was registered."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


@cache
def load_plugins() -> None:
    """Import the modules of other packages that register something, once; one that fails is named and left out."""
    for plugin in entry_points(group=PLUGINS):
        try:
            plugin.load()
        except Exception as error:  # noqa: PERF203 - whatever is wrong with it, pren works without
            log.warning("The plugin %s (%s) cannot be loaded: %s", plugin.name, plugin.value, error)
