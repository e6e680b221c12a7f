"""How soon a NameNode is back after it was killed, and how much memory it takes then.

Both servers have the same empty files, and are killed twice: right after the last create, when
HDFS has all of them in its log and CairnFS the last of them in its journal; and at their best, when
HDFS has just written an image of its namespace and all that CairnFS has is in its tables.
"""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cairnfs
from benchmarks.servers import CAIRNFS, Cairn, RealHdfs, Server, load, show
from benchmarks.tables import table
from cairnfs.datanode.calls import RpcCaller
from cairnfs.errors import HdfsError
from cairnfs.network.address import Address
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL

TOP = "/bench-restarts"
FILES_IN_DIRECTORY = 1000
FILLING_THREADS = 32
POLL_INTERVAL_S = 0.01
LIMIT_S = 300.0

AFTER_CREATE = "killed after the last create"
AT_REST = "killed at rest"
FROM_IMAGE = "killed with a new image"

# Of CairnFS, with so many files: at most.
BAR_FILES = 1_000_000
BARS = {"first_answer_s": 3.0, "resident_listed_mb": 500.0}


def measure_restarts(hdfs: RealHdfs, cairn: Cairn, files: int) -> list[dict[str, Any]]:
    """Of clusters that are empty."""
    rows = []
    for server in (hdfs, cairn):
        show(f"{server.name}: making {files:,} files")
        sizes = (str(files), str(FILES_IN_DIRECTORY), str(FILLING_THREADS))
        load(hdfs, "FillBench", server.url, TOP, *sizes, server.namenode_pid())
        rows.append(restart(server, files, AFTER_CREATE))
    hdfs.save_namespace()
    rows.append(restart(hdfs, files, FROM_IMAGE))
    rows.append(restart(cairn, files, AT_REST))  # nobody has called it meanwhile
    return rows


def restart(server: Server, files: int, how: str) -> dict[str, Any]:
    """Kill the NameNode, unless somebody has, and start it; all its files have to be there."""
    show(f"{server.name}, {how}, {files:,} files")
    last_directory, last_file = divmod(files - 1, FILES_IN_DIRECTORY)
    looked_at = pb.GetFileInfoRequestProto(src=f"{TOP}/d{last_directory}/f{last_file}")
    made = pb.MkdirsRequestProto(src=f"{TOP}/{how}", createParent=True)
    made.masked.perm = 0o755
    server.kill_namenode()
    began_s = time.monotonic()
    server.start_namenode()
    with _caller(server) as caller:
        _wait(lambda: caller.call("getFileInfo", looked_at))
        answered_s = time.monotonic() - began_s
        resident_mb = _resident_mb(server)
        _wait(lambda: caller.call("mkdirs", made))
        changed_s = time.monotonic() - began_s
    with cairnfs.connect(server.url) as fs:
        directories = range(last_directory + 1)
        found = sum(len(fs.list_status(f"{TOP}/d{number}")) for number in directories)
    assert found == files, f"{server.name} has {found} of {files} files"
    return {
        "server": server.name,
        "how": how,
        "files": files,
        "first_answer_s": answered_s,
        "first_change_s": changed_s,
        "resident_mb": resident_mb,
        "resident_listed_mb": _resident_mb(server),
        "bars": BARS if server.name == CAIRNFS and files == BAR_FILES else {},
    }


def restarts_table(rows: list[dict[str, Any]]) -> str:
    """How soon each is back, and what it weighs."""
    columns = ("files", "first_answer_s", "first_change_s", "resident_mb", "resident_listed_mb")
    head = ("NameNode", *map(_words, columns), f"bars of {BAR_FILES:,} files")
    lines = [
        (f"{row['server']}, {row['how']}", *(row[column] for column in columns), _verdicts(row))
        for row in rows
    ]
    return table(head, lines)


def _verdicts(row: dict[str, Any]) -> str | None:
    """What is reached, and what is not; None where no bar applies."""
    verdicts = [
        f"{_words(name)} {'<=' if row[name] <= bar else 'ABOVE'} {bar:g}"
        for name, bar in row["bars"].items()
    ]
    return ", ".join(verdicts) or None


def _words(name: str) -> str:
    return name.replace("_", " ").replace(" mb", " MB")


@contextmanager
def _caller(server: Server) -> Iterator[RpcCaller]:
    host, port = server.url.removeprefix("hdfs://").split(":")
    caller = RpcCaller(Address(host, int(port)), CLIENT_PROTOCOL, getpass.getuser(), LIMIT_S)
    try:
        yield caller
    finally:
        caller.close()


def _wait(call: Callable[[], object]) -> None:
    """Until it is answered: one that starts does not listen yet, or refuses."""
    deadline_s = time.monotonic() + LIMIT_S
    while True:
        try:
            call()
            return
        except HdfsError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(POLL_INTERVAL_S)


def _resident_mb(server: Server) -> float:
    pid = server.namenode_pid()
    for line in Path("/proc", pid, "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"process {pid} of {server.name} has ended")
