"""The changes of a directory as a stream: `spark.readStream.format("cairn")`.

An offset is a TxID, and the number of a view that holds that moment: so what happened between
two offsets can be read as often as need be, and is the same each time.  Spark writes offsets down
before it reads what is between them; with a sink that takes each batch once, every change comes
once, whatever dies in between.

What is held is the moment of the last batch that Spark has done with, and what came after it.
A stream that nobody has gone on with for `holdHours` loses it, and is told so.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import FileNotFoundException, IllegalArgumentException, SnapshotException
from cairnfs.spark.change_table import CHANGES, ChangesWork, open_moment
from cairnfs.spark.snapshot_table import list_all_snapshots
from cairnfs.spark.tables import Request, positive
from cairnfs.spark.views import (
    RENEWAL_S,
    View,
    find_view,
    is_view_current,
    list_views,
    open_view,
)

STARTING, HOLD = "startingOffset", "holdHours"
STREAM_OPTIONS = (STARTING, HOLD)
HOLD_HOURS = 24
POLL_INTERVAL_S = 0.2  # Spark asks again at once when there is nothing

Offset = Mapping[str, Any]


@dataclass
class BatchPart(InputPartition):
    """The changes of one batch, which one task reads in their order."""

    old: int
    new: int


class ChangeStream(DataSourceStreamReader):
    """The stream of one directory's changes.

    `startingOffset` is `latest`, the default, `earliest`, the oldest snapshot, or a moment as in
    the options of the table: changes since then come first.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._hold_s = 3600.0 * positive(HOLD, request.options.get(HOLD, str(HOLD_HOURS)))
        self._asked_s = 0.0
        self._first: Offset | None = None
        self._last: Offset | None = None  # for a Spark before 4.2, which does not tell
        self._renewed = 0  # the view that was renewed last, and when
        self._renewed_s = 0.0

    # On the driver.

    def initialOffset(self) -> dict[str, Any]:
        """Where a new stream begins: the same each time, for Spark asks more than once."""
        if self._first is None:
            with self._request.connect() as fs:
                self._first = self._last = self._open_first(fs)
        return dict(self._first)

    def latestOffset(self, start: Offset | None = None, limit: object = None) -> dict[str, Any]:
        """Now, if something has changed since the start; else the start again."""
        wait_s = self._asked_s + POLL_INTERVAL_S - time.monotonic()
        if wait_s > 0:
            time.sleep(wait_s)
        self._asked_s = time.monotonic()
        with self._request.connect() as fs:
            last = start or self._last
            stream = uuid.uuid4().hex if last is None else last["stream"]
            if last is not None and self._is_current(fs, last):
                return dict(last)
            view = open_view(fs, self._request.top, hold_s=self._hold_s, label=_label(stream))
            self._last = _offset(view, stream)
            return dict(self._last)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start["txid"] >= end["txid"]:
            return []
        with self._request.connect() as fs:
            for offset in (start, end):
                self._find(fs, offset)
            _let_go(fs, start, end)  # whoever asks for this batch is done with those before
        return [BatchPart(start["view"], end["view"])]

    def commit(self, end: Offset) -> None:
        with self._request.connect() as fs:
            _let_go(fs, end)

    # In a task.

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, BatchPart):
            return
        schema = CHANGES.schema(self._request.columns)
        with self._request.connect() as fs:
            work = ChangesWork(partition.old, partition.new)
            for page in CHANGES.read(fs, self._request, work):
                yield CHANGES.to_batch(page, schema)

    def _open_first(self, fs: FileSystem) -> Offset:
        stream = uuid.uuid4().hex
        moment = self._request.options.get(STARTING, "latest")
        if moment == "latest":
            moment = ""
        elif moment == "earliest":
            moment = f"txid:{self._find_earliest(fs)}"
        elif moment.startswith("view:"):
            raise IllegalArgumentException(
                f"{STARTING}={moment!r}: a view is closed when its owner is done; name a"
                " snapshot, or write txid:N"
            )
        view = open_moment(fs, self._request.top, moment, hold_s=self._hold_s, label=_label(stream))
        return _offset(view, stream)

    def _find(self, fs: FileSystem, offset: Offset) -> View:
        """The view of an offset; it is renewed."""
        try:
            return find_view(fs, offset["view"])
        except FileNotFoundException:
            raise SnapshotException(
                f"The changes of {self._request.top} after transaction {offset['txid']} were let"
                f" go: nobody has gone on with the stream for the {self._hold_s / 3600:g} hours"
                f" that it asked for ({HOLD}), or its view {offset['view']} was closed. Begin anew"
                f" with another checkpoint, from a snapshot if there is one ({STARTING})"
            ) from None

    def _is_current(self, fs: FileSystem, offset: Offset) -> bool:
        """Whether nothing has changed since; the view is renewed now and then."""
        number = offset["view"]
        if number != self._renewed or time.monotonic() - self._renewed_s > RENEWAL_S:
            self._find(fs, offset)
            self._renewed, self._renewed_s = number, time.monotonic()
        return is_view_current(fs, number)

    def _find_earliest(self, fs: FileSystem) -> int:
        """The TxID of the oldest snapshot of the directory."""
        found = [
            row.txid
            for page in list_all_snapshots(fs)
            for row in page
            if row.path == self._request.top
        ]
        if not found:
            raise SnapshotException(
                f"There is no snapshot of {self._request.top} to begin with: {STARTING} is"
                " 'latest', or have one taken"
            )
        return min(found)


def _offset(view: View, stream: str) -> dict[str, Any]:
    return {"txid": view.txid, "view": view.number, "stream": stream}


def _label(stream: str) -> str:
    return f"stream {stream}"


def _let_go(fs: FileSystem, *needed: Offset) -> None:
    """Close the views of a stream up to the last of these offsets, but for these."""
    last = needed[-1]
    numbers = {offset["view"] for offset in needed}
    for view in list_views(fs):
        is_ours = view.label == _label(last["stream"])
        if is_ours and view.txid <= last["txid"] and view.number not in numbers:
            view.close()
