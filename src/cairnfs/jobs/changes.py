"""What changed between two snapshots, as a DataFrame: one task reads it, page by page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from cairnfs.jobs.arrow import map_batches
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.entries import DIRECTORY, FILE, SYMLINK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CREATED, DELETED, MODIFIED = "CREATED", "DELETED", "MODIFIED"
MOVED_OUT, MOVED_IN = "MOVED_OUT", "MOVED_IN"

SCHEMA = pa.schema(
    [
        ("change", pa.string()),
        ("path", pa.string()),
        ("other", pa.string()),
        ("id", pa.int64()),
        ("kind", pa.string()),
        ("is_rewritten", pa.bool_()),
    ]
)
_KINDS = {"FILE": FILE, "DIRECTORY": DIRECTORY, "SYMLINK": SYMLINK}
_PAGE = 10_000


def changes(spark: SparkSession, directory: Directory, old: str, new: str) -> DataFrame:
    """As `FileSystem.snapshot_changes` tells them, without an order."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        with directory.connect() as fs:
            told = fs.snapshot_changes(directory.path, old, new)
            while page := list(islice(told, _PAGE)):
                columns = [
                    [each.kind.value for each in page],
                    [each.path for each in page],
                    [each.other for each in page],
                    [each.id for each in page],
                    [_KINDS[each.type.value] for each in page],
                    [each.is_rewritten for each in page],
                ]
                arrays = [
                    pa.array(values, field.type)
                    for values, field in zip(columns, SCHEMA, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    return map_batches(spark.range(0, 1, 1, 1), read, SCHEMA)
