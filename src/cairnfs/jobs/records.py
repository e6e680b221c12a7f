"""Tables that jobs keep in files of their own: Parquet, whole or not at all, known by checksum."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from cairnfs.errors import IOException
from cairnfs.jobs.arrow import map_batches
from cairnfs.jobs.places import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS_MAX = 1000  # read at the same time, of one table


class TableFile(NamedTuple):
    """A part of a table; `sha256` of what the file is, or empty if nobody has noted it."""

    name: str
    sha256: str = ""


def write_table(place: Place, name: str, table: pa.Table) -> str:
    """Write a part; the checksum of the file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    data = sink.getvalue()
    place.write(name, data)
    return hashlib.sha256(data).hexdigest()


def read_table(place: Place, file: TableFile) -> pa.Table:
    """Read a part, if it is what was written."""
    data = place.read(file.name)
    if file.sha256 and hashlib.sha256(data).hexdigest() != file.sha256:
        raise IOException(
            f"{place}/{file.name} is not what was written there: it was changed or is damaged"
        )
    return pq.read_table(io.BytesIO(data))


def load(
    spark: SparkSession, place: Place, files: Sequence[TableFile], schema: pa.Schema
) -> DataFrame:
    """All parts of a table; tasks read them, from whatever file system."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                table = read_table(place, files[index])
                yield from table.select(schema.names).cast(schema).to_batches()

    partitions = max(1, min(len(files), PARTITIONS_MAX))
    return map_batches(spark.range(0, len(files), 1, partitions), read, schema)
