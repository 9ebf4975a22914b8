"""Look at a folder of the user's own photographs through and through, every image decoded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pren.data.folder.class_sources import Wording
from pren.data.folder.descriptions_check import look_at_words, look_for_twins
from pren.data.folder.findings import Finding
from pren.data.folder.labels import POOL
from pren.data.folder.load import IMAGES, OwnData, read_folder
from pren.foundation.errors import quoted
from pren.images.decoding import without_warnings
from pren.images.files import THREADS, ImageFiles
from pren.problem import Setting

MANY_ATTRIBUTES = 10_000


@dataclass(frozen=True)
class FolderReport:
    """What is in a folder, and what is wrong with it."""

    folder: str
    seen: int  # classes that have labelled photographs
    unseen: int  # classes that have none
    attributes: int  # how many numbers with names describe a class; 0 for words
    vectors: int  # how many numbers of vectors.npy do
    missing: int  # how many of these numbers nobody knows
    descriptions: int  # how many sentences describe the classes; 0 for numbers
    images: int  # labelled photographs
    pool: int  # unlabelled ones
    given: int  # how many of those a person has given a label
    answers: int  # how many of the others have an answer that counts
    ignored: dict[str, int]  # files that are no images, by how their names end
    problems: list[Finding]  # errors first

    def errors(self) -> int:
        """How many of the problems must be mended."""
        return sum(problem.severity == "error" for problem in self.problems)


def report_folder(
    path: str | Path, setting: Setting = "zsl", signatures: str | None = None, encoder: str | None = None
) -> FolderReport:
    """What is in a folder (see `pren.data.folder.load`), and everything that is wrong with it.

    Args:
        path: The folder.
        setting: "zsl" or "gzsl", in which answers for seen classes count.
        signatures: "attributes", "descriptions", "vectors", "names" or several; what `pren fit` would take if left out.
        encoder: The text encoder that words are meant for; the one that `pren fit` would take if left out.

    Raises:
        PrenError: If there is no such folder, or it has no such signatures.
    """
    content = read_folder(path, setting, Wording(encoder, signatures))
    _look_at_images(content)
    seen, sources = content.seen(), content.sources
    known = set() if content.classes is None else set(content.classes.known)
    for rows in sources:
        if (width := rows.width()) > MANY_ATTRIBUTES:
            pairs = f"{8 * width**2 / 1e9:.0f} GB of memory"
            message = f"it has {width} attributes: methods that pair them (not the default one) need {pairs}."
            content.findings.add(rows.files()[-1], message, severity="warning")
        if rows.numeric:
            look_for_twins(rows, content.findings)
        else:
            look_at_words(rows, encoder, content.findings)
    return FolderReport(
        folder=str(path),
        seen=len(seen),
        unseen=len(known - seen),
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
    """Decode all images, and look for photographs that are labelled and in the pool too."""
    labelled: dict[bytes, str] = {}
    readable: dict[str, bool] = {}  # of each folder that needs a photograph, whether one can be read
    for part, files in ((IMAGES, [file for file, _ in content.train]), (POOL, content.pool)):
        inputs = ImageFiles(content.path / part, files)
        with without_warnings(), ThreadPoolExecutor(THREADS) as threads:
            looks = threads.map(partial(_look, inputs), range(len(inputs)))
            for file, (digest, fault) in zip(files, looks, strict=True):
                name = f"{part}/{file}"
                folder = f"{IMAGES}/{file.split('/')[0]}" if part == IMAGES else POOL
                readable[folder] = readable.get(folder) or fault is None
                if fault is not None:
                    content.findings.add(name, fault.replace(str(content.path / name), "it"), severity="warning")
                elif part == IMAGES:
                    labelled.setdefault(digest, name)
                elif digest in labelled:
                    message = f"it is the same as {quoted(labelled[digest])}, whose class is known: take it out."
                    content.findings.add(name, message, severity="warning")
    for folder, any_readable in readable.items():
        if not any_readable:
            content.findings.add(folder, "none of its photographs can be read.")


def _look(inputs: ImageFiles, place: int) -> tuple[bytes, str | None]:
    """The hash of an image's content, and why it cannot be decoded, if it cannot."""
    reading = inputs.read(place, known=())
    return reading.key, reading.error or None
