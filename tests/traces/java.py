"""Traces through Hadoop's own client, in a JVM; a roll-back, which it does not know, by ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.scenarios.jvm import JavaError, Jvm
from tests.traces.adapter import REPLICATION, Adapter, Entry
from tests.traces.clients import wait_until
from tests.traces.trace import Entries

import cairnfs
from cairnfs.errors import FileAlreadyExistsException, FileNotFoundException, IOException

BLOCK_BYTES = 1 << 20


class JavaAdapter(Adapter):
    """DistributedFileSystem."""

    def __init__(self, java: Jvm, fs: cairnfs.FileSystem) -> None:
        self._java = java
        self._fs = fs
        self._rename_options = java.jvm.org.apache.hadoop.fs.Options.Rename

    def mkdir(self, path: str) -> None:
        if self._call(self._java.fs.exists, path):
            raise FileAlreadyExistsException(path)
        self._call(self._java.fs.mkdirs, path)

    def create(self, path: str, text: str, overwrite: bool) -> None:
        with _refusals():
            file = self._java.fs.create(
                self._java.path(path), overwrite, 4096, REPLICATION, BLOCK_BYTES
            )
            file.write(bytearray(text.encode()))
            file.close()

    def append(self, path: str, text: str) -> None:
        with _refusals():
            file = self._java.append(path)
            file.write(text.encode())
            file.close()

    def truncate(self, path: str, length: int) -> None:
        with _refusals():
            if not self._java.truncate(path, length):
                wait_until(lambda: self._java.is_closed(path))

    def chmod(self, path: str, mode: int) -> None:
        permission = self._java.jvm.org.apache.hadoop.fs.permission.FsPermission(f"{mode:o}")
        self._call(self._java.fs.setPermission, path, permission)

    def setrep(self, path: str, replication: int) -> None:
        short = self._java.jvm.java.lang.Short.valueOf(str(replication))
        if not self._call(self._java.fs.setReplication, path, short):
            raise FileNotFoundException(path)

    def delete(self, path: str, recursive: bool) -> None:
        if not self._call(self._java.fs.delete, path, recursive):
            raise FileNotFoundException(path)

    def rename(self, source: str, destination: str, overwrite: bool) -> None:
        option = self._rename_options.OVERWRITE if overwrite else self._rename_options.NONE
        arrays = self._java.jvm.java.lang.reflect.Array
        options = arrays.newInstance(option.getDeclaringClass(), 1)
        options[0] = option
        self._call(self._java.fs.rename, source, self._java.path(destination), options)

    def allow(self, path: str) -> None:
        self._call(self._java.fs.allowSnapshot, path)

    def disallow(self, path: str) -> None:
        self._call(self._java.fs.disallowSnapshot, path)

    def create_snapshot(self, path: str, name: str) -> None:
        self._call(self._java.fs.createSnapshot, path, name)

    def delete_snapshot(self, path: str, name: str) -> None:
        self._call(self._java.fs.deleteSnapshot, path, name)

    def rename_snapshot(self, path: str, old: str, new: str) -> None:
        self._call(self._java.fs.renameSnapshot, path, old, new)

    def rollback(self, path: str, name: str) -> None:
        self._fs.rollback_snapshot(path, name)

    def diff(self, path: str, old: str, new: str) -> Entries:
        report = self._call(self._java.fs.getSnapshotDiffReport, path, old, new)
        return {tuple(self._entry(entry)) for entry in report.getDiffList()}

    def read(self, path: str) -> bytes:
        with _refusals():
            return self._java.read(path)

    def status(self, path: str) -> Entry:
        return _of_status(self._call(self._java.fs.getFileStatus, path))

    def children(self, path: str) -> list[Entry]:
        return [_of_status(each) for each in self._call(self._java.fs.listStatus, path)]

    def snapshottable(self) -> dict[str, list[str]]:
        with _refusals():
            listed = self._java.fs.getSnapshottableDirListing() or ()
            paths = [each.getFullPath().toString() for each in listed]
        return {
            path: [each.name for each in self.children(f"{path.rstrip('/')}/.snapshot")]
            for path in paths
        }

    def _entry(self, entry: Any) -> Iterator[str]:
        yield entry.getType().getLabel()
        yield bytes(entry.getSourcePath()).decode()
        if entry.getTargetPath() is not None:
            yield bytes(entry.getTargetPath()).decode()

    def _call(self, method: Callable[..., Any], path: str, *more: Any) -> Any:
        with _refusals():
            return method(self._java.path(path), *more)


@contextmanager
def _refusals() -> Iterator[None]:
    """What Java throws, as the replayer knows it."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        raise IOException(str(error.java_exception.toString())) from None
    except JavaError as error:
        raise IOException(str(error)) from None


def _of_status(status: Any) -> Entry:
    return Entry(
        status.getPath().getName(),
        status.isDirectory(),
        int(status.getPermission().toShort()),
        int(status.getReplication()),
        int(status.getLen()),
        (status.getFileId(), status.getModificationTime(), status.getLen()),
    )
