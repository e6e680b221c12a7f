"""The data source `cairn`: `spark.read.format("cairn").load("hdfs://namenode/warehouse")`.

The driver opens a view, so that all partitions are read at one moment, and cuts it into parts;
each task reads one of them from a NameNode.  Neither ever holds more than a page.  The view is
closed by itself when no task has read from it for some minutes.

A schema, `.schema("path string, length bigint")`, chooses the columns that are made at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    InputPartition,
    StringStartsWith,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import cairnfs
from cairnfs.client.addresses import parse_url
from cairnfs.errors import FileNotFoundException, IllegalArgumentException
from cairnfs.namesystem.tree_scan import Part
from cairnfs.spark.inode_table import COLUMNS, arrow_schema, to_batch
from cairnfs.spark.views import find_view, open_view

TABLES = ("inodes",)
PART_INODES = 100_000


class CairnDataSource(DataSource):
    """Options: `path`, where `load` puts its argument; `table`; `inodes`, those of a partition.

    With `pushdown` filters by path and parent are used; Spark has to be told so, too.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        path = options.get("path")
        if not path:
            raise IllegalArgumentException(
                "the data source cairn is given no path: load it from hdfs://namenode:8020/path"
            )
        table = options.get("table", TABLES[0])
        if table not in TABLES:
            raise IllegalArgumentException(
                f"the data source cairn has no table {table!r}, but {', '.join(TABLES)}"
            )
        self._tree = Tree(path, options.get("user"), parse_url(path).path)
        self._inodes = _positive(options.get("inodes", str(PART_INODES)))
        self._pushes_filters = options.get("pushdown", "false").lower() == "true"

    @classmethod
    def name(cls) -> str:
        return "cairn"

    def schema(self) -> StructType:
        return from_arrow_schema(arrow_schema(COLUMNS))

    def reader(self, schema: StructType) -> DataSourceReader:
        known = {field.name: field for field in self.schema()}
        for field in schema:
            if field.name not in known:
                raise IllegalArgumentException(
                    f"the table inodes has no column {field.name!r}, but {', '.join(known)}"
                )
            if field.dataType != known[field.name].dataType:
                raise IllegalArgumentException(
                    f"the column {field.name} of the table inodes is"
                    f" {known[field.name].dataType.simpleString()}, not"
                    f" {field.dataType.simpleString()}"
                )
        columns = arrow_schema(field.name for field in schema)
        kind = FilteringReader if self._pushes_filters else InodeReader
        return kind(self._tree, columns, self._inodes)


class Tree(NamedTuple):
    """Where what is to be read is, and as whom."""

    url: str
    user: str | None
    top: str

    def connect(self) -> cairnfs.FileSystem:
        return cairnfs.connect(self.url, user=self.user)


@dataclass
class ViewPart(InputPartition):
    """A part of a view, for one task."""

    number: int
    part: Part


class InodeReader(DataSourceReader):
    """Reads the table `inodes` below a directory."""

    def __init__(self, tree: Tree, columns: pa.Schema, inodes: int) -> None:
        self._connect = tree.connect
        self._top = tree.top
        self._columns = columns
        self._inodes = inodes
        self._is_narrowed = False

    def partitions(self) -> Sequence[InputPartition]:
        with self._connect() as fs:
            try:
                view = open_view(fs, self._top)
            except FileNotFoundException:
                if self._is_narrowed:
                    return []  # a filter asks for what is not there
                raise
            return [ViewPart(view.number, part) for part in view.split(self._inodes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, ViewPart):
            return  # there is none
        with self._connect() as fs:
            view = find_view(fs, partition.number)
            for listed in view.read(partition.part):
                yield to_batch(listed, view.path, self._columns)


class FilteringReader(InodeReader):
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
        top = self._top.rstrip("/")
        if directory.startswith(f"{top}/"):
            self._top = directory
            self._is_narrowed = True


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise IllegalArgumentException(f"inodes={text!r} of the data source cairn is no number > 0")
    return int(text)
