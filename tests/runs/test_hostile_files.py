"""Nothing that pren reads can make it run code: not data, not settings, not a run folder, not a model."""

import io
import json
import os
import pickle
import shutil
import struct
import sys
import zipfile

import numpy as np
import pytest
import torch
from run_folders import run_folder

from pren.cli import __main__ as command_line
from pren.methods.storage import read_model, write_model
from pren.store.manifest import with_checksum

pytestmark = pytest.mark.slow


class Payload:
    """Makes a folder called canary when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("canary",)


PICKLE = pickle.dumps(Payload())
YAML = "!!python/object/apply:os.mkdir [canary]"
BOMB = "a: &a [x, x]\n" + "\n".join(f"{c}: &{c} [*{p}, *{p}]" for p, c in zip("abcdefgh", "bcdefghi", strict=True))


def torch_file():
    buffer = io.BytesIO()
    torch.save({"weights": torch.zeros(2), "payload": Payload()}, buffer)
    return buffer.getvalue()


def object_array():
    buffer = io.BytesIO()
    np.save(buffer, np.array([Payload()], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def npz(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def tensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


HOSTILE = {
    "a pickle": PICKLE,
    "a torch file": torch_file(),
    "an object array": object_array(),
    "nothing": b"",
    "header beyond the file": tensors({}, length=10**6),
    "header of 100 MB": tensors({}, length=100_000_000),
    "header without end": tensors({}, length=2**64 - 1),
    "a pickle as header": tensors(PICKLE),
    "overlapping tensors": tensors({"a": entry(), "b": entry()}, bytes(4)),
    "offsets out of range": tensors({"a": entry(offsets=(0, 4000))}, bytes(4)),
    "offsets backwards": tensors({"a": entry(offsets=(4, 0))}, bytes(4)),
    "duplicate keys": tensors(b'{"a":%b,"a":%b}' % ((json.dumps(entry()).encode(),) * 2), bytes(4)),
    "another type": tensors({"a": entry("OBJECT")}, bytes(4)),
    "a huge shape": tensors({"a": entry(shape=(2**40, 2**40))}, bytes(4)),
    "deep nesting": tensors(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "deep facts": tensors({"__metadata__": {"pren": "[" * 100_000}}),
    "facts that are a pickle": tensors({"__metadata__": {"pren": PICKLE.decode("latin-1")}}),
    "facts that are code": tensors({"__metadata__": {"pren": "__import__('os').mkdir('canary')"}}),
}
FACTS = [
    {"method": "os.mkdir"},
    {"method": "../../canary"},
    {"params": {"backbone": "__import__('os').mkdir('canary')"}},
    {"params": {"heads": 10**30}},
    {"params": {"hidden": [10**9] * 9}},
    {"sample_shape": [10**9]},
    {"learned": {"backbone": "os.mkdir('canary')"}},
    {"learned": {"backbone": ["os", "mkdir"]}},
    {"format": YAML},
]
TEXTS = {"a pickle": PICKLE, "code": b"__import__('os').mkdir('canary')", "tags": YAML.encode(), "deep": b"[" * 200_000}


@pytest.fixture(scope="module")
def originals(arrays, configure, interrupted, tmp_path_factory):
    root = tmp_path_factory.mktemp("originals")
    np.savez(root / "data.npz", **arrays())
    np.save(root / "inputs.npy", arrays()["pool"])
    config = configure(root / "data.npz", rounds=1)
    run_folder(config, root / "finished")
    interrupted(config, root / "interrupted", 0)
    return root


@pytest.fixture
def harmless(originals, monkeypatch, capsys, tmp_path):
    """Run commands; see that each ends with 0 or 2, without a traceback, and that none made a canary."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    for name in ("finished", "interrupted"):
        shutil.copytree(originals / name, tmp_path / name)

    def run(*commands):
        codes = []
        for command in commands:
            monkeypatch.setattr(sys, "argv", ["pren", *map(str, command)])
            try:
                command_line.main()
                codes.append(0)
            except SystemExit as ended:
                codes.append(ended.code or 0)
            out, told = capsys.readouterr()
            assert codes[-1] in (0, 2), told
            assert "Traceback" not in told
            assert codes[-1] == 0 or (out == "" and told.count("Error [") == 1)
            assert not (tmp_path / "canary").exists(), command
            (tmp_path / "labels.csv").unlink(missing_ok=True)
        return codes

    return run


