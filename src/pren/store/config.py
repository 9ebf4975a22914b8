"""The configuration of a run: one schema for YAML files, the command line and Python."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pren.data import find_dataset, is_path, load
from pren.data.folder.class_sources import names_of
from pren.foundation.errors import PrenError, suggest
from pren.foundation.files import read_bytes
from pren.foundation.plain_yaml import parse_yaml
from pren.images.engines import TORCH
from pren.images.extraction import Extractor
from pren.images.quality import with_usual
from pren.images.weights import absolute_weights
from pren.methods.base import Method
from pren.methods.registry import DEFAULT, METHODS, create, trains_backbone
from pren.problem import Answers, Problem
from pren.store.manifest import FORMAT, check_format

log = logging.getLogger(__name__)

SOURCES = ("signatures", "signature_weights")  # options that say which descriptions of the classes to use, and how much

MOST_BYTES = 1 << 20


class RunConfig(BaseModel):
    """Data, method and parameters.

    Attributes:
        format: The version of the format; see `pren.store.manifest`.
        data: A registered name, or the path of a file or a folder.
        root: The folder of a data set that is not embedded.
        split: The split; None for the default.
        setting: "zsl" or "gzsl".
        find_setting: Whether to find out which it is as soon as the data are open; then the setting is "gzsl" until it
            is known.
        options: Options of the data set, such as a validation fold.
        extractor: The frozen backbone that turns photographs into features; None if the method takes the data.
        cache: Where those features are kept; None for the default.
        method: A registered name.
        params: Parameters of the method; others have their defaults.
        rehearsals: How many fits to held-out classes measure how sure labels are; None for the method's number, or
            none where a backbone is trained.
        choose_gamma: Whether rehearsals choose γ in GZSL; None for yes, unless it is a parameter.
        min_accuracy: Doubtful inputs get no label, so that this share of the labels is right; None for all labels.
        record: Versions, hashes and command of a run; not a setting.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal[3] = FORMAT
    data: str
    root: str | None = None
    split: str | None = None
    setting: Literal["zsl", "gzsl"] = "zsl"
    find_setting: bool = False
    options: dict[str, Any] = {}
    extractor: Extractor | None = None
    cache: str | None = None
    method: str = DEFAULT
    params: dict[str, Any] = {}
    rehearsals: Annotated[int, Field(ge=0)] | None = None
    choose_gamma: bool | None = None
    min_accuracy: Annotated[float, Field(gt=0, le=1)] | None = None
    record: dict[str, Any] = {}

    def is_path(self) -> bool:
        """Whether the data are a file or a folder, not a registered name."""
        return is_path(self.data)

    def resolved(self) -> RunConfig:
        """The same with checked parameters, the backbone of `with_features`, its engine, absolute paths of weights."""
        entry = METHODS[self.method]
        method = create(self.method, **{**entry.preset, **self.params})
        params = {name: getattr(method, name) for name in entry.method.params}
        if isinstance(params.get("weights"), str):
            params["weights"] = absolute_weights(params["weights"])
        extractor = self.with_features().extractor
        extractor = None if extractor is None else extractor.resolved()
        choose_gamma = "gamma" not in self.params if self.choose_gamma is None else self.choose_gamma
        return self.model_copy(update={"params": params, "extractor": extractor, "choose_gamma": choose_gamma})

    def with_features(self, methods: Sequence[str] = (), asked: Mapping[str, str] | None = None) -> RunConfig:
        """The same with a frozen backbone, if the data are photographs and the methods do not train a backbone.

        Args:
            methods: Registered names; by default its own method.
            asked: Settings of the backbone, by the names of `Extractor`. They imply photographs.
        """
        names = methods or [self.method]
        photographs = bool(asked) or find_dataset(self.data).has_photographs(self.options)
        if self.extractor is not None or not photographs or any(map(trains_backbone, names)):
            return self
        extractor = Extractor.model_validate(with_usual(asked or {}, own=self.is_path()))
        log.info(
            "%s: uses features of the frozen backbone %s%s.",
            ", ".join(dict.fromkeys(METHODS[name].title for name in names)),
            extractor.backbone,
            "" if asked else " (choose another with --backbone)",
        )
        return self.model_copy(update={"extractor": extractor})

    def with_absolute_paths(self) -> RunConfig:
        """The same with absolute paths."""
        paths = {"data": self.data if self.is_path() else None, "root": self.root, "cache": self.cache}
        update: dict[str, Any] = {key: _absolute(path) for key, path in paths.items() if path is not None}
        files, folders = self._places()
        update["options"] = self.options | {key: _absolute(path) for key, path in (files | folders).items()}
        return self.model_copy(update=update)

    def found(self, problem: Problem) -> RunConfig:
        """The same with what was found out as its data were opened: the setting, and the sources of the signatures.

        So the run stays what it is when another file is added to its folder.
        """
        options, own = dict(self.options), problem.source.get("folder") == self.data  # else it is from memory
        if own and not options.keys() & set(SOURCES) and (names := names_of(problem.source)):
            weights = [list(problem.source["signatures"]["weights"])] if len(names) > 1 else []
            options |= dict(zip(SOURCES, (",".join(names), *weights), strict=False))
        return self.model_copy(update={"setting": problem.setting, "find_setting": False, "options": options})

    def for_record(self, record: dict[str, Any]) -> RunConfig:
        """The same for a run folder: with a record, and absolute paths."""
        identity = self.identity(record.get("hashes"))
        return self.with_absolute_paths().model_copy(update={"record": {"id": identity, **record}})

    def identity(self, hashes: dict[str, str] | None) -> str:
        """The id of a run: a hash of its settings and of the hashes of its data."""
        what = {**self._without_places(), "hashes": hashes}
        return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def load_data(self) -> tuple[Problem, Answers | None]:
        """The problem, and its answers or None."""
        for key in {"name", "root", "split", "setting"} & self.options.keys():
            raise PrenError("data-option-unknown", f"{key!r} is not an option of the data: set {key} itself.")
        return load(self.data, root=self.root, split=self.split, setting=self.setting, **self.options)

    def _places(self) -> tuple[dict[str, str], dict[str, str]]:
        """The options that are paths of files, and of folders.

        Neither a bare name (a file in the data set's folder) nor True (the default folder) is a path.
        """
        known = find_dataset(self.data)
        paths = {key: str(value) for key, value in self.options.items() if isinstance(value, str | Path)}
        files = {key: path for key, path in paths.items() if key in known.file_options and Path(path).name != path}
        return files, {key: path for key, path in paths.items() if key in known.folder_options}

    def _without_places(self) -> dict[str, Any]:
        """All settings but paths: hashes identify the files."""
        content = self.model_dump(exclude={"data", "root", "cache", "record", "find_setting"})
        files, folders = self._places()
        content["options"] |= {key: Path(path).name for key, path in files.items()} | dict.fromkeys(folders, True)
        if self.extractor is not None:
            content["extractor"]["weights"] = self.extractor.kind_of_weights()
            if self.extractor.engine in (None, TORCH):  # as before there were engines
                del content["extractor"]["engine"]
            if self.extractor.alike is None:
                del content["extractor"]["alike"]
        return content

    def create_method(self) -> Method:
        """The method of a resolved configuration, not yet fitted."""
        return METHODS[self.method].method(**self.params)

    def difference(self, other: RunConfig) -> list[str]:
        """How two resolved configurations differ, as ``name: ours, theirs``; not in paths, as data may move."""
        moved = self.is_path() and other.is_path()
        ours, theirs = ({"data": None if moved else c.data, **c._without_places()} for c in (self, other))
        for content in (ours, theirs):
            for group in ("options", "params"):
                content |= {f"{group}.{key}": value for key, value in content.pop(group).items()}
        keys = [*ours, *(key for key in theirs if key not in ours)]
        return [f"{k}: {ours.get(k)!r}, {theirs.get(k)!r}" for k in keys if ours.get(k) != theirs.get(k)]

    def to_yaml(self) -> str:
        """As text for `parse_yaml` and `parse_config`."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def read_yaml(path: Path, content: bytes | None = None) -> dict[str, Any]:
    """Read a YAML file with a mapping; `content` if that was read already."""
    mapping = parse_yaml(read_bytes(path, MOST_BYTES) if content is None else content, str(path))
    if not isinstance(mapping, dict):
        raise PrenError("config-form", f"{path} must have names and values, such as 'method: pren'.")
    return mapping


def parse_config(content: dict[str, Any], where: str) -> RunConfig:
    """Check a mapping; the error names every key that is unknown, missing or of the wrong type."""
    number = content.get("format", FORMAT)
    if type(number) is int:
        check_format(number, where)
    try:
        return RunConfig.model_validate(content)
    except ValidationError as error:
        problems = []
        for detail in error.errors():
            name = ".".join(str(part) for part in detail["loc"])
            hint = f" {suggest(name, RunConfig.model_fields)}" if detail["type"] == "extra_forbidden" else ""
            problems.append(f"{name}: {detail['msg'].lower()}.{hint}")
        raise PrenError("config-invalid", f"{where} is not a valid configuration. {' '.join(problems)}") from None
