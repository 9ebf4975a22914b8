"""Ways to damage a run folder: bytes of files, missing or replaced files, or content with valid checksums."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from safetensors import SafetensorError
from safetensors.torch import load, save

from campaigns.fuzz.mutations import BYTE_EDITS, FORGED_YAML, JSON_EDITS, PLACES, ByteEdit, StructureEdit
from pren.foundation.errors import PrenError
from pren.methods.storage import MODEL_FILE, read_model, write_model
from pren.store.checkpoint import FILES, STATE_FILE, TRAINING_FILE
from pren.store.folder import CONFIG_FILE, result_files
from pren.store.manifest import MANIFEST, with_checksum, write_manifest
from pren.trust import TRUST_FILE

KINDS = (
    *("delete", "folder", "full folder", "pipe", "link inside", "link outside", "dead link", "link to itself"),
    *("unreadable", "other run", "swap", "twin"),
)


def _files(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if path.is_file() and not path.is_symlink())


@dataclass(frozen=True)
class Spoil:
    """Bytes of a file changed, nothing else put right."""

    file: int
    edit: ByteEdit

    def apply(self, run: Path, other: Path) -> None:
        """Damage a run; `other` is not touched."""
        if files := _files(run):
            path = files[self.file % len(files)]
            path.write_bytes(self.edit.apply(path.read_bytes()))


@dataclass(frozen=True)
class Replace:
    """A file that is no longer there, or no longer a file of this run; see `KINDS`."""

    file: int
    kind: str
    second: int

    def apply(self, run: Path, other: Path) -> None:
        """Damage a run; `other` is not touched."""
        files = _files(run)
        if not files:
            return
        path, second = files[self.file % len(files)], files[self.second % len(files)]
        content, outside = second.read_bytes(), _files(other)[self.second % len(_files(other))]
        if self.kind == "unreadable":
            path.chmod(0)
            return
        if self.kind == "swap":
            second.write_bytes(path.read_bytes())
            path.write_bytes(content)
            return
        if self.kind == "twin":
            shutil.copyfile(path, path.with_name(f"copy of {path.name}"))
            return
        path.unlink()
        if self.kind in ("folder", "full folder"):
            path.mkdir()
            if self.kind == "full folder":
                (path / "file").write_bytes(content)
        elif self.kind == "pipe":
            os.mkfifo(path)
        elif self.kind == "other run":
            same = other / path.relative_to(run)
            shutil.copyfile(same if same.is_file() else outside, path)
        elif self.kind != "delete":
            inside = os.path.relpath(second if second != path else run / CONFIG_FILE, path.parent)
            targets: dict[str, str | Path] = {"link inside": inside, "link outside": outside, "dead link": "nowhere"}
            path.symlink_to(targets.get(self.kind, path.name))


@dataclass(frozen=True)
class Plant:
    """Something more in the folder: leftovers, locks, checkpoints with other numbers.

    A name with ``{}`` stands for a checkpoint folder: the present one is renamed to it, or copied.
    """

    name: str
    content: bytes
    kind: str

    def apply(self, run: Path, other: Path) -> None:
        """Damage a run; `other` is not touched."""
        checkpoints = sorted(run.glob("checkpoint/round-*"))
        path = run / self.name
        if self.name.startswith("checkpoint/") and checkpoints and self.kind in ("copy", "rename"):
            if path.exists() or checkpoints[0] == path:
                return
            if self.kind == "copy":
                shutil.copytree(checkpoints[0], path, symlinks=True)
            else:
                checkpoints[0].rename(path)
            return
        if path.is_symlink() or (path.exists() and not path.is_file()):
            return  # an earlier damage: writing would wait for a pipe's reader, or go through a link to a template
        with suppress(OSError):  # a checkpoint folder that is not there, a name that is taken
            if self.kind == "folder":
                path.mkdir()
                (path / "file").write_bytes(self.content)
            elif self.kind == "pipe":
                os.mkfifo(path)
            elif self.kind == "link":
                path.symlink_to("config.yaml")
            else:
                path.write_bytes(self.content)


# An edit can make what cannot be written down, such as half a character, and an earlier damage what cannot be read.
CANNOT_FORGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    PrenError,
    RuntimeError,
    SafetensorError,
    TypeError,
    ValueError,
    yaml.YAMLError,
)


@dataclass(frozen=True)
class Forge:
    """What a file says changed, and every checksum over it made valid again.

    Attributes:
        file: A name, looked for in the run and in its checkpoint.
        edit: What is done to its structure; of a model, to the facts in its header.
        tensor: Which tensor of a file with tensors is changed.
        change: How: "drop", "rename", or one of `TENSOR_CHANGES`; "" for not at all.
        depth: How deep the file is nested beyond reason, 0 for not at all; it replaces all else.
    """

    file: str
    edit: StructureEdit
    tensor: int
    change: str
    depth: int

    def apply(self, run: Path, other: Path) -> None:
        """Damage a run; `other` is not touched."""
        for path in (run / self.file, *run.glob(f"checkpoint/*/{self.file}")):
            if path.is_symlink() or not path.is_file():
                continue  # an earlier damage: writing through a link could reach a template
            with suppress(*CANNOT_FORGE):
                self._forge(path)
        reseal(run)

    def _forge(self, path: Path) -> None:
        if path.name == CONFIG_FILE:
            text = yaml.safe_dump(self.edit.apply(yaml.safe_load(path.read_text())), sort_keys=False)
            path.write_bytes(with_checksum(text.encode()))
        elif path.name in (MODEL_FILE, TRUST_FILE):
            tensors, facts = read_model(path)
            if self.change and tensors:
                tensors = _forge_tensors(tensors, self.tensor, self.change)
            else:
                facts = self.edit.apply(facts)
            write_model(path, tensors, facts)
        elif path.name == TRAINING_FILE:
            path.write_bytes(save(_forge_tensors(load(path.read_bytes()), self.tensor, self.change or "nan")))
        elif self.depth:
            path.write_bytes(b"[" * self.depth + b"]" * self.depth)
        else:
            path.write_text(json.dumps(self.edit.apply(json.loads(path.read_bytes())), indent=2))


def reseal(run: Path) -> None:
    """Make all checksums valid again."""
    with suppress(*CANNOT_FORGE):
        identity = str(yaml.safe_load((run / CONFIG_FILE).read_text())["record"]["id"])
        for checkpoint in run.glob("checkpoint/round-*"):
            write_manifest(checkpoint, FILES, identity)
        if (run / MANIFEST).is_file():
            write_manifest(run, result_files(run), identity)


def _filled(old: torch.Tensor, number: float, whole: int) -> torch.Tensor:
    return torch.full_like(old, number if old.is_floating_point() else whole)


TENSOR_CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nan": lambda old: _filled(old, torch.nan, 1),
    "huge": lambda old: _filled(old, 6e4, 120),
    "negative": lambda old: ~old if old.dtype == torch.bool else -old,
    "float64": lambda old: old.double(),
    "float16": lambda old: old.half(),
    "bfloat16": lambda old: old.bfloat16(),
    "int64": lambda old: old.nan_to_num().long(),
    "bool": lambda old: old.bool(),
    "uint8": lambda old: old.byte(),
    "empty": lambda old: old.new_empty(0),
    "scalar": lambda old: old.new_zeros(()),
    "longer": lambda old: torch.cat([old.reshape(-1), old.reshape(-1)]),
    "flat": lambda old: old.reshape(-1),
    "more axes": lambda old: old[None],
    "large": lambda old: old.new_zeros(100_000),
}


def _forge_tensors(tensors: dict[str, torch.Tensor], which: int, change: str) -> dict[str, torch.Tensor]:
    name = sorted(tensors)[which % len(tensors)]
    old = tensors.pop(name)
    if change == "rename":
        tensors[f"{name}x"] = old
    elif change != "drop":
        tensors[name] = TENSOR_CHANGES[change](old).contiguous()
    return tensors


PLANTED = (
    *(".lock", ".lock", ".writing-model.safetensors", ".writing-config.yaml", ".writing-x", ".writing-manifest.json"),
    *("checkpoint/.writing-round-0002", "checkpoint/.writing-round-0003", "checkpoint/round-0000"),
    *("checkpoint/round-0002", "checkpoint/round-0007", "checkpoint/round-999999999", "checkpoint/round-1"),
    *("review", "review/.lock", "review/thumbnails", "review/answers.jsonl", "review/labels-before.csv"),
    *("checkpoint/round-٠٠٠٩", "checkpoint/x", "notes.txt", "metrics.json", "manifest.json", "é\x1b[31m"),
)
LOCKS = (
    b'{"pid": 1, "host": "x", "since": "now", "command": "\\u001b[31m"}',
    b'{"pid": null}',
    b"[" * 9000,
    b"9" * 6000,
    b"\xff\xfe",
    b"{}",
    b"null",
)
Damage = Spoil | Replace | Plant | Forge
SPOILS: SearchStrategy[Spoil] = st.builds(Spoil, st.integers(0, 20), BYTE_EDITS)
_REPLACED = st.builds(Replace, st.integers(0, 20), st.sampled_from(KINDS), st.integers(0, 20))
_PLANTED = st.builds(
    Plant, st.sampled_from(PLANTED), st.binary(max_size=20), st.sampled_from(["file", "folder", "copy", "rename"])
)
LOCKED: SearchStrategy[Damage] = st.builds(
    Plant,
    st.just(".lock"),
    st.sampled_from(LOCKS) | st.binary(max_size=20),
    st.sampled_from(["file"] * 4 + ["folder", "pipe", "link"]),
)


_ENTRY = b'{"number":1,"window":"w","files":{"0.png":["b",""]},"groups":{},"undoes":0}\n'
ENTRIES = (
    *(_ENTRY + _ENTRY, _ENTRY[:-20], _ENTRY.replace(b"b", b"\\ud800"), _ENTRY.replace(b"0.png", b"../x"), b"\n"),
    *(_ENTRY.replace(b":1", b":" + b"9" * 5000), _ENTRY.replace(b":0", b":9"), _ENTRY.replace(b'["b', b'["zzz')),
    *(b"[" * 9000 + b"\n", b"null\n", b"\xff\n", b"file,class\n../x,b\n", b"file,class\n0.png,zzz\n", b"\0" * 9),
)
JOURNALS: SearchStrategy[Damage] = st.builds(
    Plant,
    st.sampled_from(["review/answers.jsonl", "review/answers.jsonl", "review/labels-before.csv"]),
    st.sampled_from(ENTRIES) | st.binary(max_size=20),
    st.just("file"),
)


def _forged(files: list[str], edits: SearchStrategy[StructureEdit], tensor_changes: list[str]) -> SearchStrategy[Forge]:
    depths = st.just(0) if tensor_changes != [""] else st.sampled_from([0] * 12 + [200, 900, 1100, 100_000])
    return st.builds(Forge, st.sampled_from(files), edits, PLACES, st.sampled_from(tensor_changes), depths)


SAID = _forged([MODEL_FILE, TRUST_FILE, STATE_FILE, MANIFEST, "metrics.json"], JSON_EDITS, [""]) | _forged(
    [CONFIG_FILE], JSON_EDITS | FORGED_YAML, [""]
)
TENSORS = _forged(
    [MODEL_FILE, TRAINING_FILE], st.just(StructureEdit("add", (), None, "")), ["drop", "rename", *TENSOR_CHANGES]
)
OTHER_DAMAGES: SearchStrategy[Damage] = st.one_of(_REPLACED, _PLANTED, LOCKED, JOURNALS, SAID, TENSORS)
