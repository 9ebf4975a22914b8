"""Mutated ``.tar`` files and lists of photographs, under ``pren predict``."""

from __future__ import annotations

import csv
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from campaigns.fuzz.command import SUCCESS, changes, pren, snapshot
from campaigns.fuzz.mutations import BYTE_EDITS, ByteEdit
from campaigns.fuzz.own_folders import NAMES
from campaigns.fuzz.templates import Workshop

PLACES = ("0.png", "a/0.png", "/etc/0.png", "../0.png", "a/../../0.png", "0.json", "a/", "", ".", "x" * 300 + ".png")
KINDS = (
    *(tarfile.REGTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE),
    *(tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE, b"?"),
)
FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
OUTS = (("--out", "out.csv"), ("--out", "out.jsonl"), ("--sort-into", "sorted"), ())


@dataclass(frozen=True)
class Shard:
    """Members by name, kind and whether they are a photograph; the format; what happened to the file; what to write."""

    members: tuple[tuple[str, bytes, bool], ...]
    form: int
    edits: tuple[ByteEdit, ...]
    out: tuple[str, ...]
    listed: bool  # the names as a list instead


CASES: SearchStrategy[Shard] = st.builds(
    Shard,
    st.lists(
        st.tuples(
            st.sampled_from(["0.png", "a/1.png", "b.PNG"]) | st.sampled_from([*PLACES, *NAMES]),
            st.just(tarfile.REGTYPE) | st.sampled_from(KINDS),
            st.booleans(),
        ),
        min_size=1,
        max_size=4,
    ).map(tuple),
    st.sampled_from(FORMATS),
    st.just(()) | st.lists(BYTE_EDITS, max_size=2).map(tuple),
    st.sampled_from(OUTS),
    st.booleans(),
)


def check(workshop: Workshop, case: Shard) -> str:
    """Label what is in such a file; nothing is written but the labels."""
    place = workshop.fresh()
    content = _listed(workshop, case) if case.listed else _packed(workshop, case)
    for edit in case.edits:
        content = edit.apply(content)
    source = place / ("new.txt" if case.listed else "new.tar")
    source.write_bytes(content)
    inputs = (source, workshop.template("own"), workshop.photographs)
    before = snapshot(*inputs)
    result = pren("predict", str(workshop.template("own")), source.name, "--cache", "cache", "--top", "2", *case.out)
    changed = changes(before, snapshot(*inputs))
    assert not changed, f"input files have changed: {changed}"
    made = {path.name for path in place.iterdir()} - {source.name, "cache", *case.out[1:]}
    assert not made, f"files where none belong: {made}"
    if result.outcome == SUCCESS and "out.csv" in case.out:
        _check_table(place / "out.csv")
    return result.outcome


def _packed(workshop: Workshop, case: Shard) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=case.form, errors="surrogateescape") as archive:
        for name, kind, good in case.members:
            member = tarfile.TarInfo(name[:90] if case.form == tarfile.USTAR_FORMAT else name)
            member.type, member.linkname = kind, "0.png"
            data = (workshop.photographs / "unlabelled" / "0.png").read_bytes() if good else b"no photograph"
            member.size = len(data) if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def _listed(workshop: Workshop, case: Shard) -> bytes:
    good = str(workshop.photographs / "unlabelled" / "1.png")
    lines = [good if good_one else name for name, _, good_one in case.members]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _check_table(path: Path) -> None:
    """Check that every row has labels or an error, and no cell is a formula."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    assert rows, "no row at all"
    for row in rows:
        assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in row)
        assert bool(row[1]) != bool(row[-1]), f"neither a label nor an error, or both: {row}"
