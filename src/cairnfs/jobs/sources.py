"""Where entries and their content are read from: a snapshot on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from cairnfs.client.filesystem import FileSystem
from cairnfs.client.records import FileStatus, FileType
from cairnfs.errors import FileNotFoundException, IOException
from cairnfs.jobs.directories import Directory
from cairnfs.jobs.entries import DIRECTORY, FILE, SYMLINK, TOP, Entry, XAttr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUFFER_BYTES = 4 << 20

_KINDS = {FileType.FILE: FILE, FileType.DIRECTORY: DIRECTORY, FileType.SYMLINK: SYMLINK}


class Reader(Protocol):
    """Reads entries of one tree."""

    def describe(self, entry: Entry) -> Entry:
        """All of an entry of which path and kind are known."""
        ...

    def chunks(self, entry: Entry) -> Iterator[bytes]:
        """The content of a file; an error at the end if it is not what it should be."""
        ...


class Source(Protocol):
    """A tree to read, for any process."""

    def open(self) -> AbstractContextManager[Reader]: ...


class SnapshotSource(NamedTuple):
    """A tree on a cluster that does not change: a snapshot."""

    tree: Directory

    @contextmanager
    def open(self) -> Iterator[Reader]:
        with self.tree.connect() as fs:
            yield SnapshotReader(fs, self.tree)


class SnapshotReader:
    """A connection to it."""

    def __init__(self, fs: FileSystem, tree: Directory) -> None:
        self._fs = fs
        self._tree = tree
        self._policies: dict[int, str] | None = None

    def describe(self, entry: Entry) -> Entry:
        path = (self._tree / entry.path).path
        status = self._fs.get_file_link_info(path)
        if status is None:
            raise FileNotFoundException(f"{path} is not there any more: was the snapshot deleted?")
        described = Entry(
            entry.path,
            _KINDS[status.type],
            status.length_bytes if status.is_file else 0,
            status.owner,
            status.group,
            status.mode,
            status.mtime_ms,
            status.atime_ms if status.is_file else 0,
            status.replication if status.is_file else 0,
            status.block_size_bytes if status.is_file else 0,
            status.target,
            pack=entry.pack,
            offset=entry.offset,
            sha256=entry.sha256,
        )
        if status.is_symlink:
            return described
        xattrs = self._fs.get_xattrs(path)
        return msgspec.structs.replace(
            described,
            acl=self._fs.get_acl_status(path).entries if status.has_acl else [],
            xattrs=[XAttr(name, value) for name, value in sorted(xattrs.items())],
            policy=self._policy_of(status),
        )

    def chunks(self, entry: Entry) -> Iterator[bytes]:
        path = (self._tree / entry.path).path
        left = entry.length
        with self._fs.open(path) as stream:
            while left and (chunk := stream.read(min(left, BUFFER_BYTES))):
                left -= len(chunk)
                yield chunk
        if left:
            raise IOException(f"{path} has ended {left} bytes before its length")

    def _policy_of(self, status: FileStatus) -> str | None:
        if not status.storage_policy:
            return None
        if self._policies is None:
            self._policies = {each.id: each.name for each in self._fs.get_storage_policies()}
        return self._policies.get(status.storage_policy)


def scan(spark: SparkSession, tree: Directory) -> DataFrame:
    """Path, kind and length of all that is at and below a directory, paths relative to it."""
    from pyspark.sql import functions as f

    found = (
        spark.read.format("cairn")
        .option("user", tree.user)
        .schema("path string, kind string, length bigint")
        .load(tree.url)
    )
    relative = f.expr(f"substring(path, {len(tree.path) + 2})")
    path = f.when(f.col("path") == tree.path, f.lit(TOP)).otherwise(relative)
    return found.select(
        path.alias("path"), "kind", f.coalesce("length", f.lit(0).cast("bigint")).alias("length")
    )
