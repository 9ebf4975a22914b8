"""Features on disk: one file per extractor that grows by whole records and is memory-mapped.

A record holds the SHA-256 of a photograph's content, a checksum, and its features in half precision. So a photograph
that was moved or copied is found again, one that was changed is not, and an interrupted extraction only loses its last
batch. Several processes may write at the same time.
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
    """The folder of the caches: the given one, or `PREN_CACHE`, or ``~/.cache/pren``."""
    return Path(folder or os.environ.get("PREN_CACHE") or Path.home() / ".cache" / "pren")


class FeatureCache:
    """The features of one extractor.

    Args:
        folder: The folder of the caches, made if it is missing; see `cache_folder`.
        facts: All that determines the features (backbone, weights, preprocessing), JSON-ready.
        shape: Of the features of one photograph: (D,), or (C, H, W) for the input of a stage.
    """

    def __init__(self, folder: str | Path | None, facts: dict[str, Any], shape: tuple[int, ...]) -> None:
        name = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = cache_folder(folder) / name
        self._record = np.dtype([("key", "V32"), ("crc", "<u4"), ("features", "<f2", shape)])
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / FACTS_FILE).exists():
                with self._locked():  # or two processes would write it under the same temporary name
                    write_json(self.folder / FACTS_FILE, facts)  # for people; programs go by the folder's name
        except OSError as error:
            message = f"Cannot write features to {self.folder}: {error.strerror or error}."
            raise PrenError("write-failed", message) from error

    def __len__(self) -> int:
        return len(self._records())

    def rows(self, since: int = 0) -> dict[bytes, int]:
        """The row of every photograph from row `since` on, by the hash of its content, without damaged records.

        If there are several records of one photograph (from two processes), the first counts, so that its features
        never change.
        """
        found: dict[bytes, int] = {}
        for start in range(since, len(self), BLOCK):
            # Not through the memory mapping, whose pages stay in memory.
            offset = start * self._record.itemsize
            block = np.fromfile(self.folder / ROWS_FILE, self._record, BLOCK, offset=offset)
            keys, sums, features = block["key"].copy(), block["crc"], np.ascontiguousarray(block["features"])
            for place in range(len(block)):
                key = keys[place].tobytes()
                if _checksum(key, features[place]) == sums[place]:
                    found.setdefault(key, start + place)
        return found

    def check_room(self, images: int) -> None:
        """Log the size of so many photographs if it is large; `PrenError` if the disk has no room for them."""
        missing = max(0, images - len(self._records())) * self._record.itemsize
        free = shutil.disk_usage(self.folder).free
        if missing > free:
            raise PrenError(
                "disk-full",
                f"{self.folder} has {free / 1e6:,.1f} MB free, but {images} photographs need up to "
                f"{missing / 1e6:,.1f} MB: choose another folder (--cache DIR), or a later stage (--train-from).",
            )
        if missing > WORTH_SAYING:
            log.info("The cache of %d photographs takes up to %.1f GB in %s.", images, missing / 1e9, self.folder)

    def append(self, keys: list[bytes], features: NDArray[np.float32]) -> None:
        """Write features (n, *shape) under the hashes of the photographs' content."""
        if not (np.abs(features) <= LARGEST).all():
            message = f"The backbone makes features beyond {LARGEST:.0f}, or NaN: choose another backbone."
            raise PrenError("features-too-large", message)
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
            message = f"Cannot write {self.folder / ROWS_FILE}: {error.strerror or error}."
            raise PrenError("write-failed", message) from error

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The locked file, cut to whole records: a process may have been killed while it wrote."""
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
        """The features of (N,) rows as inputs; their hash includes `origin`, the extractor's name by default."""
        return CachedFeatures(self._records(), rows, origin or self.folder.name)


class KnownRows:
    """`FeatureCache.rows` for repeated use: it only reads the records that were added since."""

    def __init__(self, cache: FeatureCache) -> None:
        self.cache = cache
        self._rows: dict[bytes, int] = {}
        self._read = 0

    def update(self) -> dict[bytes, int]:
        """The current row of every photograph; do not change it."""
        length = len(self.cache)
        if length < self._read:  # the file was removed meanwhile
            self._rows, self._read = {}, 0
        for key, row in self.cache.rows(self._read).items():
            self._rows.setdefault(key, row)
        self._read = length
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
        """The hashes of the photographs' content."""
        return [key.tobytes() for key in self._records["key"][self._rows]]

    def digest(self) -> bytes:
        """A hash of the photographs and the extractor; the last bits of features can differ between extractions."""
        content = hashlib.sha256(f"{self._origin} {len(self)} {self.sample_shape}".encode())
        content.update(self._records["key"][self._rows].tobytes())
        return content.digest()


def _checksum(key: bytes, features: NDArray[np.float16]) -> int:
    return zlib.crc32(features.tobytes(), zlib.crc32(key))
