"""Sort photographs into a folder per class. No file is overwritten, and names are hostile text."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from pren.foundation.errors import PrenError
from pren.foundation.files import WRITING, make_folder, remove
from pren.images.files import ImageFiles
from pren.label.parts import parts_folder
from pren.label.predictions import Row
from pren.problem.inputs import Inputs

How = Literal["link", "symlink", "copy"]
UNSURE, TABLE = "_unsure", "labels.csv"  # beside the folders of classes
LONGEST = 120  # bytes of a name without its ending; file systems allow 255
ODD = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]')


class Sorter:
    """Puts every labelled photograph into the folder of its best class.

    Unreadable ones are left out. Those without a label go to `UNSURE`. A second call adds only what is missing.

    Args:
        folder: The folder for the folders of classes.
        photographs: The image files, in the order of the rows.
        classes: The names of all classes.
        how: "link" makes hard links, or copies where those fail (another disk, a ``.tar`` file).
    """

    def __init__(self, folder: Path, photographs: Inputs, classes: Sequence[str], how: How) -> None:
        if not isinstance(photographs, ImageFiles):
            raise PrenError("no-photographs", "Only photographs can be sorted, not arrays: omit --sort-into.")
        self._files, self._how, self._folder = photographs, how, folder
        self._folders = {name: folder / safe for name, safe in folder_names(classes).items()}

    def watch(self, batches: Iterable[list[Row]]) -> Iterator[list[Row]]:
        """Sort the photographs of each batch, and pass it on."""
        place = 0
        for batch in batches:
            for row in batch:
                if not row.error:
                    folder = self._folders[row.label] if row.label else self._folder / UNSURE
                    self._put(place, folder, PurePosixPath(row.input).name)
                place += 1
            yield batch

    def _put(self, place: int, folder: Path, name: str) -> None:
        make_folder(folder)
        ending = PurePosixPath(name).suffix
        stem, ending = safe_name(name.removesuffix(ending)), ODD.sub("_", ending)[:10]
        target = folder / f"{stem}{ending}"
        try:
            if not self._is_at(place, target) and not self._make(place, target):
                target = folder / f"{stem}-{place}{ending}"  # another photograph has this name
                if not self._is_at(place, target) and not self._make(place, target):
                    raise PrenError("out-taken", f"{target} already exists: sort into another folder.")
        except OSError as error:
            raise PrenError("write-failed", f"Cannot write {target}: {error.strerror or error}.") from error

    def _is_at(self, place: int, target: Path) -> bool:
        """Whether the photograph is there already."""
        path = self._files.path(place)
        if path is not None and os.path.lexists(target):
            if self._how == "symlink":
                return target.is_symlink() and target.readlink() == path.absolute()
            if not target.is_symlink() and target.exists() and target.samefile(path):
                return True
        return target.is_file() and not target.is_symlink() and target.read_bytes() == self._files.content(place)

    def _make(self, place: int, target: Path) -> bool:
        """Make a link or a copy; False if the target exists."""
        if os.path.lexists(target):
            return False
        path = self._files.path(place)
        if path is not None and self._how == "symlink":
            target.symlink_to(path.absolute())
            return True
        if path is not None and self._how == "link":
            try:
                os.link(path.resolve(), target)
                return True
            except FileExistsError:
                return False
            except OSError:  # another disk, or one without links
                pass
        temporary = target.with_name(f"{WRITING}{target.name}")
        remove(temporary)
        if path is not None:
            shutil.copyfile(path, temporary)
        else:
            temporary.write_bytes(self._files.content(place))
        temporary.rename(target)
        return True


def folder_names(classes: Sequence[str]) -> dict[str, str]:
    """A folder name per class, different on any file system."""
    names: dict[str, str] = {}
    taken = {UNSURE, TABLE, parts_folder(Path(TABLE)).name}
    for name in classes:
        safe = safe_name(name)
        names[name] = safe if safe.casefold() not in taken else f"{safe}-{_digest(name)}"
        taken.add(names[name].casefold())
    return names


def safe_name(text: str) -> str:
    """Text as one part of a path; changed text gets a hash, so that names stay different."""
    safe = ODD.sub("_", text).strip(" .")
    safe = safe.encode()[:LONGEST].decode(errors="ignore").strip(" .")
    return safe if safe and safe == text else f"{safe or '_'}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
