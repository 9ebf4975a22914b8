"""YAML for settings: nothing that runs code, nothing that expands beyond what is written."""

from __future__ import annotations

from typing import Any

import yaml

from pren.foundation.errors import PrenError

try:
    from yaml import CSafeLoader as SafeLoader  # ten times as fast
except ImportError:  # a PyYAML that was built without libyaml
    from yaml import SafeLoader  # type: ignore[assignment]

MOST_LEVELS = 100  # PyYAML's time grows with the square of the depth: hours for a megabyte of brackets


def parse_yaml(content: str | bytes, where: str) -> Any:
    """Read YAML; `where` names it in messages.

    Raises:
        PrenError: If it is not valid, is nested deeply, or has anchors (a few lines can expand to billions of values).
    """
    try:
        text, depth = content.decode() if isinstance(content, bytes) else content, 0
        for event in yaml.parse(text, Loader=SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise PrenError("yaml", f"{where} uses an anchor (*name): write the value itself.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_LEVELS:
                raise PrenError("yaml", f"{where} has more than {MOST_LEVELS} nested levels: use fewer.")
        return yaml.load(text, Loader=SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # an impossible date is a ValueError
        raise PrenError("yaml", f"{where} is not valid YAML: {' '.join(str(error).split())}") from error
