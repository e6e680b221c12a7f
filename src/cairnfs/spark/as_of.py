"""Data as it was: of a snapshot, or at a time.

spark.read.parquet(as_of("hdfs://namenode/lake/orders", "2026-11-01T06:00"))
read(spark).option("asof", "before-the-job").parquet("hdfs://namenode/lake/orders")
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import cairnfs
from cairnfs.client.addresses import split_url
from cairnfs.client.records import Snapshot
from cairnfs.errors import IllegalArgumentException, SnapshotException

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameReader

AS_OF = "asof"


def as_of(url: str, moment: str | datetime, *, user: str | None = None) -> str:
    """Where to read what was at `url`: in a snapshot of that name, or in the last one by then.

    The snapshot may be of the directory itself or of any one above it.  A time without a zone is
    one of here.
    """
    beginning, path = split_url(url)
    with cairnfs.connect(url, user=user) as fs:
        found = list(_snapshots_above(fs, path))
    if isinstance(moment, str):
        for root, snapshot in found:
            if snapshot.status.name == moment:
                return _inside(beginning, path, root, snapshot)
    then_ms = _parse_ms(moment, path, found)
    by_then = [each for each in found if each[1].status.mtime_ms <= then_ms]
    if not by_then:
        raise SnapshotException(f"{path} has no snapshot as old as {moment}; {_told(found)}")
    root, snapshot = max(by_then, key=lambda each: each[1].status.mtime_ms)
    return _inside(beginning, path, root, snapshot)


def read(spark: SparkSession) -> Reader:
    """As `spark.read`, with an option `asof` for the paths that are read."""
    return Reader(spark.read)


class Reader:
    """A DataFrameReader that knows of times: whatever it is given goes to Spark's own."""

    def __init__(self, reader: DataFrameReader, moment: str | datetime | None = None) -> None:
        self._reader = reader
        self._moment = moment

    def option(self, key: str, value: Any) -> Reader:
        if key.lower() == AS_OF:
            return Reader(self._reader, value)
        return Reader(self._reader.option(key, value), self._moment)

    def options(self, **options: Any) -> Reader:
        reader = self
        for key, value in options.items():
            reader = reader.option(key, value)
        return reader

    def format(self, source: str) -> Reader:
        return Reader(self._reader.format(source), self._moment)

    def schema(self, schema: Any) -> Reader:
        return Reader(self._reader.schema(schema), self._moment)

    def load(self, path: str | list[str], **options: Any) -> DataFrame:
        return self._reader.load(self._then(path), **options)

    def parquet(self, *paths: str, **options: Any) -> DataFrame:
        return self._reader.parquet(*map(self._then, paths), **options)

    def orc(self, path: str | list[str], **options: Any) -> DataFrame:
        return self._reader.orc(self._then(path), **options)

    def csv(self, path: str | list[str], **options: Any) -> DataFrame:
        return self._reader.csv(self._then(path), **options)

    def json(self, path: str | list[str], **options: Any) -> DataFrame:
        return self._reader.json(self._then(path), **options)

    def text(self, paths: str | list[str], **options: Any) -> DataFrame:
        return self._reader.text(self._then(paths), **options)

    def _then(self, path: Any) -> Any:
        if self._moment is None:
            return path
        if isinstance(path, str):
            return as_of(path, self._moment)
        return [as_of(each, self._moment) for each in path]


def _snapshots_above(fs: cairnfs.FileSystem, path: str) -> Iterator[tuple[str, Snapshot]]:
    """Snapshots of a path and of those above it, with what each of them is of."""
    while True:
        with contextlib.suppress(SnapshotException, FileNotFoundError, PermissionError):
            # It may have none, or none that we may see, or have been there only then.
            for snapshot in fs.list_snapshots(path or "/"):
                yield path, snapshot
        if not path:
            return
        path = path.rpartition("/")[0]


def _parse_ms(moment: str | datetime, path: str, found: Iterable[tuple[str, Snapshot]]) -> int:
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise IllegalArgumentException(
                f"{moment!r} is neither a time, as 2026-11-01T06:00, nor a snapshot of {path}:"
                f" {_told(found)}"
            ) from None
    return round(moment.timestamp() * 1000)


def _told(found: Iterable[tuple[str, Snapshot]]) -> str:
    names = [f"{snapshot.status.name} (of {root or '/'})" for root, snapshot in found]
    return f"there are {', '.join(names)}" if names else "there are none"


def _inside(beginning: str, path: str, root: str, snapshot: Snapshot) -> str:
    return f"{beginning}{root}/.snapshot/{snapshot.status.name}{path[len(root) :]}"
