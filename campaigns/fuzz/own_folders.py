"""Mutated folders of photographs, under every command that reads one."""

from __future__ import annotations

import csv
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from campaigns.fuzz.command import SUCCESS, changes, pren, snapshot
from campaigns.fuzz.mutations import BYTE_EDITS, LINE_EDITS, ByteEdit, LineEdit
from campaigns.fuzz.templates import EXTRACTOR, TWO, Workshop
from pren.foundation.files import from_cell
from pren.store.folder import REPORT_FILE

TABLES = ("signatures.csv", "labels.csv", "answers.csv")
NAMES = (
    *("\x1b[31;1mevil\x1b]0;owned\x07.png", "\u202egnp.exe", "a\nError: forged.png", "=cmd|'calc'!A0", "=1+1.png"),
    *(
        "@SUM(A1).png",
        "-1+2",
        "'=1",
        "''-1.png",
        "[red]x[bold].png",
        ":smile:",
        "é",
        "e\u0301.png",
        "a,b.png",
        '"',
        "'",
        "<img src=x onerror=alert(1)>.png",
        '"><script>alert(1)<!--.png',
    ),
    *(" a", "a ", "a;b", "..png", ".png", "x" * 200 + ".png", "\udcff.png", "-", "--help", "~", "%s", "{}", "'"),
)
ROWS = (
    *(
        "a,1,0,0",
        "g,1,0,0",
        "=1+1,1,1,0",
        "'=1+1,1,1,0",
        "x,nan,0,1",
        "x,1e999,0,1",
        "x,0,0,0",
        "x,1_0,0,0",
        "x,'-1,0,1",
    ),
    *(
        "x",
        ",,,",
        '"',
        'x,"1',
        "x,1,0,0,0",
        "\ufeffx,1,0,0",
        "../x,1,0,0",
        "a/b,1,0,1",
        "0.png,a",
        "0.png,zzz",
        "0.png,",
    ),
    *("unlabelled/0.png,a", "../images/g/0.png,a", "class,red", "file,class", "\x1b[31m,1,0,0", "x" * 3000, "x;1;0;0"),
)
KINDS = (
    "pipe",
    "folder",
    "dead link",
    "link to itself",
    "link outside",
    "device",
    "empty",
    "unreadable",
    "twin",
    "gone",
)
VERBS = (
    *("check", "check json", "fit", "fit gzsl", "fit sure", "suggest", "predict", "extract", "forecast"),
    *("fit finetuned", "fit two"),
)
BRIEFLY = ("--finetune", "--finetune-epochs", "1", "--finetune-strength", "0.5")


@dataclass(frozen=True)
class Damage:
    """A change of such a folder.

    Attributes:
        what: "table", "picture", "name", "class" or "kind".
        which: The table, file or class, taken modulo how many there are.
        edit: What is done to the content of a table or a picture.
        text: A new name; one of `KINDS`.
        in_table: Whether a class is renamed in the table as well.
    """

    what: str
    which: int
    edit: LineEdit | ByteEdit
    text: str
    in_table: bool

    def apply(self, folder: Path) -> None:
        """Damage the folder."""
        with suppress(OSError):  # a name that is too long or taken, or what an earlier damage has left
            if self.what == "table":
                path = folder / TABLES[self.which % len(TABLES)]
                _edit(path, self.edit)
            elif self.what == "class":
                self._rename_class(folder)
            elif files := sorted(path for path in folder.rglob("*.png") if path.is_file() and not path.is_symlink()):
                self._spoil(files[self.which % len(files)])

    def _spoil(self, path: Path) -> None:
        if self.what == "picture":
            _edit(path, self.edit)
        elif self.what == "name":
            path.rename(path.with_name(self.text))
        else:
            _replace(path, self.text)

    def _rename_class(self, folder: Path) -> None:
        classes = sorted(path for path in (folder / "images").iterdir() if path.is_dir())
        old = classes[self.which % len(classes)]
        old.rename(old.with_name(self.text))
        if self.in_table:
            table = folder / "signatures.csv"
            name = '"' + self.text.replace('"', '""') + '"'
            lines = table.read_text(errors="surrogateescape").split("\n")
            lines = [f"{name},{line.partition(',')[2]}" if line.startswith(f"{old.name},") else line for line in lines]
            table.write_text("\n".join(lines), errors="surrogateescape")


def _edit(path: Path, edit: LineEdit | ByteEdit) -> None:
    content = path.read_bytes()
    if isinstance(edit, ByteEdit):
        path.write_bytes(edit.apply(content))
    else:
        text = edit.apply(content.decode(errors="surrogateescape"))
        path.write_bytes(text.encode(errors="surrogatepass"))


