"""The formats of a table of labels. All are written a few rows at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pren.foundation.errors import PrenError, suggest
from pren.foundation.extras import need
from pren.foundation.files import csv_text, replacing
from pren.label.predictions import Predictions, Row, cells, header

Batches = Iterable[list[Row]]
Write = Callable[[Path, int, Batches], None]  # file, classes per input, batches of rows


def find_writer(out: Path, name: str | None = None) -> str:
    """The named format, or that of the ending of a file.

    Raises:
        PrenError: If there is none, or a package that it needs is missing.
    """
    name = out.suffix.lower().removeprefix(".") if name is None else name
    if name not in WRITERS:
        raise PrenError(
            "unknown-format",
            f"The format of {out} is unknown: use .csv, .jsonl or .parquet, or add --format. {suggest(name, WRITERS)}",
        )
    if name == "parquet":
        need("pyarrow.parquet", "parquet")
    return name


def write_labels(labels: Predictions, out: Path, name: str | None = None) -> None:
    """Write labels in the named format, or that of the ending of the file."""
    writer = WRITERS[find_writer(out, name)]
    with replacing(out) as temporary:
        writer(temporary, labels.top, [list(labels.rows())])


def write_csv(path: Path, ranks: int, batches: Batches) -> None:
    """A row for every input; text is safe for spreadsheets."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(csv_text([header(ranks)]))
        for batch in batches:
            file.write(csv_text(["" if cell is None else cell for cell in cells(row, ranks)] for row in batch))


def write_jsonl(path: Path, ranks: int, batches: Batches) -> None:
    """An object for every input."""
    with path.open("w", encoding="utf-8") as file:
        for batch in batches:
            file.writelines(_json(row.to_json()) + "\n" for row in batch)


def write_parquet(path: Path, ranks: int, batches: Batches) -> None:
    """The columns of the CSV; null for empty cells."""
    arrow, parquet = need("pyarrow", "parquet"), need("pyarrow.parquet", "parquet")
    numbers = ("score", "confidence", "familiarity")
    kinds = [(name, arrow.float64() if name.startswith(numbers) else arrow.string()) for name in header(ranks)]
    schema = arrow.schema(kinds)
    with parquet.ParquetWriter(path, schema) as writer:
        for batch in batches:
            rows = [cells(row, ranks) for row in batch]
            columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
            writer.write_table(
                arrow.table([arrow.array(c, k.type) for c, k in zip(columns, schema, strict=True)], schema)
            )


def write_label_studio(path: Path, ranks: int, batches: Batches) -> None:
    """Tasks with predictions, for a labelling interface with an image "image" and choices "choice"."""
    _write_list(path, "[\n", (_task(row) for batch in batches for row in batch), "\n]\n")


def write_fiftyone(path: Path, ranks: int, batches: Batches) -> None:
    """``labels.json`` of a FiftyOneImageClassificationDataset.

    It takes absolute paths, or paths in its folder without the ending.
    """

    def labels() -> Iterator[str]:
        for row in (row for batch in batches for row in batch if row.label):
            label = {"label": row.label, "confidence": row.confidence}
            known = {key: value for key, value in label.items() if value is not None}
            path = Path(row.input)
            yield f"{_json(str(path if path.is_absolute() else path.with_suffix('')))}: {_json(known)}"

    _write_list(path, '{"classes": null, "labels": {\n', labels(), "\n}}\n")


def _task(row: Row) -> str:
    choice = {"from_name": "choice", "to_name": "image", "type": "choices", "value": {"choices": [row.label]}}
    result = [choice] if row.label else []
    guess: dict[str, Any] = {"model_version": "pren", "result": result}
    if row.confidence is not None:
        guess["score"] = row.confidence
    task = {"data": {"image": row.input}, "predictions": [guess] if result else []}
    return _json(task)


def _write_list(path: Path, opening: str, items: Iterable[str], closing: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(opening)
        for place, item in enumerate(items):
            file.write(item if not place else f",\n{item}")
        file.write(closing)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


WRITERS: dict[str, Write] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "label-studio": write_label_studio,
    "fiftyone": write_fiftyone,
}
