"""YAML as people write settings in: nothing that runs, nothing that unfolds into more than was written."""

from __future__ import annotations

from typing import Any

import yaml

from pren.foundation.errors import PrenError

MOST_LEVELS = 100  # the time that PyYAML takes grows with the square of the depth: hours for a megabyte of brackets


def parse_yaml(content: str | bytes, where: str) -> Any:
    """Read YAML; `where` is what to call it in a message.

    Raises:
        PrenError: If it is not valid, or has anchors (a few lines of those can stand for billions of values), or
            is nested deeply.
    """
    try:
        text, depth = content.decode() if isinstance(content, bytes) else content, 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise PrenError("yaml", f"{where} must not refer to anchors (*name): write the value out.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_LEVELS:
                raise PrenError("yaml", f"{where} is nested more than {MOST_LEVELS} levels deep: no setting is.")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none is a ValueError
        raise PrenError("yaml", f"{where} is not valid YAML: {' '.join(str(error).split())}") from error
