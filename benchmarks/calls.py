"""What a call costs a NameNode on SQLite, from the bytes of its request to those of its reply.

    python -m benchmarks.calls [--calls mkdirs,create] [--number 16000] [--against SRC]

There are connections without sockets, and on each of them one call at a time; in a turn each
calls once, so that groups form as they do with as many busy clients.  With `--against`, another
version of the product, the folder that has its package, works in turns with this one: the machine
may be as noisy as it likes, both meet the same noise.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, cast

from google.protobuf.message import Message

from cairnfs.config import FormatSettings, NameNodeSettings
from cairnfs.namenode import client_sockets
from cairnfs.namenode.__main__ import SERVICES
from cairnfs.namenode.embedded import NameNodeThread, make_namespace
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import sqlite_url
from cairnfs.namenode.server import RpcConnection, RpcServer
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL
from cairnfs.wire.rpc_client import ClientConnection, Reply

CALLS = ("mkdirs", "create", "complete", "stat", "list", "rename", "delete")
DIRECTORIES = 64
SEGMENT_TURNS = 128  # measured together: the store brings its tables up once in them
HOLDER = "benchmark"


class Segment(NamedTuple):
    """Some turns of one kind of call."""

    call: str
    cpu_us: float  # for each call
    turn_max_ms: float  # the longest of them, by the clock on the wall


def make_request(call: str, number: int) -> tuple[str, Message]:
    """The name and the request of one call; each kind works on what the ones before have made."""
    directory = f"/benchmark/calls/d{number % DIRECTORIES}"
    file, moved = f"{directory}/f{number}", f"{directory}/g{number}"
    if call == "mkdirs":
        made = pb.MkdirsRequestProto(src=f"{directory}/m{number}", createParent=True)
        made.masked.perm = 0o755
        return "mkdirs", made
    if call == "create":
        new = pb.CreateRequestProto(src=file, clientName=HOLDER, createFlag=1, createParent=True)
        new.masked.perm = 0o644
        new.replication, new.blockSize = 3, 128 << 20
        return "create", new
    if call == "complete":
        return "complete", pb.CompleteRequestProto(src=file, clientName=HOLDER)
    if call == "stat":
        return "getFileInfo", pb.GetFileInfoRequestProto(src=file)
    if call == "list":  # of what was made before: with all calls, 256 files and 256 directories
        return "getListing", pb.GetListingRequestProto(
            src=directory, startAfter=b"", needLocation=False
        )
    if call == "rename":
        return "rename", pb.RenameRequestProto(src=file, dst=moved)
    assert call == "delete", call
    return "delete", pb.DeleteRequestProto(src=moved, recursive=False)


class KeptReplies:
    """In place of a client's socket: what is written to it is kept."""

    address = "127.0.0.1"
    is_closing = False

    def __init__(self) -> None:
        self.data: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.data.append(data)


class Client:
    """A connection and both its ends."""

    def __init__(self, server: RpcServer, id: int) -> None:
        self._end = ClientConnection(
            CLIENT_PROTOCOL, client_id=bytes([id]) * 16, user=server.namenode.superuser
        )
        self._replies = KeptReplies()
        self._connection = RpcConnection(server, cast(client_sockets.Client, self._replies))
        self._call_ids = itertools.count()
        self.send(self._end.encode_opening())

    def encode(self, call: str, number: int) -> bytes:
        name, request = make_request(call, number)
        return self._end.encode_call(next(self._call_ids), CLIENT_PROTOCOL[name], request)

    def send(self, data: bytes) -> None:
        self._connection.receive(data)

    @property
    def is_answered(self) -> bool:
        return bool(self._replies.data)

    def check_reply(self) -> None:
        (event,) = self._end.receive_data(b"".join(self._replies.data))
        assert isinstance(event, Reply), event
        self._replies.data.clear()


