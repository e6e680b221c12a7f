"""A plan is a table of items, cut into batches: what one task does, or does again.

An item has a `cost`, how many bytes will be moved for it, and a `level`: what is on one is done
before the next is begun.  The batches of a plan are files, made by the tasks that make the items;
the driver knows their names and sizes, never the items.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from cairnfs.jobs.arrow import map_batches
from cairnfs.jobs.places import Place
from cairnfs.jobs.records import write_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BatchSize(msgspec.Struct, frozen=True):
    """A batch is over when it has so many items, or so much is to be moved for it."""

    items: int = 5_000
    bytes: int = 256 << 20


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """A file with items of one level."""

    name: str
    level: int
    items: int
    bytes: int


_TOLD = pa.schema(
    [("name", pa.string()), ("level", pa.int32()), ("items", pa.int64()), ("bytes", pa.int64())]
)


def cut(plan: DataFrame, place: Place, size: BatchSize) -> list[Batch]:
    """Write a plan down as batches; within one, items are in the order they come in.

    Names are an attempt's own: if a task is run twice, only what the one that counts has written is
    told.
    """
    place.make()

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cutter = _Cutter(place, size)
        for batch in batches:
            cutter.add(batch)
        cutter.end()
        yield cutter.told()

    found = [Batch(*row) for row in map_batches(plan, write, _TOLD).collect()]
    return sorted(found, key=lambda batch: (batch.level, batch.name))


class _Cutter:
    """The items of one partition, one after the other; it holds no more than a batch."""

    def __init__(self, place: Place, size: BatchSize) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        self._place = place
        self._size = size
        self._partition = 0 if context is None else context.partitionId()
        self._attempt = uuid.uuid4().hex[:8]
        self._waiting: list[pa.RecordBatch] = []
        self._level = 0
        self._items = self._bytes = 0
        self._made: list[Batch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        begin = 0
        costs, levels = batch.column("cost").to_pylist(), batch.column("level").to_pylist()
        for at, (cost, level) in enumerate(zip(costs, levels, strict=True)):
            if self._items and (
                level != self._level
                or self._items >= self._size.items
                or self._bytes + cost > self._size.bytes
            ):
                self._waiting.append(batch.slice(begin, at - begin))
                self.end()
                begin = at
            self._level = level
            self._items += 1
            self._bytes += cost
        self._waiting.append(batch.slice(begin))

    def end(self) -> None:
        """What has come since the last one is a batch."""
        if not self._items:
            return
        name = f"{self._partition:05}-{len(self._made):05}-{self._attempt}"
        write_table(self._place, f"{name}.parquet", pa.Table.from_batches(self._waiting))
        self._made.append(Batch(name, self._level, self._items, self._bytes))
        self._waiting = []
        self._items = self._bytes = 0

    def told(self) -> pa.RecordBatch:
        rows = [msgspec.structs.asdict(each) for each in self._made]
        return pa.RecordBatch.from_pylist(rows, _TOLD)