@pytest.fixture
def commands(originals):
    """Everything that reads a run folder."""

    def build(run):
        predict = ["predict", run, originals / "inputs.npy", "--out", "labels.csv"]
        resume = ["fit", "--resume", run]
        return (
            ["show", run, "--json"],
            ["show", run],
            ["evaluate", run],
            predict,
            resume,
        )

    return build


def test_the_payloads_would_work(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    loads = [
        lambda: pickle.loads(PICKLE),  # noqa: S301
        lambda: torch.load(io.BytesIO(torch_file()), weights_only=False),
        lambda: np.load(io.BytesIO(object_array()), allow_pickle=True),
        lambda: np.load(io.BytesIO(npz(pool=object_array())), allow_pickle=True)["pool"],
    ]
    for load in loads:
        load()
        (tmp_path / "canary").rmdir()  # fails if it was not made


@pytest.mark.parametrize("run", ["finished", "interrupted"])
class TestRunFolders:
    @pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
    def test_tensors(self, content, run, harmless, commands, tmp_path):
        for path in (tmp_path / run).rglob("*.safetensors"):
            path.write_bytes(content)
        assert harmless(*commands(run))[2:5] == [2, 2, 2]

    @pytest.mark.parametrize("facts", FACTS, ids=str)
    def test_facts_with_a_right_checksum(self, facts, run, harmless, commands, tmp_path):
        for path in (tmp_path / run).rglob("model.safetensors"):
            arrays, known = read_model(path)
            write_model(path, arrays, {**known, **facts})
        (tmp_path / run / "manifest.json").unlink(missing_ok=True)
        assert harmless(*commands(run))[2:] == [2, 2, 2]

    @pytest.mark.parametrize("name", ["state.json", "manifest.json", "metrics.json", ".lock", "config.yaml"])
    @pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
    def test_texts(self, content, name, run, harmless, commands, originals, tmp_path):
        folder = tmp_path / run
        for path in {folder / name, *folder.rglob(name)} - {folder / "state.json"}:
            path.write_bytes(content)
        codes = harmless(*commands(run))
        if (run, name) == ("interrupted", "metrics.json"):  # only a finished run has one: not read, and replaced
            assert set(codes) == {0}
            assert (folder / name).read_bytes() == (originals / "finished" / name).read_bytes()
        else:
            assert 2 in codes[:4] or name == ".lock"

    @pytest.mark.parametrize("text", [f"data: {YAML}", f"data: x\nparams: {YAML}", BOMB, f"data: x\nrecord: {YAML}"])
    def test_a_configuration_with_a_right_checksum(self, text, run, harmless, commands, tmp_path):
        (tmp_path / run / "config.yaml").write_bytes(with_checksum(f"{text}\n".encode()))
        assert set(harmless(*commands(run))) == {2}


class TestInputs:
    @pytest.mark.parametrize("key", ["features", "labels", "signatures", "pool", "class_names", "answers"])
    @pytest.mark.parametrize("content", [object_array(), PICKLE], ids=["objects", "pickle"])
    def test_data(self, content, key, arrays, harmless, tmp_path):
        members = {}
        for name, array in arrays().items():
            np.save(tmp_path / "member.npy", array)
            members[name] = (tmp_path / "member.npy").read_bytes()
        (tmp_path / "bad.npz").write_bytes(npz(**{**members, key: content}))
        assert harmless(["fit", "bad.npz", "--out", "new"]) == [2]

    @pytest.mark.parametrize("content", [PICKLE, torch_file(), object_array(), npz(inputs=object_array()), b""])
    @pytest.mark.parametrize("name", ["bad.npy", "bad.npz"])
    def test_inputs_and_data_that_are_something_else(self, content, name, harmless, tmp_path):
        (tmp_path / name).write_bytes(content)
        codes = harmless(["predict", "finished", name, "--out", "labels.csv"], ["fit", name, "--out", "new"])
        assert codes == [2, 2]

    @pytest.mark.parametrize("text", [YAML, "&a [*a]", f"[{YAML}]", "!!python/name:os.system", "[" * 50_000])
    def test_settings(self, text, originals, harmless, tmp_path):
        (tmp_path / "bad.yaml").write_text(f"data: numbers-features\nparams:\n  heads: {text}\n")
        (tmp_path / "bomb.yaml").write_text(BOMB)
        fit = ["fit", originals / "data.npz", "--out", "new"]
        assert harmless([*fit, f"--set=heads={text}"], [*fit, "--config", "bad.yaml"]) == [2, 2]
        assert harmless([*fit, "--config", "bomb.yaml"]) == [2]
