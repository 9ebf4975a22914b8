"""Features on disk: one file for each extractor, that grows by whole records and is read through memory mapping.

A record is the SHA-256 of an image file's content, a checksum, and its features in half precision. So a file that was
moved or copied is known again, one that was changed is not, and an interrupted extraction has lost nothing but the
batch it was at. Several processes may write at the same time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pren.foundation.errors import PrenError
from pren.foundation.files import check_file, write_json
from pren.problem.inputs import Inputs, single

log = logging.getLogger(__name__)

FACTS_FILE = "extractor.json"
ROWS_FILE = "features.rows"
BLOCK = 1024  # records that are checked at once
WORTH_SAYING = 100 << 20
LARGEST = float(np.finfo(np.float16).max)


def cache_folder(folder: str | Path | None = None) -> Path:
    """Where features are kept: the folder given, or the one `PREN_CACHE` names, or ``~/.cache/pren``."""
    return Path(folder or os.environ.get("PREN_CACHE") or Path.home() / ".cache" / "pren")


class FeatureCache:
    """The features that one extractor has made.

    Args:
        folder: Where caches are, made if need be; see `cache_folder`.
        facts: What makes the features what they are (backbone, weights, preprocessing), JSON-ready.
        shape: Of the features of one image: (D,), or (C, H, W) of what goes into a stage.
    """

    def __init__(self, folder: str | Path | None, facts: dict[str, Any], shape: tuple[int, ...]) -> None:
        name = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = cache_folder(folder) / name
        self._record = np.dtype([("key", "V32"), ("crc", "<u4"), ("features", "<f2", shape)])
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / FACTS_FILE).exists():
                with self._locked():  # or two processes would write it under the same temporary name
                    write_json(self.folder / FACTS_FILE, facts)  # for people; the name is what counts
        except OSError as error:
            raise PrenError(
                "write-failed", f"Features cannot be kept in {self.folder}: {error.strerror or error}."
            ) from error

    def __len__(self) -> int:
        return len(self._records())

    def rows(self, since: int = 0) -> dict[bytes, int]:
        """The row of every image that is there, by the hash of its content; damaged records do not count.

        Of several records of one image (two processes may have extracted it at once) the first counts, so that nobody
        is given other features than before. Those before row `since` are not looked at.
        """
        found: dict[bytes, int] = {}
        for start in range(since, len(self), BLOCK):
            # Not through the mapping: what is read there stays, and memory would grow with the images.
            offset = start * self._record.itemsize
            block = np.fromfile(self.folder / ROWS_FILE, self._record, BLOCK, offset=offset)
            keys, sums, features = block["key"].copy(), block["crc"], np.ascontiguousarray(block["features"])
            for place in range(len(block)):
                key = keys[place].tobytes()
                if _checksum(key, features[place]) == sums[place]:
                    found.setdefault(key, start + place)
        return found

    def check_room(self, images: int) -> None:
        """Say how much so many images take if it is a lot; a `PrenError` if the disk has no room for that."""
        missing = max(0, images - len(self._records())) * self._record.itemsize
        free = shutil.disk_usage(self.folder).free
        if missing > free:
            raise PrenError(
                "disk-full",
                f"{self.folder} has room for {free / 1e9:.1f} GB, but what is kept of {images} images takes up to "
                f"{missing / 1e9:.1f} GB: choose another folder (--cache DIR), or a later stage (--train-from).",
            )
        if missing > WORTH_SAYING:
            log.info("What is kept of %d images takes up to %.1f GB in %s.", images, missing / 1e9, self.folder)

    def append(self, keys: list[bytes], features: NDArray[np.float32]) -> None:
        """Add features (n, *shape) by the hashes of the images' content; they outlive this process then."""
        if not (np.abs(features) <= LARGEST).all():
            raise PrenError(
                "features-too-large",
                f"The backbone makes features beyond {LARGEST:.0f}, or no numbers at all: choose another.",
            )
        records = np.empty(len(keys), dtype=self._record)
        records["features"] = features.astype(np.float16)
        for place, key in enumerate(keys):
            records[place]["key"] = np.void(key)
            records[place]["crc"] = _checksum(key, records[place]["features"])
        try:
            with self._locked() as file:
                os.lseek(file, 0, os.SEEK_END)
                view = memoryview(records.tobytes())
                while view:
                    view = view[os.write(file, view) :]
        except OSError as error:
            raise PrenError(
                "write-failed", f"Cannot write {self.folder / ROWS_FILE}: {error.strerror or error}."
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, ours alone, and ending with a whole record: a process may have been killed while it wrote."""
        file = os.open(self.folder / ROWS_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = os.fstat(file).st_size
            os.ftruncate(file, size - size % self._record.itemsize)
            yield file
        finally:
            os.close(file)

    def _records(self) -> NDArray[Any]:
        path = self.folder / ROWS_FILE
        if not os.path.lexists(path):
            return np.empty(0, dtype=self._record)
        check_file(path)
        try:
            if whole := path.stat().st_size // self._record.itemsize:
                return np.memmap(path, dtype=self._record, mode="r", shape=(whole,))
        except OSError as error:
            raise PrenError("read-failed", f"Cannot read {path}: {error.strerror or error}.") from error
        return np.empty(0, dtype=self._record)

    def inputs(self, rows: NDArray[np.int64], origin: str | None = None) -> CachedFeatures:
        """Some of the features, as inputs of a problem: (N,) rows as `rows` found them.

        `origin` is what made them, as their hash has it; None for the extractor.
        """
        return CachedFeatures(self._records(), rows, origin or self.folder.name)


class KnownRows:
    """What `FeatureCache.rows` tells, for those who ask again and again: it looks only at what was added since."""

    def __init__(self, cache: FeatureCache) -> None:
        self.cache = cache
        self._rows: dict[bytes, int] = {}
        self._looked_at = 0

    def update(self) -> dict[bytes, int]:
        """The row of every image that is there by now; not to be changed."""
        there = len(self.cache)
        if there < self._looked_at:  # somebody has removed it
            self._rows, self._looked_at = {}, 0
        for key, row in self.cache.rows(self._looked_at).items():
            self._rows.setdefault(key, row)
        self._looked_at = there
        return self._rows


class CachedFeatures(Inputs):
    """Inputs over rows of a memory-mapped cache."""

    def __init__(self, records: NDArray[Any], rows: NDArray[np.int64], origin: str) -> None:
        self._records = records
        self._rows = rows
        self._origin = origin

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(D,) or (C, H, W)."""
        return tuple(self._records["features"].shape[1:])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, indices: NDArray[np.int64]) -> Tensor:
        return single(self._records["features"][self._rows[indices]])

    def select(self, places: NDArray[np.int64]) -> CachedFeatures:
        """Some of the rows."""
        return CachedFeatures(self._records, self._rows[places], self._origin)

    def keys(self) -> list[bytes]:
        """The hashes of the images' content."""
        return [key.tobytes() for key in self._records["key"][self._rows]]

    def digest(self) -> bytes:
        """A hash of what the features were made from, and by what: extracted again, the last bit may differ."""
        content = hashlib.sha256(f"{self._origin} {len(self)} {self.sample_shape}".encode())
        content.update(self._records["key"][self._rows].tobytes())
        return content.digest()


def _checksum(key: bytes, features: NDArray[np.float16]) -> int:
    return zlib.crc32(features.tobytes(), zlib.crc32(key))
