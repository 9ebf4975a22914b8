"""The forms that a table of labels can have. All are written a few rows at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pren.foundation.errors import PrenError, suggest
from pren.foundation.extras import need
from pren.foundation.files import csv_text
from pren.label.records import SURE, Record

Batches = Iterable[list[Record]]
Write = Callable[[Path, int, Batches], None]  # to a file, so many classes per image, batches of rows


def find_writer(out: Path, name: str | None = None) -> str:
    """The format that is named, or that the ending of a file stands for.

    Raises:
        PrenError: If there is none, or what it needs is not installed.
    """
    name = out.suffix.lower().removeprefix(".") if name is None else name
    if name not in WRITERS:
        raise PrenError(
            "unknown-format",
            f"Nobody knows what to write to {out}: let it end in .csv, .jsonl or .parquet, or name a --format. "
            + suggest(name, WRITERS),
        )
    if name == "parquet":
        need("pyarrow.parquet", "parquet")
    return name


def write_csv(path: Path, ranks: int, batches: Batches) -> None:
    """A row for every image; text as spreadsheets take it."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(csv_text([_header(ranks)]))
        for batch in batches:
            file.write(csv_text(["" if cell is None else cell for cell in _row(record, ranks)] for record in batch))


def write_jsonl(path: Path, ranks: int, batches: Batches) -> None:
    """An object for every image."""
    with path.open("w", encoding="utf-8") as file:
        for batch in batches:
            file.writelines(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in batch)


def write_parquet(path: Path, ranks: int, batches: Batches) -> None:
    """The columns of the CSV, nothing (null) where that has nothing."""
    arrow, parquet = need("pyarrow", "parquet"), need("pyarrow.parquet", "parquet")
    kinds = [
        (name, arrow.float64() if name.startswith("score_") or name in SURE else arrow.string())
        for name in _header(ranks)
    ]
    schema = arrow.schema(kinds)
    with parquet.ParquetWriter(path, schema) as writer:
        for batch in batches:
            rows = [_row(record, ranks) for record in batch]
            columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
            writer.write_table(
                arrow.table([arrow.array(c, k.type) for c, k in zip(columns, schema, strict=True)], schema)
            )


def write_label_studio(path: Path, ranks: int, batches: Batches) -> None:
    """Tasks with predictions, for a labelling interface whose image and choices are called "image" and "choice"."""
    _write_list(path, "[\n", (_task(record) for batch in batches for record in batch), "\n]\n")


def write_fiftyone(path: Path, ranks: int, batches: Batches) -> None:
    """``labels.json`` of a FiftyOneImageClassificationDataset.

    It goes to an absolute path as it stands, and looks for any other in its folder, without the ending.
    """

    def labels() -> Iterator[str]:
        for record in (record for batch in batches for record in batch if record["classes"]):
            label = {"label": record["classes"][0]["class"], "confidence": record["confidence"]}
            known = {key: value for key, value in label.items() if value is not None}
            path = Path(record["input"])
            yield f"{_json(str(path if path.is_absolute() else path.with_suffix('')))}: {_json(known)}"

    _write_list(path, '{"classes": null, "labels": {\n', labels(), "\n}}\n")


def _task(record: Record) -> str:
    result = [
        {"from_name": "choice", "to_name": "image", "type": "choices", "value": {"choices": [best["class"]]}}
        for best in record["classes"][:1]
    ]
    guess: dict[str, Any] = {"model_version": "pren", "result": result}
    if record["confidence"] is not None:
        guess["score"] = record["confidence"]
    task = {"data": {"image": record["input"]}, "predictions": [guess] if result else []}
    return _json(task)


def _write_list(path: Path, opening: str, items: Iterable[str], closing: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(opening)
        for place, item in enumerate(items):
            file.write(item if not place else f",\n{item}")
        file.write(closing)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _header(ranks: int) -> list[str]:
    best = (f"{what}_{rank + 1}" for rank in range(ranks) for what in ("class", "score"))
    return ["input", *best, *SURE, "error"]


def _row(record: Record, ranks: int) -> list[Any]:
    best = [cell for best in record["classes"] for cell in (best["class"], best["score"])] or [None] * 2 * ranks
    return [record["input"], *best, *(record[key] for key in SURE), record["error"]]


WRITERS: dict[str, Write] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "label-studio": write_label_studio,
    "fiftyone": write_fiftyone,
}
