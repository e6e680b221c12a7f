"""Hadoop's FsShell in a Java process of its own, one for each user, kept for all its commands.

Methods of DistributedFileSystem for which the shell has no command can be called as well.

The classes are those of the `pyspark` package; py4j, which comes with it, lets Python call them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

CALL = "dfs"  # instead of a command: a method of DistributedFileSystem
FILL = "fill"  # or, instead of a method: give a path as many attributes

OPENED = ("java.lang", "java.util", "java.io", "java.net", "sun.nio.ch")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value.toString())


def why_not() -> str | None:
    """What lacks here to run Java clients, if anything does."""
    if shutil.which("java") is None:
        return "there is no java"
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark, which brings Hadoop's client, is not installed"
    return None


def parse_bytes(text: str) -> bytes | None:
    """The value that an argument of a call is, if it is one."""
    kind, _, rest = text.partition(":")
    if kind == "zeros":
        return bytes(int(rest))
    return rest.encode() if kind == "bytes" else None


class Outcome(NamedTuple):
    """What a command has printed, and its exit code."""

    out: str
    err: str
    code: int


class FsShell:
    """`hadoop fs -fs URI ...` in the name of a user."""

    def __init__(self, uri: str, user: str, directory: Path) -> None:
        self.uri = uri
        self._gateway = _launch_java(user, directory)
        self._java = self._gateway.jvm
        self._system_out = self._java.System.out
        self._system_err = self._java.System.err

    def run(self, *arguments: str) -> Outcome:
        if arguments[0] == CALL:
            return self._call(*arguments[1:])
        java = self._java
        out, err = java.java.io.ByteArrayOutputStream(), java.java.io.ByteArrayOutputStream()
        java.System.setOut(java.java.io.PrintStream(out, True))
        java.System.setErr(java.java.io.PrintStream(err, True))
        try:
            conf = java.org.apache.hadoop.conf.Configuration()
            shell = java.org.apache.hadoop.fs.FsShell(conf)
            command = self._array(["-fs", self.uri, *arguments])
            code = java.org.apache.hadoop.util.ToolRunner.run(shell, command)
            shell.close()
        finally:
            java.System.setOut(self._system_out)
            java.System.setErr(self._system_err)
        return Outcome(out.toString("UTF-8"), err.toString("UTF-8"), code)

    def _call(self, method: str, *arguments: str) -> Outcome:
        """A method of DistributedFileSystem: of a path, if any, and of texts."""
        from py4j.protocol import Py4JJavaError

        fs_package = self._java.org.apache.hadoop.fs
        conf = self._java.org.apache.hadoop.conf.Configuration()
        path = [fs_package.Path(argument) for argument in arguments[:1]]
        try:
            with _plain_errors():
                fs = fs_package.FileSystem.get(self._java.java.net.URI(self.uri), conf)
                if method == FILL:
                    for number in range(int(arguments[1])):
                        fs.setXAttr(*path, f"user.{number}", b"x")
                    return Outcome("", "", 0)
                result = getattr(fs, method)(*path, *map(self._argument, arguments[1:]))
        except Py4JJavaError as error:
            # The server's stack trace, which HDFS sends along, is not for comparing.
            return Outcome("", str(error.java_exception.toString()).partition("\n\tat ")[0], 1)
        return Outcome("" if result is None else self._show(result), "", 0)

    def _argument(self, text: str) -> Any:
        """A text, or what its first word says that it is."""
        kind, _, rest = text.partition(":")
        if kind == "flags":
            flag = self._java.org.apache.hadoop.fs.XAttrSetFlag
            flags = self._java.java.util.EnumSet.noneOf(flag.CREATE.getDeclaringClass())
            for each in filter(None, rest.split(",")):
                flags.add(flag.valueOf(each))
            return flags
        if kind == "names":
            return rest.split(",")
        value = parse_bytes(text)
        return text if value is None else value

    def _show(self, result: Any) -> str:
        from py4j.java_collections import JavaArray, JavaList, JavaMap

        if isinstance(result, bytes):
            return result.hex()
        if isinstance(result, JavaMap):
            return "\n".join(f"{name}={bytes(result[name]).hex()}" for name in sorted(result))
        if isinstance(result, JavaList):
            return "\n".join(sorted(map(_text, result)))
        if not isinstance(result, JavaArray):
            return str(result.toString() if hasattr(result, "toString") else result)
        return "\n".join(
            f"{each.getFullPath()} {each.getSnapshotNumber()} of {each.getSnapshotQuota()}"
            if each.getClass().getSimpleName() == "SnapshottableDirectoryStatus"
            else _text(each)
            for each in result
        )

    def close(self) -> None:
        self._gateway.shutdown()
        self._gateway.java_process.stdin.close()
        self._gateway.java_process.wait()

    def _array(self, texts: list[str]) -> Any:
        array = self._gateway.new_array(self._java.String, len(texts))
        for index, text in enumerate(texts):
            array[index] = text
        return array

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """py4j's own errors: a Spark session in this process makes others of all JVMs' exceptions."""
    from py4j import java_gateway, protocol

    patched = java_gateway.get_return_value
    java_gateway.get_return_value = protocol.get_return_value
    try:
        yield
    finally:
        java_gateway.get_return_value = patched


def _launch_java(user: str, directory: Path) -> Any:
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    jars = Path(pyspark.__file__).parent / "jars"
    configuration = directory / "hadoop-conf"
    configuration.mkdir(exist_ok=True)
    (configuration / "core-site.xml").write_text("<configuration></configuration>\n")
    (configuration / "log4j2.properties").write_text("rootLogger.level = off\n")
    os.environ["HADOOP_USER_NAME"] = user
    try:
        port, process = launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=os.pathsep.join((str(configuration), f"{jars}/*")),
            javaopts=[
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                *(f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in OPENED),
            ],
            die_on_exit=True,
            return_proc=True,
        )
    finally:
        del os.environ["HADOOP_USER_NAME"]
    gateway = JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auto_convert=True),
        java_process=process,
    )
    gateway.jvm.Class.forName("org.apache.hadoop.fs.FsShell")
    return gateway
