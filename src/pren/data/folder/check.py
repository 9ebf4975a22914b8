"""Check a folder of the user's own photographs completely, and decode every one."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path

from pren.data.describe import DEFAULT_ENCODER, KnownEncoder, find_encoder
from pren.data.folder.class_sources import Wording
from pren.data.folder.class_tables import ClassRows, Content
from pren.data.folder.copies import Copies, Look, look_of
from pren.data.folder.findings import Finding, Findings
from pren.data.folder.labels import POOL
from pren.data.folder.load import IMAGES, OwnData, read_folder
from pren.foundation.errors import PrenError, quoted
from pren.images.decoding import without_warnings
from pren.images.files import THREADS, ImageFiles
from pren.problem import Setting

MANY_ATTRIBUTES = 10_000
MOST_COMPARED = 1000  # classes; each is compared with every other
NEARLY = 0.8  # the share of word pairs of two descriptions that are in both
SHORT = 200  # characters; every encoder reads such a text to its end


@dataclass(frozen=True)
class FolderReport:
    """The content of a folder, and its problems."""

    folder: str
    seen: int  # classes that have labelled photographs
    unseen: int  # classes that have none
    sources: list[str]  # what describes them, as --signatures has it
    attributes: int  # named numbers per class; 0 for words
    vectors: int  # numbers per class in vectors.npy
    missing: int  # how many of these numbers are missing
    descriptions: int  # descriptions of all classes; 0 for numbers
    images: int  # labelled photographs
    pool: int  # unlabelled photographs
    given: int  # those of the pool with a given label
    answers: int  # those of the others with an answer that counts
    ignored: dict[str, int]  # other files, by extension
    problems: list[Finding]  # errors first

    def errors(self) -> int:
        """How many of the problems are errors."""
        return sum(problem.severity == "error" for problem in self.problems)


def report_folder(
    path: str | Path,
    setting: Setting = "zsl",
    signatures: str | None = None,
    encoder: str | None = None,
    follow_links: bool = False,
) -> FolderReport:
    """The content of a folder (see `pren.data.folder.load`), and all its problems.

    Args:
        path: The folder.
        setting: "zsl" or "gzsl"; answers for seen classes only count in "gzsl".
        signatures: "attributes", "descriptions", "vectors", "names" or several; by default as in `pren fit`.
        encoder: The text encoder for words; by default as in `pren fit`.
        follow_links: Whether photographs may lie elsewhere, behind links.

    Raises:
        PrenError: If there is no such folder, or it has no such signatures.
    """
    content = read_folder(path, setting, Wording(encoder, signatures), follow_links)
    _look_at_images(content)
    seen, sources = content.seen(), content.sources
    known = set() if content.classes is None else set(content.classes.known)
    for rows in sources:
        if (width := rows.width()) > MANY_ATTRIBUTES:
            memory = f"{8 * width**2 / 1e9:.0f} GB of memory"
            message = f"it has {width} attributes: methods that pair them (not the default one) need {memory}."
            content.findings.add(rows.files()[-1], message, severity="warning")
        if rows.numeric:
            look_for_twins(rows, content.findings)
        else:
            look_at_words(rows, encoder, content.findings)
    return FolderReport(
        folder=str(path),
        seen=len(seen),
        unseen=len(known - seen),
        sources=[rows.kind for rows in sources],
        attributes=sum(len(rows.attributes) for rows in sources),
        vectors=sum(rows.width() for rows in sources if rows.vectors),
        missing=sum(rows.missing() for rows in sources),
        descriptions=sum(len(texts) for rows in sources if not rows.numeric for texts in rows.rows.values()),
        images=len(content.train),
        pool=len(content.pool),
        given=len(content.labels),
        answers=len(content.answers),
        ignored=dict(content.ignored.most_common()),
        problems=content.findings.listed(),
    )


def _look_at_images(content: OwnData) -> None:
    """Decode all photographs, and find those that are in the pool twice, or both labelled and in the pool."""
    labelled: dict[bytes, str] = {}
    pool = Copies()
    readable: dict[str, bool] = {}  # whether each folder has a readable photograph
    for part, files in ((IMAGES, [file for file, _ in content.train]), (POOL, content.pool)):
        inputs = ImageFiles(content.path / part, files)
        with without_warnings(), ThreadPoolExecutor(THREADS) as threads:
            results = threads.map(partial(_read, inputs), range(len(inputs)))
            for file, (digest, look, fault) in zip(files, results, strict=True):
                name = f"{part}/{file}"
                folder = f"{IMAGES}/{file.split('/')[0]}" if part == IMAGES else POOL
                readable[folder] = readable.get(folder) or fault is None
                if fault is not None:
                    content.findings.add(name, fault.replace(str(content.path / name), "it"), severity="warning")
                elif part == IMAGES:
                    labelled.setdefault(digest, name)
                elif digest in labelled:
                    message = f"it is the same as {quoted(labelled[digest])}, whose class is known: remove it."
                    content.findings.add(name, message, severity="warning")
                if part == POOL and look is not None:
                    pool.add(name, digest, look)
    pool.report(content.findings)
    for folder, any_readable in readable.items():
        if not any_readable:
            content.findings.add(folder, "none of its photographs can be read.")


def _read(inputs: ImageFiles, place: int) -> tuple[bytes, Look | None, str | None]:
    """The hash of a photograph's content and how it looks, or why it cannot be decoded."""
    reading = inputs.read(place, known=())
    return reading.key, None if reading.levels is None else look_of(reading.levels), reading.error or None


def look_for_twins(rows: ClassRows, findings: Findings) -> None:
    """Find classes with the same signature."""
    first: dict[Content, str] = {}
    for name, content in rows.rows.items():
        twin = first.setdefault(content, name)
        if twin != name:
            message = f"{quoted(name)} has the same signature as {quoted(twin)}: write how they differ."
            findings.add(rows.file, message, rows.known[name], "warning")


def look_at_words(rows: ClassRows, encoder: str | None, findings: Findings) -> None:
    """Find classes with the same or nearly the same words, a missing encoder, and texts that are too long for it."""
    words = {name: _words(" ".join(map(str, texts))) for name, texts in rows.rows.items()}
    pairs = {name: set(pairwise(these)) for name, these in words.items()}
    if len(words) <= MOST_COMPARED:
        for (one, these), (other, those) in combinations(words.items(), 2):
            if these == those:
                message = f"{quoted(other)} has the same description as {quoted(one)}: write how they differ."
            elif len(pairs[one] & pairs[other]) >= NEARLY * len(pairs[one] | pairs[other]) > 0:
                message = f"{quoted(other)} has nearly the same description as {quoted(one)}: write how they differ."
            else:
                continue
            findings.add(rows.file, message, rows.known[other], "warning")
    try:
        _look_at_encoder(rows, encoder or DEFAULT_ENCODER, findings)
    except PrenError as error:
        findings.add(rows.file, str(error), severity="warning")


def _look_at_encoder(rows: ClassRows, name: str, findings: Findings) -> None:
    encoder = find_encoder(name)
    if not isinstance(encoder, KnownEncoder):
        return
    encoder.facts()  # raises if a package is not installed
    long = [(name, str(text)) for name, texts in rows.rows.items() for text in texts if len(str(text)) > SHORT]
    for (name, text), cut in zip(long, encoder.cuts([text for _, text in long]) if long else (), strict=True):
        if cut:
            message = f"{quoted(text)} of {quoted(name)} is too long for the encoder: divide it into several rows."
            findings.add(rows.file, message, rows.known[name], "warning")


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.casefold()))
