"""Look at a folder of the user's own photographs through and through, every image decoded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pren.data.class_tables import Content, needs_encoder
from pren.data.findings import Finding, quoted
from pren.data.folder import IMAGES, POOL, OwnData, read_folder
from pren.problem import Setting
from pren.vision.decoding import without_warnings
from pren.vision.images import THREADS, ImageFiles


@dataclass(frozen=True)
class FolderReport:
    """What is in a folder, and what is wrong with it.

    Attributes:
        folder: Its path.
        seen: Classes that have labelled photographs.
        unseen: Classes that have none.
        attributes: How many numbers describe a class; 0 for words.
        images: Labelled photographs.
        pool: Unlabelled ones.
        answers: How many of those have an answer that counts.
        ignored: Files that are no images, by how their names end.
        problems: Everything that is wrong, errors first.
    """

    folder: str
    seen: int
    unseen: int
    attributes: int
    images: int
    pool: int
    answers: int
    ignored: dict[str, int] = field(default_factory=dict)
    problems: list[Finding] = field(default_factory=list)

    def errors(self) -> int:
        """How many of the problems must be mended."""
        return sum(problem.severity == "error" for problem in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def check_folder(path: str | Path, setting: Setting = "zsl") -> list[Finding]:
    """Everything that is wrong with a folder (see `pren.data.folder`), errors first.

    Raises:
        PrenError: If there is no such folder.
    """
    return report_folder(path, setting).problems


def report_folder(path: str | Path, setting: Setting = "zsl") -> FolderReport:
    """What is in a folder, and everything that is wrong with it.

    Args:
        path: The folder; see `pren.data.folder`.
        setting: "zsl" or "gzsl", in which answers for seen classes count.

    Raises:
        PrenError: If there is no such folder.
    """
    content = read_folder(path, setting)
    _look_at_images(content)
    _look_for_twins(content)
    classes, seen = content.classes, content.seen()
    if classes is not None and not classes.attributes:
        content.findings.add(classes.file, needs_encoder(), severity="warning")
    return FolderReport(
        folder=str(path),
        seen=len(seen),
        unseen=0 if classes is None else len(classes.known.keys() - seen),
        attributes=0 if classes is None else len(classes.attributes),
        images=len(content.train),
        pool=len(content.pool),
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
                readable[folder] = readable.get(folder, False) or fault is None
                if fault is not None:
                    message = fault.replace(str(content.path / name), "it")
                    content.findings.add(name, message, severity="warning")
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


def _look_for_twins(content: OwnData) -> None:
    """Look for classes that nothing tells apart."""
    classes = content.classes
    if classes is None:
        return
    first: dict[Content, str] = {}
    for name, row in classes.rows.items():
        twin = first.setdefault(row, name)
        if twin != name:
            message = f"{quoted(name)} has the same signature as {quoted(twin)}: nothing tells them apart."
            content.findings.add(classes.file, message, classes.known[name], "warning")
