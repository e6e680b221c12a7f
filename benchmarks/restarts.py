"""How soon a NameNode is back after it was killed, and how much memory it takes then.

Both servers have the same empty files.  HDFS is killed twice as often: with a log that it has to
replay, and with an image of its namespace that was just written.
"""

from __future__ import annotations

import getpass
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cairnfs
from benchmarks.servers import RealHdfs, Server, load, show
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

KILLED = "killed"
FROM_IMAGE = "image just written"


def measure_restarts(
    hdfs: RealHdfs, servers: tuple[Server, ...], files: int, round_: int
) -> list[dict[str, Any]]:
    rows = []
    for server in servers:
        if round_ == 0:
            show(f"{server.name}: making {files:,} files")
            sizes = (str(files), str(FILES_IN_DIRECTORY), str(FILLING_THREADS))
            load(hdfs, "FillBench", server.url, TOP, *sizes)
        show(f"round {round_ + 1}: {server.name}, killed with {files:,} files")
        rows.append(_restart(server, files, KILLED, round_))
        if server is hdfs:
            hdfs.save_namespace()
            show(f"round {round_ + 1}: {server.name}, killed with an image of {files:,} files")
            rows.append(_restart(server, files, FROM_IMAGE, round_))
    return rows


def restarts_table(rows: list[dict[str, Any]]) -> str:
    """How soon each is back, and what it weighs."""
    columns = ("first_answer_s", "first_change_s", "resident_mb", "resident_listed_mb")
    head = ("NameNode", "files", *(name.replace("_", " ") for name in columns))
    lines = []
    for name, how in dict.fromkeys((row["server"], row["how"]) for row in rows):
        mine = [row for row in rows if (row["server"], row["how"]) == (name, how)]
        medians = [statistics.median(row[column] for row in mine) for column in columns]
        lines.append((f"{name}, {how}", mine[0]["files"], *medians))
    return table(head, lines)


def _restart(server: Server, files: int, how: str, round_: int) -> dict[str, Any]:
    last_directory, last_file = divmod(files - 1, FILES_IN_DIRECTORY)
    looked_at = pb.GetFileInfoRequestProto(src=f"{TOP}/d{last_directory}/f{last_file}")
    made = pb.MkdirsRequestProto(src=f"{TOP}/{server.name}-{how}-{round_}", createParent=True)
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
        "round": round_,
        "files": files,
        "first_answer_s": answered_s,
        "first_change_s": changed_s,
        "resident_mb": resident_mb,
        "resident_listed_mb": _resident_mb(server),
    }


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
    pid = server.pids().split(",")[0]
    for line in Path("/proc", pid, "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} of {server.name} has ended")
