"""The data source as Spark uses it, without Spark: what its tasks would make of a table."""

from __future__ import annotations

from typing import Any

from cairnfs.spark.source import CairnDataSource

Row = dict[str, Any]


def read_table(url: str, table: str, *columns: str, **options: str) -> list[Row]:
    """All rows of a table, with all columns or these."""
    source = CairnDataSource({"path": url, "table": table, **options})
    schema = source.schema()
    if columns:
        schema = type(schema)([schema[name] for name in columns])
    reader = source.reader(schema)
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]