async def measure(
    namenode: NameNode, calls: list[str], number: int, connections: int, ask: bool
) -> list[Segment]:
    """Make the calls; with `ask`, wait for a line of input before each segment."""
    server = RpcServer(namenode, SERVICES)
    clients = [Client(server, id) for id in range(connections)]
    segments = []
    for call in calls:
        turns = [
            [(client, client.encode(call, first + n)) for n, client in enumerate(clients)]
            for first in range(0, number, connections)
        ]
        while len(turns) >= SEGMENT_TURNS:
            if ask:
                sys.stdin.readline()
            segment = await measure_segment(call, turns[:SEGMENT_TURNS])
            del turns[:SEGMENT_TURNS]
            segments.append(segment)
            if ask:
                print(*segment, flush=True)
    return segments


async def measure_segment(call: str, turns: list[list[tuple[Client, bytes]]]) -> Segment:
    cpu_s = longest_s = 0.0
    for turn in turns:
        began_s, cpu_began_s = time.perf_counter(), time.process_time()
        for client, data in turn:
            client.send(data)
        while not all(client.is_answered for client, _ in turn):
            await asyncio.sleep(0)
        cpu_s += time.process_time() - cpu_began_s
        longest_s = max(longest_s, time.perf_counter() - began_s)
        for client, _ in turn:
            client.check_reply()
    return Segment(call, cpu_s / sum(map(len, turns)) * 1e6, longest_s * 1e3)


def run_here(arguments: argparse.Namespace, *, ask: bool = False) -> list[Segment]:
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        url = sqlite_url(Path(directory) / "namespace")
        make_namespace(url, FormatSettings())
        thread = NameNodeThread(NameNodeSettings(url))
        try:
            work = measure(
                thread.namenode, arguments.calls, arguments.number, arguments.connections, ask
            )
            return thread.wait(work)
        finally:
            thread.stop()


def run_in_turns(arguments: argparse.Namespace) -> tuple[list[Segment], list[Segment]]:
    """This version and the other one, a segment each."""
    ours = str(Path(__file__).parents[1] / "src")
    both = [_start_worker(source) for source in (ours, str(arguments.against))]
    found: tuple[list[Segment], list[Segment]] = [], []
    try:
        for call in arguments.calls:
            for n in range(arguments.number // arguments.connections // SEGMENT_TURNS):
                for which in (0, 1) if n % 2 else (1, 0):
                    found[which].append(_next_segment(both[which], call))
    finally:
        for worker in both:
            worker.communicate()
    return found


def _start_worker(source: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([source, str(Path(__file__).parents[1])])
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.calls", *sys.argv[1:], "--worker"],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _next_segment(worker: subprocess.Popen[str], call: str) -> Segment:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    name, cpu_us, turn_max_ms = worker.stdout.readline().split()
    assert name == call, name
    return Segment(name, float(cpu_us), float(turn_max_ms))


def describe(calls: list[str], ours: list[Segment], others: list[Segment]) -> Iterator[str]:
    yield "CPU us for each call: median and best of the segments; the longest turn in ms"
    for call in calls:
        these = [segment for segment in ours if segment.call == call]
        line = f"{call:9}{_describe(these)}"
        if others:
            those = [segment for segment in others if segment.call == call]
            ratios = [new.cpu_us / old.cpu_us for new, old in zip(these, those, strict=True)]
            line += f"   the other: {_describe(those)}   ratio {statistics.median(ratios):.2f}"
        yield line


def _describe(segments: list[Segment]) -> str:
    costs = [segment.cpu_us for segment in segments]
    longest_ms = max(segment.turn_max_ms for segment in segments)
    return f"{statistics.median(costs):7.1f}{min(costs):7.1f}{longest_ms:7.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=lambda text: text.split(","), default=list(CALLS))
    parser.add_argument("--number", type=int, default=16_384, help="of calls of each kind")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--directory", type=Path, help="where the namespace is made")
    parser.add_argument("--against", type=Path, metavar="SRC", help="sources of another version")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        run_here(arguments, ask=True)
        return
    ours, others = run_in_turns(arguments) if arguments.against else (run_here(arguments), [])
    print(*describe(arguments.calls, ours, others), sep="\n")


if __name__ == "__main__":
    main()
