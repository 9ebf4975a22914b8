"""Mutated settings: ``pren fit --config FILE``, ``--set KEY=VALUE`` and the other options."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import yaml
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from campaigns.fuzz.command import SUCCESS, changes, pren, snapshot
from campaigns.fuzz.mutations import BYTE_EDITS, LINE_EDITS, YAML_EDITS, ByteEdit, LineEdit, StructureEdit
from campaigns.fuzz.templates import PARAMS, Workshop

KEYS = (
    *(*PARAMS, "seed", "rho", "n_max", "completion", "subsets", "gzsl_rule", "gamma", "first_rounds", "backbone"),
    *("backbone_lr", "output_relu", "projection", "frozen", "feature_reg", "signature_reg"),
)
WORDS = (
    *("", " ", "0", "1", "2", "-1", "1.5", "1e3", "nan", ".inf", "-.inf", "1e999", "1e308", "1e-320", "null", "~"),
    *("true", "[]", "[1]", "[4, 4]", "[0]", "{}", "{a: 1}", "[[]]", "[", "]", "{", "'", '"', "*a", "&a 1", "!!x 1"),
    *("!!python/name:os.system", "0x10", "0b1", "1_0", "1:30", "2001-01-01", "2001-99-99", "9" * 30, "9" * 400),
    *("9" * 5000, "-" + "9" * 30, "x" * 3000, "\n", "\t", "\x1b[31m", "\ufeff", "\udcff", "é", "a\nError: b", "%"),
    *("zsl", "gzsl", "pren", "pren-no-projection", "progressive", "eszsl", "literal", "probability", "lapack", "half"),
    *("all", "null", "complement", "none", "small-cnn", "test", "validation", "--json", "--help=1", "=", "a=b", "[/]"),
    "[" * 400 + "]" * 400,
    "[" * 5000,
)
# What a process can be given as an argument: no NUL, and of surrogates those that stand for undecodable bytes.
ARGUMENTS: SearchStrategy[str] = st.sampled_from(WORDS) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from(["\udc80", "\udcff"]), max_size=8
)
OPTIONS = ("--method", "--setting", "--split", "--seed", "--root", "--accelerator")


@dataclass(frozen=True)
class Config:
    """A configuration file and the options beside it.

    Attributes:
        method: What the valid file asks for.
        edits: What is done to it.
        encoding: How its text becomes bytes.
        options: More arguments.
        json: Whether to ask for JSON.
    """

    method: str
    edits: tuple[StructureEdit | LineEdit | ByteEdit, ...]
    encoding: str
    options: tuple[str, ...]
    json: bool

    def content(self, data: str) -> bytes:
        """The file."""
        params = {**PARAMS, "seed": 1} if self.method == "pren" else {"feature_reg": 2.0}
        document: Any = {"data": data, "setting": "zsl", "method": self.method, "params": params}
        for edit in self.edits:
            if isinstance(edit, StructureEdit) and isinstance(document, (dict, list)) and document:
                document = edit.apply(document)
        try:
            text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
        except RecursionError:  # JSON is YAML too, and goes deeper
            text = json.dumps(document, default=str)
        for edit in self.edits:
            if isinstance(edit, LineEdit):
                text = edit.apply(text)
        content = text.encode(self.encoding, errors="surrogatepass" if self.encoding != "latin-1" else "replace")
        for edit in self.edits:
            if isinstance(edit, ByteEdit):
                content = edit.apply(content)
        return content


_NUMBERS = st.sampled_from(["1e308", "1e-320", "9" * 30, "9" * 400, "-1e308", ".5"]) | st.integers(0, 6).map(str)
_ASSIGNMENTS: SearchStrategy[tuple[str, str]] = st.tuples(
    st.just("--set"),
    st.builds("{}={}".format, st.sampled_from(KEYS), _NUMBERS)  # many of them valid, so that they go further
    | st.builds("{}={}".format, st.sampled_from(KEYS) | ARGUMENTS, ARGUMENTS)
    | ARGUMENTS,
)
_OPTIONS: SearchStrategy[tuple[str, str]] = _ASSIGNMENTS | st.tuples(st.sampled_from(OPTIONS), ARGUMENTS)


def _some(edits: SearchStrategy[Any]) -> SearchStrategy[tuple[Any, ...]]:
    return st.lists(edits, min_size=1, max_size=2).map(tuple)


CASES: SearchStrategy[Config] = st.builds(
    Config,
    st.sampled_from(["eszsl", "pren"]),
    st.just(()) | _some(YAML_EDITS) | _some(LINE_EDITS) | _some(BYTE_EDITS),
    st.sampled_from(["utf-8"] * 6 + ["utf-8-sig", "utf-16", "utf-32-le", "latin-1"]),
    st.just(()) | st.lists(_OPTIONS, max_size=2).map(lambda pairs: sum(pairs, ())),
    st.booleans(),
)


def check(workshop: Workshop, case: Config) -> str:
    """Fit, and show what came of it."""
    place = workshop.fresh()
    config = place / "config.yaml"
    config.write_bytes(case.content(str(workshop.data)))
    before = snapshot(workshop.data, config)
    result = pren("fit", "--config", "config.yaml", "--out", "run", *case.options, *(["--json"] if case.json else []))
    changed = changes(before, snapshot(workshop.data, config))
    assert not changed, f"input files have changed: {changed}"
    if result.outcome == SUCCESS and "--help=1" not in case.options:
        shown = pren("show", "run", "--json")
        assert shown.outcome == SUCCESS, f"a run that was just written cannot be shown: {shown.err}"
    return result.outcome
