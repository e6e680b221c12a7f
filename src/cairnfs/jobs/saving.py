"""A DataFrame as Parquet files in a place, written by the tasks that compute it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from cairnfs.errors import FileAlreadyExistsException
from cairnfs.jobs.arrow import map_batches
from cairnfs.jobs.places import Place
from cairnfs.jobs.records import write_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRITTEN = pa.schema([("name", pa.string()), ("rows", pa.int64())])
_ROWS_MAX = 1_000_000  # of a file


def check_empty(place: Place) -> None:
    """Nothing that is there is mixed with what is written."""
    if place.sizes():
        raise FileAlreadyExistsException(f"{place} is not empty: choose another place, or empty it")


def save(frame: DataFrame, place: Place) -> int:
    """Write all rows; how many.  Names are an attempt's own, and what did not count is removed."""
    place.make()

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= _ROWS_MAX:
                yield _write(place, waiting)
                waiting = []
        if waiting:
            yield _write(place, waiting)

    written = {row.name: row.rows for row in map_batches(frame, write, _WRITTEN).collect()}
    for name in place.sizes():
        if name not in written:
            place.remove(name)
    return sum(written.values())


def _write(place: Place, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    name = f"part-{uuid.uuid4().hex}.parquet"
    table = pa.Table.from_batches(batches)
    write_table(place, name, table)
    return pa.RecordBatch.from_pylist([{"name": name, "rows": table.num_rows}], _WRITTEN)
