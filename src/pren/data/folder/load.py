"""A folder of the user's own photographs.

images/CLASS/...    labelled photographs of the seen classes, in any tree below a folder per class
unlabelled/...      the pool, in any tree
signatures.csv      class,attribute,attribute,...   one row for every class, seen and unseen
descriptions.csv    class,description               or words instead, one row or several for every class
classes.csv         class                           or names only
vectors.npy         (classes, numbers)              and vectors for them, in the order of classes.csv
answers.csv         file,class                      optional; for the evaluation only
labels.csv          file,class                      optional; labels that a person gives, for training

Everything is read before problems are reported, so that `pren data check` can list all of them.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pren.data.benchmarks.partition import DATA_SEED
from pren.data.folder.class_sources import Wording, make_signatures, read_sources
from pren.data.folder.class_tables import ClassRows
from pren.data.folder.findings import Finding, Findings
from pren.data.folder.labels import ANSWERS, LABELS, POOL, compare, note_seen, read_labels
from pren.data.folds import held_out
from pren.data.tables import normal
from pren.foundation.errors import PrenError, quoted
from pren.foundation.files import is_folder, sha256
from pren.foundation.seeds import stream
from pren.images.files import ImageFiles
from pren.images.folders import EXTENSIONS, walk_images
from pren.problem import UNKNOWN, Answers, ClassTable, Problem, Setting

log = logging.getLogger(__name__)

IMAGES = "images"
ENDINGS = f"files that end in {', '.join(EXTENSIONS)}"
FEW = 3  # how many problems an error names
FOLLOW = "replace it by a copy, or follow links with --follow-links"


class PoolImage(NamedTuple):
    """A photograph of the pool."""

    file: str  # its path in the folder
    name: str  # its path in ``unlabelled``, for reports
    given: int = UNKNOWN  # the class that a person gives it
    answer: int = UNKNOWN  # its class for the evaluation


@dataclass(eq=False)
class OwnData:
    """The content of such a folder."""

    path: Path
    wording: Wording = field(default_factory=Wording)
    follow_links: bool = False
    sources: list[ClassRows] = field(default_factory=list)  # the descriptions of the classes; none if unreadable
    train: list[tuple[str, str]] = field(default_factory=list)  # the path in `images` of each photograph, and its class
    pool: list[str] = field(default_factory=list)  # the paths in `unlabelled`, sorted
    labels: dict[int, str] = field(default_factory=dict)  # given classes, by place in `pool`
    answers: dict[int, str] = field(default_factory=dict)  # the classes of others, by place in `pool`
    ignored: Counter[str] = field(default_factory=Counter)  # other files, by extension
    findings: Findings = field(default_factory=Findings)

    @property
    def classes(self) -> ClassRows | None:
        """The source that names the classes; None if it cannot be read."""
        return self.sources[0] if self.sources else None

    def seen(self) -> set[str]:
        """The classes that have photographs."""
        return {name for _, name in self.train}


def load_folder(
    path: str | Path,
    setting: Setting = "zsl",
    encoder: str | None = None,
    signatures: str | None = None,
    signature_weights: list[float] | None = None,
    template: str | list[str] | None = None,
    hold_out: float | None = None,
    follow_links: bool = False,
) -> tuple[Problem, Answers]:
    """Read a problem from a folder of photographs, without decoding them.

    Args:
        path: The folder; see the top of this file.
        setting: "zsl" or "gzsl".
        encoder: The text encoder for words; None for that of the extra `words`.
        signatures: "attributes", "descriptions", "vectors" or "names", to choose a file; or several separated by
            commas: then each is centred and scaled by the seen classes. None for attributes and descriptions where
            both exist, else the first of these files.
        signature_weights: The weights of several sources.
        template: The sentence for names, where nothing else is known; several are averaged.
        hold_out: In "gzsl", the share of each seen class's photographs in ``images`` that is moved to the pool, for
            evaluation; their names there are ``../images/...``.
        follow_links: Whether photographs may lie elsewhere, behind links. Say so only of a folder that you trust: a
            link can lead to any file.

    Returns:
        The problem with a shuffled pool, and the answers, with the name of every photograph of the pool and `UNKNOWN`
        where ``answers.csv`` has no class or a person has given a label. A photograph that a person labels as a seen
        class is not in the pool but among the labelled ones.

    Raises:
        PrenError: If anything is wrong; it names the first problems and says how to list all.
    """
    content = read_folder(path, setting, Wording(encoder, signatures, signature_weights, template), follow_links)
    found = content.findings.listed()
    errors = [finding for finding in found if finding.severity == "error"]
    if errors:
        raise PrenError("folder-unusable", f"{path} cannot be used. {_first_few(errors, path)}")
    if found:
        log.warning("%s", _first_few(found, path))
    assert content.classes is not None  # otherwise there is an error
    names = tuple(content.classes.rows)
    seen = np.isin(np.array(names), sorted(content.seen()))
    made, recipe = make_signatures(content.sources, names, seen, content.wording)
    train, pool = _divided(content, names, setting, hold_out)
    given = np.array([image.given for image in pool], dtype=np.int64)
    files = [*(file for rows in content.sources for file in rows.files()), *([LABELS] if content.labels else [])]
    source = {
        "name": "folder",
        "folder": str(path),
        "signatures": made.record(),
        "files": {file: sha256(content.path / file) for file in dict.fromkeys(files)},
    }
    problem = Problem(
        train=ImageFiles(content.path, [file for file, _ in train]),
        labels=np.array([label for _, label in train], dtype=np.int64),
        pool=ImageFiles(content.path, [image.file for image in pool]),
        # Several sources are already scaled, and their lengths matter.
        classes=ClassTable.build(
            names, made.values, seen, normalise=len(recipe.sources) == 1, attributes=made.attributes
        ),
        setting=setting,
        source=source if hold_out is None else {**source, "hold_out": hold_out},
        given=given if (given != UNKNOWN).any() else None,
        recipe=recipe.model_dump(),
    )
    labels = np.array([image.answer for image in pool], dtype=np.int64)
    return problem, Answers(labels, tuple(image.name for image in pool))


def _divided(
    content: OwnData, names: Sequence[str], setting: Setting, hold_out: float | None
) -> tuple[list[tuple[str, int]], list[PoolImage]]:
    """The labelled photographs with their classes, and the shuffled pool."""
    row, seen = {name: number for number, name in enumerate(names)}, content.seen()
    train = [(f"{IMAGES}/{file}", row[name]) for file, name in content.train]
    held = held_out(np.array([label for _, label in train], dtype=np.int64), names, hold_out, setting)
    pool, more = [], []
    for place, name in enumerate(content.pool):
        label, answer = content.labels.get(place), content.answers.get(place)
        if label is not None and label in seen:
            more.append((f"{POOL}/{name}", row[label]))
        else:
            known = (UNKNOWN if one is None else row[one] for one in (label, answer))
            pool.append(PoolImage(f"{POOL}/{name}", name, *known))
    pool += [PoolImage(train[place][0], f"../{train[place][0]}", answer=train[place][1]) for place in held]
    order = stream(DATA_SEED, "pool order").permutation(len(pool))
    left = [train[place] for place in np.setdiff1d(np.arange(len(train)), held)]
    return left + more, [pool[place] for place in order]


def read_folder(
    path: str | Path, setting: Setting = "zsl", wording: Wording | None = None, follow_links: bool = False
) -> OwnData:
    """Read everything but the pixels, and note all problems; see `load_folder`."""
    if not is_folder(path):
        raise PrenError("file-missing", f"There is no folder {path}: check the path.")
    content = OwnData(Path(path), wording or Wording(), follow_links)
    try:
        _read(content, setting)
    except OSError as error:
        raise PrenError("read-failed", f"Cannot read {error.filename or path}: {error.strerror or error}.") from error
    return content


def _read(content: OwnData, setting: Setting) -> None:
    findings = content.findings
    content.sources = read_sources(content.path, content.wording, findings)
    classes = content.classes
    folders = _read_labelled(content)
    for name in _list(content, POOL):
        if any("\ud800" <= character <= "\udfff" for character in name):
            findings.add(f"{POOL}/{name}", "its name is not valid text: rename it.")
        else:
            content.pool.append(name)
    if not content.pool and _is_part(content, POOL):
        findings.add(POOL, f"there is no photograph to recognise: add {ENDINGS}.")
    if classes is not None and classes.complete and classes.known and not classes.known.keys() - folders:
        findings.add(classes.file, f"every class has a folder in {IMAGES}: add rows for the classes without labels.")
    for rows in content.sources:
        if count := rows.missing():
            message = f"{count} number{'s are' if count > 1 else ' is'} missing: the mean of the seen classes is used."
            findings.add(rows.file, message, severity="warning")
    _read_labels(content, setting)


def _read_labelled(content: OwnData) -> set[str]:
    """Read ``images``; returns the classes that have a folder there."""
    findings, classes = content.findings, content.classes
    folders: dict[str, str] = {}  # by class
    images: dict[str, list[str]] = {}  # by folder
    for file in _list(content, IMAGES):
        folder, *rest = file.split("/", 1)
        if rest:
            images.setdefault(folder, []).append(file)
        else:
            findings.add(f"{IMAGES}/{file}", "it is not in the folder of a class: it is left out.", severity="warning")
    top = content.path / IMAGES
    for entry in sorted(top.iterdir()) if _is_part(content, IMAGES) else ():
        if not entry.is_dir() or (entry.is_symlink() and not content.follow_links):  # `_list` has noted links
            continue
        where, name = f"{IMAGES}/{entry.name}", normal(entry.name)
        if name in folders:
            findings.add(where, f"it is the same class as {quoted(folders[name])}: join the two folders.")
            continue
        folders[name] = where
        if entry.name not in images:
            findings.add(where, f"it has no photographs: add {ENDINGS}, or remove the folder.")
        if classes is None or name in classes.known:
            content.train += [(file, name) for file in images.get(entry.name, ())]
        elif classes.complete:
            near = findings.nearest(name, classes.known)
            findings.add(where, f"class {quoted(name)} has no row in {classes.file}.{near or ' Add one.'}")
    if not folders and top.is_dir():
        findings.add(IMAGES, "there is no folder of a class: add one, such as images/horse, with labelled photographs.")
    return set(folders)


def _is_part(content: OwnData, part: str) -> bool:
    """Whether a part of the folder exists and does not lead out of it."""
    top = content.path / part
    return top.is_dir() and (content.follow_links or top.resolve().is_relative_to(content.path.resolve()))


def _list(content: OwnData, part: str) -> list[str]:
    """The image files in a part of the folder, relative to it and sorted; notes other files and faults."""
    top, findings, names = content.path / part, content.findings, []
    if not _is_part(content, part):
        what = f"a link that leads out of {content.path}: {FOLLOW}" if top.is_dir() else "not a folder"
        findings.add(part, f"this is {what}." if os.path.lexists(top) else "this folder is missing.")
        return []
    for path, is_image, fault in sorted(walk_images(top, content.path, FOLLOW, content.follow_links)):
        name = path.relative_to(top).as_posix()
        if fault is not None:
            findings.add(f"{part}/{name}", f"it {fault}")
        elif is_image:
            names.append(name)
        elif path.is_dir():
            findings.add(f"{part}/{name}", f"links to folders are not followed: {FOLLOW}.", severity="warning")
        else:
            content.ignored[path.suffix.lower() or path.name] += 1
    return sorted(names)


def _read_labels(content: OwnData, setting: Setting) -> None:
    """Read ``labels.csv`` and ``answers.csv`` if they exist."""
    findings, seen = content.findings, content.seen()
    labels, answers = (
        read_labels(content.path, file, content.pool, content.classes, findings)
        if os.path.lexists(content.path / file)
        else {}
        for file in (LABELS, ANSWERS)
    )
    compare(labels, answers, content.pool, findings)
    if content.pool and sum(label.name in seen for label in labels.values()) == len(content.pool):
        findings.add(LABELS, f"it gives a seen class to every photograph in {POOL}: add others to recognise.")
    others = {place: answer for place, answer in answers.items() if place not in labels}
    if setting == "zsl":
        note_seen(others, seen, findings)
        others = {place: answer for place, answer in others.items() if answer.name not in seen}
    content.labels = {place: label.name for place, label in labels.items()}
    content.answers = {place: answer.name for place, answer in others.items()}


def _first_few(found: list[Finding], path: str | Path) -> str:
    command = f"pren data check {shlex.quote(str(path))}"
    count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
    return f"{' '.join(str(finding) for finding in found[:FEW])} ({count}; '{command}' lists all.)"
