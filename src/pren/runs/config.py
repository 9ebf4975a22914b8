"""What a run is asked to do: the same schema for YAML files, the command line and Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from pren.data import load, recommended_params
from pren.errors import PrenError, suggest
from pren.methods.base import Method
from pren.methods.params import schema, validate
from pren.methods.registry import create, get_entry
from pren.problem import Answers, Problem


class RunConfig(BaseModel):
    """Data, method and parameters.

    Attributes:
        data: A registered name or the path of a file.
        root: The folder of a data set that is not embedded.
        split: Which of its splits; None for its default.
        setting: "zsl" or "gzsl".
        method: A registered name.
        params: The method's parameters; what is left out is as the data set recommends or the method defaults.
        record: What a finished run notes about itself (versions, hashes, command); not an input.
    """

    model_config = ConfigDict(extra="forbid")

    data: str
    root: str | None = None
    split: str | None = None
    setting: Literal["zsl", "gzsl"] = "zsl"
    method: str = "pren"
    params: dict[str, Any] = {}
    record: dict[str, Any] = {}

    def resolved(self) -> RunConfig:
        """The same with every parameter written out and checked."""
        entry = get_entry(self.method)
        known = schema(entry.method).model_fields
        advice = {key: value for key, value in recommended_params(self.data).items() if key in known}
        params = validate(entry.method, {**advice, **entry.preset, **self.params})
        return self.model_copy(update={"params": params})

    def load_data(self) -> tuple[Problem, Answers | None]:
        """The problem and, where they are known, its answers."""
        return load(self.data, root=self.root, split=self.split, setting=self.setting)

    def create_method(self) -> Method:
        """The method, not yet fitted."""
        return create(self.method, **self.params)

    def difference(self, other: RunConfig) -> list[str]:
        """What two resolved configurations disagree in, as ``name: ours, theirs``."""
        ours, theirs = self.model_dump(exclude={"record"}), other.model_dump(exclude={"record"})
        ours |= {f"params.{key}": value for key, value in ours.pop("params").items()}
        theirs |= {f"params.{key}": value for key, value in theirs.pop("params").items()}
        keys = [*ours, *(key for key in theirs if key not in ours)]
        return [f"{k}: {ours.get(k)!r}, {theirs.get(k)!r}" for k in keys if ours.get(k) != theirs.get(k)]

    def to_yaml(self) -> str:
        """As text that `read_config` takes."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PrenError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none is a ValueError
        raise PrenError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise PrenError(f"{path} must hold names and values, such as 'method: pren'.")
    return content


def parse_config(content: dict[str, Any], where: str) -> RunConfig:
    """Check a mapping.

    Raises:
        PrenError: Naming every key that is unknown, missing or of the wrong kind.
    """
    try:
        return RunConfig.model_validate(content)
    except ValidationError as error:
        problems = []
        for detail in error.errors():
            name = ".".join(str(part) for part in detail["loc"])
            hint = f" {suggest(name, RunConfig.model_fields)}" if detail["type"] == "extra_forbidden" else ""
            problems.append(f"{name}: {detail['msg'].lower()}.{hint}")
        raise PrenError(f"{where} does not describe a run. {' '.join(problems)}") from None