def _replace(path: Path, kind: str) -> None:
    if kind == "unreadable":
        path.chmod(0)
        return
    if kind == "twin":
        shutil.copyfile(path, path.with_name(f"copy of {path.name}"))
        return
    path.unlink()
    targets = {
        "dead link": "nowhere",
        "link to itself": path.name,
        "link outside": "/etc/hostname",
        "device": "/dev/zero",
    }
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "empty":
        path.touch()
    elif kind in targets:
        path.symlink_to(targets[kind])


@dataclass(frozen=True)
class OwnFolder:
    """A folder of photographs, what happened to it, and what it is used for then."""

    damages: tuple[Damage, ...]
    verb: str


_LINES = st.builds(
    LineEdit,
    st.sampled_from(["insert", "delete", "duplicate", "swap", "replace"]),
    st.integers(0, 20),
    st.integers(0, 20),
    st.sampled_from(ROWS),
)


def _damages(what: str, edits: SearchStrategy[LineEdit | ByteEdit], texts: tuple[str, ...]) -> SearchStrategy[Damage]:
    return st.builds(Damage, st.just(what), st.integers(0, 60), edits, st.sampled_from(texts), st.booleans())


_DAMAGES = st.one_of(
    _damages("table", _LINES, ("",)),
    _damages("table", LINE_EDITS | BYTE_EDITS, ("",)),
    _damages("picture", BYTE_EDITS, ("",)),
    _damages("name", BYTE_EDITS, NAMES),
    _damages("class", BYTE_EDITS, NAMES),
    _damages("kind", BYTE_EDITS, KINDS),
)
CASES: SearchStrategy[OwnFolder] = st.builds(
    OwnFolder, st.lists(_DAMAGES, min_size=1, max_size=3).map(tuple), st.sampled_from(VERBS)
)


def check(workshop: Workshop, case: OwnFolder) -> str:
    """Damage a copy of the folder and use it."""
    place = workshop.fresh()
    folder = place / "mine"
    shutil.copytree(workshop.photographs, folder)
    for damage in case.damages:
        damage.apply(folder)
    inputs = (folder, workshop.template("own"))
    before = snapshot(*inputs)
    result = pren(*_command(workshop, case.verb), may_report=case.verb.startswith("check"))
    changed = changes(before, snapshot(*inputs))
    assert not changed, f"input files have changed: {changed}"
    made = {path.name for path in place.iterdir()} - {"mine", "cache", "run", "out.csv"}
    assert not made, f"files where none belong: {made}"
    if result.outcome == SUCCESS and case.verb.startswith("fit"):
        _check_table(place / "run" / "predictions.csv", folder)
        _check_report(place / "run" / REPORT_FILE)
        shown = pren("show", "run")
        assert shown.outcome == SUCCESS, f"a run that was just written cannot be shown: {shown.err}"
    return result.outcome


def _command(workshop: Workshop, verb: str) -> tuple[str, ...]:
    vision = (*EXTRACTOR, "--weights", str(workshop.weights), "--cache", "cache")
    fit = ("fit", "mine", "--method", "eszsl", *vision, "--out", "run")
    run = str(workshop.template("own"))
    return {
        "check": ("data", "check", "mine"),
        "check json": ("data", "check", "mine", "--json"),
        "fit": (*fit, "--rehearsals", "0"),
        "fit gzsl": (*fit, "--setting", "gzsl", "--hold-out", "0.5", "--rehearsals", "0"),
        "fit sure": (*fit, "--rehearsals", "2", "--min-accuracy", "0.9"),
        "fit finetuned": (*fit, "--rehearsals", "0", *BRIEFLY),
        "fit two": (*fit[:4], *TWO, "--cache", "cache", "--out", "run", "--rehearsals", "0"),
        "suggest": ("suggest", run, "--data", "mine", "--cache", "cache", "--out", "out.csv"),
        "predict": ("predict", run, "mine/unlabelled", "--cache", "cache", "--out", "out.csv", "--top", "2"),
        "extract": ("extract", "mine", *vision[:-2], "--cache", "cache"),
        "forecast": ("forecast", "mine", "--method", "eszsl", "--rehearsals", "2", *vision),
    }[verb]


class _Page(HTMLParser):
    """What in a page could run: scripts, event handlers, links."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts, self.live = 0, set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.live |= {name for name, _ in attrs if name.startswith("on") or name == "srcdoc"}
        self.live |= {
            str(value) for name, value in attrs if name == "href" and not str(value).startswith(("#", "data:,"))
        }
        self.live |= {tag} & {"iframe", "object", "embed", "base", "form"}


def _check_report(path: Path) -> None:
    """Check that only the report's own script runs, and no link leads out."""
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    assert page.scripts == 1, f"{page.scripts} scripts in the report"
    assert not page.live, f"in the report stands {page.live}"


def _check_table(path: Path, folder: Path) -> None:
    """Check that every row names a file of the pool, and no cell is a formula."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for row in rows for cell in (row[0], row[1]))
    for row in rows:
        assert (folder / "unlabelled" / from_cell(row[0])).exists(), f"{row[0]!r} is not a file of the pool"
