"""What the tables of the data source have in common: columns, and how their rows come.

A table reads *pages*, each some groups of rows; a column makes its values of a group.  So only
the columns that are asked for are made at all.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa

from cairnfs.client.addresses import parse_url
from cairnfs.client.filesystem import FileSystem, connect
from cairnfs.errors import IllegalArgumentException

PART_INODES = 100_000

TIME = pa.timestamp("us", tz="UTC")

G = TypeVar("G")


class Needs(enum.IntEnum):
    """What has to be known of inodes to make a column; more is not asked for."""

    COUNTS = 0  # how many there are
    ROWS = 1  # each, but nothing of what is in it
    INODES = 2


class Column(NamedTuple, Generic[G]):
    """A column of a table whose rows come in groups."""

    type: pa.DataType
    make: Callable[[G], Iterable[Any]]
    needs: Needs = Needs.INODES


@dataclass(frozen=True)
class Request:
    """What is to be read: which directory, where, as whom, and how."""

    namenodes: tuple[str, ...]
    user: str | None
    top: str
    columns: tuple[str, ...]
    inodes: int = PART_INODES  # of a partition
    options: Mapping[str, str] = field(default_factory=dict)  # those of single tables

    def connect(self, turn: int = 0) -> FileSystem:
        """The file system; each turn begins with another NameNode."""
        first = turn % len(self.namenodes)
        namenodes = (*self.namenodes[first:], *self.namenodes[:first])
        return connect(f"hdfs://{','.join(namenodes)}", user=self.user)

    def covers(self, path: str) -> bool:
        """Whether a path is at or below the directory."""
        return path == self.top or path.startswith(f"{self.top.rstrip('/')}/")


class Table(NamedTuple, Generic[G]):
    """One table: its columns, how it is cut into partitions, and how one is read."""

    name: str
    columns: Mapping[str, Column[G]]
    plan: Callable[[FileSystem, Request], Iterable[Any]]
    read: Callable[[FileSystem, Request, Any], Iterator[list[G]]]
    is_tree: bool = True  # its rows are those of a tree: a filter by path can look at less

    def schema(self, names: Iterable[str] | None = None) -> pa.Schema:
        chosen = self.columns if names is None else names
        return pa.schema([(name, self.columns[name].type) for name in chosen])

    def to_batch(self, page: list[G], schema: pa.Schema) -> pa.RecordBatch:
        """A page with the columns of a schema."""
        arrays = []
        for name in schema.names:
            column = self.columns[name]
            values = [value for group in page for value in column.make(group)]
            arrays.append(pa.array(values, type=column.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


R = TypeVar("R")


def of_row(type: pa.DataType, take: Callable[[R], Any]) -> Column[list[R]]:
    """A column of a table whose groups are plain lists of rows."""
    return Column(type, lambda rows: [take(row) for row in rows])


def locate(url: str) -> tuple[tuple[str, ...], str | None, str]:
    """The NameNodes of a URL, its user if it names one, and its path."""
    location = parse_url(url)
    path = location.path if location.path == "/" else location.path.rstrip("/")
    return tuple(map(str, location.namenodes)), location.user, path


def positive(name: str, text: str) -> int:
    """The number that an option is."""
    if not text.isdecimal() or int(text) == 0:
        raise IllegalArgumentException(f"{name}={text!r} of the data source cairn is no number > 0")
    return int(text)
