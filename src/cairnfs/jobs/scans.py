"""A directory at one moment, as the tables of the data source, however many of them are read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from cairnfs.client.filesystem import FileSystem
from cairnfs.errors import FileNotFoundException, SnapshotException
from cairnfs.jobs.directories import Directory
from cairnfs.spark.snapshot_table import list_all_snapshots
from cairnfs.spark.views import open_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOLD_S = 3600.0  # between two tables of which one takes long


class Scan(NamedTuple):
    """What is read, and which moment that is."""

    directory: Directory
    view: int
    moment_ms: int

    def table(self, spark: SparkSession, name: str, schema: str) -> DataFrame:
        """A table of it, with these columns."""
        return (
            spark.read.format("cairn")
            .option("user", self.directory.user)
            .option("table", name)
            .option("view", str(self.view))
            .schema(schema)
            .load(self.directory.url)
        )


@contextmanager
def scanning(directory: Directory, moment_ms: int | None = None) -> Iterator[Scan]:
    """Hold a directory as it is now, or one in a snapshot, which is of another moment."""
    with directory.connect() as fs:
        check_directory(fs, directory)
        now_ms = time.time_ns() // 1_000_000
        with open_view(fs, directory.path, hold_s=HOLD_S) as view:
            yield Scan(directory, view.number, now_ms if moment_ms is None else moment_ms)


def check_directory(fs: FileSystem, directory: Directory) -> None:
    """It has to be there."""
    status = fs.get_file_info(directory.path)
    if status is None or not status.is_directory:
        raise FileNotFoundException(f"Directory does not exist: {directory.path}")


class Past(NamedTuple):
    """A directory as a snapshot of it, or of one above it, shows it."""

    directory: Directory
    created_ms: int


def list_pasts(fs: FileSystem, directory: Directory) -> list[Directory]:
    """All that snapshots show of a directory: its own, those of directories below, and above."""
    found = []
    for page in list_all_snapshots(fs):
        for snapshot in page:
            owner = directory._replace(path=snapshot.path)
            then = owner.snapshot(snapshot.name.decode())
            if not _is_below(owner.path, directory.path):
                if not _is_below(directory.path, owner.path):
                    continue
                then /= directory.path[len(owner.path) :].strip("/")
                status = fs.get_file_info(then.path)
                if status is None or not status.is_directory:
                    continue  # it was made later
            found.append(then)
    return found


def _is_below(path: str, directory: str) -> bool:
    """Or is it."""
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def find_past(fs: FileSystem, directory: Directory, name: str) -> Past:
    """The snapshot of that name, of the directory or of the nearest above that has one."""
    above = directory
    while True:
        status = fs.get_file_info(above.path)
        if status is not None and status.is_snapshottable:
            found = fs.find_snapshot(above.path, name)
            if found is not None:
                below = directory.path[len(above.path) :].strip("/")
                return Past(above.snapshot(name) / (below or "."), found.status.mtime_ms)
        if above.path == "/":
            raise SnapshotException(
                f"neither {directory.path} nor a directory above it has a snapshot {name!r}"
            )
        above = above.parent
