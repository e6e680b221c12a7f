"""Hadoop's own client in a JVM of its own, driven call by call: FileSystem, and its streams.

with Jvm(cluster, directory) as java:
    out = java.create("/file")
    out.write(b"some"); out.hflush()
    java.kill()                      # as a writer that loses power
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from tests.scenarios.hadoop import JAVA_OPTIONS, LOGGING, hadoop_jars

from cairnfs.testing.cluster import Cluster


class JavaError(Exception):
    """What a Java program would have caught; its text names the class, and says why."""


class Jvm:
    """One client process; its file system is the cluster's."""

    def __init__(
        self, cluster: Cluster, directory: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        pytest.importorskip("py4j")
        from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

        jars = hadoop_jars()
        configuration = cluster.write_hadoop_configuration(directory, settings)
        (configuration / "log4j2.properties").write_text(LOGGING)
        port, self._process = launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=f"{configuration}:{jars}/*",
            javaopts=list(JAVA_OPTIONS),
            die_on_exit=True,
            redirect_stdout=subprocess.DEVNULL,
            redirect_stderr=subprocess.DEVNULL,
            return_proc=True,
        )
        # Objects live as long as the process: else they would be given back after it is killed.
        parameters = GatewayParameters(port=port, auto_convert=True, enable_memory_management=False)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self.jvm: Any = self._gateway.jvm
        hadoop = self.jvm.org.apache.hadoop
        self.fs = hadoop.fs.FileSystem.newInstance(hadoop.conf.Configuration())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def kill(self) -> None:
        """End it as `kill -9` does: nothing is flushed, nobody is told."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._gateway.close()

    def path(self, path: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(path)

    # The calls of FileSystem; what Java throws is raised as JavaError.

    def create(self, path: str, *, replication: int = 3, block_bytes: int = 1 << 20) -> Stream:
        made = _call(self.fs.create, self.path(path), True, 4096, replication, block_bytes)
        return Stream(self, made)

    def append(self, path: str, *, to_new_block: bool = False) -> Stream:
        flags = self.jvm.java.util.EnumSet.of(self.jvm.org.apache.hadoop.fs.CreateFlag.APPEND)
        if to_new_block:
            flags.add(self.jvm.org.apache.hadoop.fs.CreateFlag.NEW_BLOCK)
        return Stream(self, _call(self.fs.append, self.path(path), flags, 4096, None))

    def truncate(self, path: str, length: int) -> bool:
        return bool(_call(self.fs.truncate, self.path(path), length))

    def recover_lease(self, path: str) -> bool:
        return bool(_call(self.fs.recoverLease, self.path(path)))

    def is_closed(self, path: str) -> bool:
        return bool(_call(self.fs.isFileClosed, self.path(path)))

    def length(self, path: str) -> int:
        return int(_call(self.fs.getFileStatus, self.path(path)).getLen())

    def rename(self, path: str, to: str) -> bool:
        return bool(_call(self.fs.rename, self.path(path), self.path(to)))

    def delete(self, path: str) -> bool:
        return bool(_call(self.fs.delete, self.path(path), True))

    def open_files(self, below: str = "/") -> list[str]:
        """The files that are being written, as an administrator sees them."""
        types = self.jvm.org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType
        wanted = self.jvm.java.util.EnumSet.of(types.ALL_OPEN_FILES)
        found = _call(self.fs.listOpenFiles, wanted, below)
        paths = []
        while _call(found.hasNext):
            paths.append(str(_call(found.next).getFilePath()))
        return paths

    def open(self, path: str) -> Reader:
        return Reader(self, _call(self.fs.open, self.path(path)))

    def read(self, path: str) -> bytes:
        """All that a reader who comes now is given."""
        reader = self.open(path)
        try:
            return reader.read_all()
        finally:
            reader.close()

    def has(self, path: str, data: bytes) -> bool:
        """Whether a reader who comes now is given this, without its bytes in a report."""
        return self.read(path) == data


class Stream:
    """A file that is being written."""

    def __init__(self, java: Jvm, stream: Any) -> None:
        self._java = java
        self.stream = stream

    def write(self, data: bytes) -> None:
        _call(self.stream.write, bytearray(data))

    def hflush(self) -> None:
        _call(self.stream.hflush)

    def hsync(self, *, update_length: bool = False) -> None:
        if not update_length:
            _call(self.stream.hsync)
            return
        client = self._java.jvm.org.apache.hadoop.hdfs.client.HdfsDataOutputStream
        flags = self._java.jvm.java.util.EnumSet.of(client.SyncFlag.UPDATE_LENGTH)
        _call(self.stream.hsync, flags)

    def close(self) -> None:
        _call(self.stream.close)


class Reader:
    """A file that is being read."""

    def __init__(self, java: Jvm, stream: Any) -> None:
        self._java = java
        self._stream = stream

    def read_all(self) -> bytes:
        """From where it is to the end that it knows of."""
        return bytes(_call(self._java.jvm.org.apache.commons.io.IOUtils.toByteArray, self._stream))

    def read_at(self, position: int, length: int) -> bytes:
        buffer = self._java.jvm.java.nio.ByteBuffer.allocate(length)
        _call(self._stream.readFully, position, buffer)
        return bytes(buffer.array())

    def visible_length(self) -> int:
        return int(_call(self._stream.getVisibleLength))

    def close(self) -> None:
        _call(self._stream.close)


def _call(method: Any, *arguments: Any) -> Any:
    from py4j.protocol import Py4JJavaError

    try:
        return method(*arguments)
    except Py4JJavaError as error:
        raise JavaError(str(error.java_exception.toString())) from None
