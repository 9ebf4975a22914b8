"""Parameters of the methods in a comparison: defaults, from a file, or from `pren tune`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pren.foundation.errors import PrenError
from pren.methods.registry import create
from pren.research.weights import OPTION
from pren.store.config import RunConfig, parse_config, read_yaml


@dataclass(frozen=True)
class Parameters:
    """Parameters by method, and by method and data.

    Attributes:
        everywhere: By method, for all data.
        tuned: Configurations for the data, split, setting and signatures that they name.
    """

    everywhere: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tuned: tuple[RunConfig, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.everywhere or self.tuned)

    def __or__(self, other: Parameters) -> Parameters:
        return Parameters({**self.everywhere, **other.everywhere}, (*self.tuned, *other.tuned))

    def of(self, config: RunConfig) -> dict[str, Any]:
        """The parameters for a method on some data, without the seed; empty if none are given."""
        found = self._tuned_for(config)
        given = self.everywhere.get(config.method, {}) if found is None else found.params
        return {name: value for name, value in given.items() if name != "seed"}

    def with_weights(self, config: RunConfig) -> RunConfig:
        """The configuration with the weights of signature sources that its parameters were tuned with."""
        found = self._tuned_for(config)
        if found is None or (chosen := found.options.get(OPTION)) == (said := config.options.get(OPTION)):
            return config
        if said is not None:
            told = "without weights" if chosen is None else f"with {OPTION}={chosen}"
            raise PrenError("params-elsewhere", f"{config.method} was tuned {told}: leave {OPTION} out.")
        return config.model_copy(update={"options": {**config.options, OPTION: chosen}})

    def _tuned_for(self, config: RunConfig) -> RunConfig | None:
        found = [tuned for tuned in self.tuned if _subject(tuned) == _subject(config)]
        if len(found) > 1:
            which = f"{config.method} on {config.data} ({config.setting})"
            raise PrenError("params-ambiguous", f"There are {len(found)} configurations for {which}: keep one.")
        return found[0] if found else None


def read_parameters(path: Path) -> Parameters:
    """Read a YAML file, or a folder with what `pren tune` wrote.

    Args:
        path: A file that maps methods to their parameters (``eszsl: {feature_reg: 10}``), a tuned ``config.yaml``, or a
            folder with such configurations: ``NAME.yaml`` or ``NAME/config.yaml``.

    Raises:
        PrenError: If a method or a parameter is unknown, or there is nothing to read.
    """
    files = sorted({*path.glob("*.yaml"), *path.glob("*/config.yaml")}) if path.is_dir() else [path]
    if not files:
        raise PrenError("params-missing", f"{path} has no configuration: add NAME.yaml or NAME/config.yaml.")
    contents = [read_yaml(file) for file in files]
    if path.is_dir() or "method" in contents[0]:
        return Parameters(tuned=tuple(map(_read_config, files, contents)))
    for name, params in contents[0].items():
        if not isinstance(params, dict):
            example = "'eszsl: {feature_reg: 10}'"
            raise PrenError("params-form", f"{path}: {name} needs names and values, such as {example}.")
        try:
            create(str(name), **{str(key): value for key, value in params.items()})
        except PrenError as error:
            raise PrenError(error.code, f"{path}: {error}") from error
    return Parameters(everywhere=contents[0])


def _read_config(path: Path, content: dict[str, Any]) -> RunConfig:
    config = parse_config(content, str(path))
    try:
        return config.resolved()
    except PrenError as error:
        raise PrenError(error.code, f"{path}: {error}") from error


def _subject(config: RunConfig) -> tuple[str | None, ...]:
    """What a configuration is for. Files count by name, because they may have moved."""
    data = Path(config.data).name if config.is_path() else config.data
    return config.method, data, config.split, config.setting, str(config.options.get("signatures", "attributes"))
