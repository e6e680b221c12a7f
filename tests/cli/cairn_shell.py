"""`cairn fs` run in this process: for tables of commands, where a process each would take long."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from tests.compatibility.shell import Outcome

from cairnfs.cli.main import main

MISUSED = 255


def run_cairn(uri: str, user: str, arguments: list[str], stdin: bytes = b"") -> Outcome:
    """What `cairn fs ARGUMENTS` prints, and its exit code as Java counts: -1, not 255."""
    environment = {"CAIRN_FS": uri, "HADOOP_USER_NAME": user}
    with mock.patch.dict(os.environ, environment), _captured() as (out, err):
        code = main(["fs", *arguments])
    return Outcome(_text(out), _text(err), -1 if code == MISUSED else code)


@contextmanager
def _captured() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    streams = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with mock.patch.object(sys, "stdout", streams[0]), mock.patch.object(sys, "stderr", streams[1]):
        yield streams


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode(errors="surrogateescape")
