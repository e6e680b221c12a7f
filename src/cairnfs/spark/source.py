"""The data source `cairn`: `spark.read.format("cairn").load("hdfs://namenode/warehouse")`.

The driver opens a view, so that all partitions are read at one moment, and cuts it into parts;
each task reads one of them from a NameNode.  Neither ever holds more than a page.  The view is
closed by itself when no task has read from it for some minutes.

A schema, `.schema("path string, length bigint")`, chooses the columns that are made at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    InputPartition,
    StringStartsWith,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from cairnfs.errors import FileNotFoundException, IllegalArgumentException
from cairnfs.spark.as_of import AS_OF, as_of
from cairnfs.spark.attribute_table import ATTRIBUTES
from cairnfs.spark.block_tables import BLOCKS, REPLICAS
from cairnfs.spark.change_stream import STREAM_OPTIONS, ChangeStream
from cairnfs.spark.change_table import CHANGES, FROM, TO
from cairnfs.spark.inode_table import INODES
from cairnfs.spark.lease_table import LEASES
from cairnfs.spark.snapshot_table import SNAPSHOTS
from cairnfs.spark.tables import PART_INODES, Request, Table, locate, positive
from cairnfs.spark.view_tables import VIEW

TABLES: dict[str, Table[Any]] = {
    table.name: table
    for table in (INODES, BLOCKS, REPLICAS, SNAPSHOTS, ATTRIBUTES, LEASES, CHANGES)
}
_OF_A_MOMENT = tuple(table.name for table in (INODES, BLOCKS, REPLICAS, ATTRIBUTES))
_OPTIONS = (FROM, TO, VIEW, *STREAM_OPTIONS)

_NEVER_LISTED = frozenset(("", ".", "..", ".snapshot", ".reserved"))
_REPLACED = "\ufffd"  # what stands in a path for bytes that are no text


class CairnDataSource(DataSource):
    """Options: `path`, where `load` puts its argument; `table`; `inodes`, those of a partition.

    With `asof` what is read is of a snapshot, by its name, or of the last one by a time.
    With `pushdown` filters by path and parent are used; Spark has to be told so, too.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        path = options.get("path")
        if not path:
            raise IllegalArgumentException(
                "the data source cairn is given no path: load it from hdfs://namenode:8020/path"
            )
        name = options.get("table", INODES.name)
        if name not in TABLES:
            raise IllegalArgumentException(
                f"the data source cairn has no table {name!r}, but {', '.join(TABLES)}"
            )
        self._table = name
        self._path = path
        self._moment = options.get(AS_OF)
        namenodes, user, top = locate(path)
        self._request = Request(
            namenodes,
            options.get("user") or user,
            top,
            columns=(),
            inodes=positive("inodes", options.get("inodes", str(PART_INODES))),
            options={name: options[name] for name in _OPTIONS if name in options},
        )
        self._pushes_filters = options.get("pushdown", "false").lower() == "true"

    @classmethod
    def name(cls) -> str:
        return "cairn"

    def schema(self) -> StructType:
        return from_arrow_schema(TABLES[self._table].schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        is_tree = TABLES[self._table].is_tree
        is_given = VIEW in self._request.options  # a view is read as it was opened
        is_filtering = self._pushes_filters and is_tree and not is_given
        kind = FilteringReader if is_filtering else TableReader
        request = self._request_for(schema)
        if self._moment is not None:
            if self._table not in _OF_A_MOMENT or is_given:
                raise IllegalArgumentException(
                    f"the option {AS_OF} is for the tables {', '.join(_OF_A_MOMENT)}, and not"
                    f" with a view: {self._table} cannot be read as of {self._moment}"
                )
            _, _, top = locate(as_of(self._path, self._moment, user=request.user))
            request = replace(request, top=top)
        return kind(self._table, request)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if self._table != CHANGES.name:
            raise IllegalArgumentException(
                f"the table {self._table} is no stream: of the tables of the data source cairn"
                f" that is {CHANGES.name} (option 'table')"
            )
        return ChangeStream(self._request_for(schema))

    def _request_for(self, schema: StructType) -> Request:
        table = self._table
        known = {field.name: field for field in self.schema()}
        for field in schema:
            if field.name not in known:
                raise IllegalArgumentException(
                    f"the table {table} has no column {field.name!r}, but {', '.join(known)}"
                )
            if field.dataType != known[field.name].dataType:
                raise IllegalArgumentException(
                    f"the column {field.name} of the table {table} is"
                    f" {known[field.name].dataType.simpleString()}, not"
                    f" {field.dataType.simpleString()}"
                )
        return replace(self._request, columns=tuple(field.name for field in schema))


@dataclass
class TablePart(InputPartition):
    """What one task reads."""

    turn: int
    work: Any


class TableReader(DataSourceReader):
    """Reads one of the tables."""

    def __init__(self, table: str, request: Request) -> None:
        self._table = table
        self._request = request
        self._is_narrowed = False

    def partitions(self) -> Sequence[InputPartition]:
        with self._request.connect() as fs:
            try:
                plan = TABLES[self._table].plan(fs, self._request)
                return [TablePart(turn, work) for turn, work in enumerate(plan)]
            except FileNotFoundException:
                if self._is_narrowed:
                    return []  # a filter asks for what is not there
                raise

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, TablePart):
            return  # there is none
        table = TABLES[self._table]
        schema = table.schema(self._request.columns)
        with self._request.connect(partition.turn) as fs:
            for page in table.read(fs, self._request, partition.work):
                yield table.to_batch(page, schema)


class FilteringReader(TableReader):
    """The same for a session with spark.sql.python.filterPushdown.enabled, which it must have."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """A filter by path or parent tells below which directory to look; Spark applies it."""
        for each in filters:
            if isinstance(each, StringStartsWith) and each.attribute == ("path",):
                self._narrow(str(each.value).rpartition("/")[0])
            elif isinstance(each, EqualTo) and each.attribute == ("parent",):
                self._narrow(str(each.value))
            yield each

    def _narrow(self, directory: str) -> None:
        top = self._request.top.rstrip("/")
        names = directory.removeprefix(top).split("/")[1:]
        is_below = directory != self._request.top and self._request.covers(directory)
        # A path that no row has, or has only as text, may be one that could be opened, or not.
        is_listed = _NEVER_LISTED.isdisjoint(names) and _REPLACED not in directory
        if is_below and is_listed:
            self._request = replace(self._request, top=directory)
            self._is_narrowed = True
