"""`make fuzz`: a million inputs that no honest program sends.

    machines   damaged streams, cut anywhere, into the state machines of `wire/`
    rpc        every call of every protocol with random content, sound and damaged, over
               sockets to a NameNode
    transfer   block transfers of all kinds, sound and damaged, to a DataNode

An input fails if a machine raises, if a server process ends, if a call that arrived whole is
not answered, or if an honest client, who asks in between, has to wait.  In the end the
servers must not have grown by more than they may: memory, threads, descriptors.

The seed is printed; the same seed makes the same inputs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import struct
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from google.protobuf.message import Message
from tests.fuzz.messages import cut, damage, fill

from cairnfs.testing.cluster import Cluster, Node
from cairnfs.wire.framing import encode_delimited
from cairnfs.wire.proto import data_transfer_pb2
from cairnfs.wire.protocols import (
    CAIRN_PROTOCOL,
    CLIENT_DATANODE_PROTOCOL,
    CLIENT_PROTOCOL,
    DATANODE_PROTOCOL,
    GET_USER_MAPPINGS_PROTOCOL,
    HA_SERVICE_PROTOCOL,
    NAMENODE_PROTOCOL,
    Method,
    MethodTable,
    Protocol,
)
from cairnfs.wire.receive_buffer import ReceiveBuffer
from cairnfs.wire.rpc import Call, ServerConnection
from cairnfs.wire.rpc_client import ClientConnection, Closed
from cairnfs.wire.transfer import TransferError

PROTOCOLS = (
    CLIENT_PROTOCOL,
    CAIRN_PROTOCOL,
    DATANODE_PROTOCOL,
    NAMENODE_PROTOCOL,
    HA_SERVICE_PROTOCOL,
    GET_USER_MAPPINGS_PROTOCOL,
)
METHODS = tuple(method for protocol in PROTOCOLS for method in protocol.methods.values())
LACKING = 0.02  # so many of the fields that a message is required to have
CALLS_OF_A_STREAM = 20
ANSWER_LIMIT_S = 20.0
HONEST_LIMIT_S = 5.0
RSS_GROWTH_MAX = 150 << 20
DESCRIPTORS_GROWTH_MAX = 64
THREADS_GROWTH_MAX = 64
DATA_TRANSFER_VERSION = 28

# Calls that would end the test and not the server.
LEFT_OUT = {"setSafeMode"}


class Failure(Exception):
    """An input did harm."""


# Machines.


def fuzz_machines(random: Random, inputs: int) -> None:
    table = MethodTable(PROTOCOLS)
    for n in range(inputs):
        stream = damage(make_stream(random, 3)[0], random)
        if n % 2:
            _feed_server(ServerConnection(table), stream, random)
        else:
            _feed_client(stream, random)
            _feed_transfer(stream, random)
        show("machines", n + 1, inputs)


def _feed_server(server: ServerConnection, stream: bytes, random: Random) -> None:
    for piece in cut(stream, random):
        for event in server.receive_data(piece):
            if isinstance(event, Call):
                server.encode_reply(event, b"")


def _feed_client(stream: bytes, random: Random) -> None:
    client = ClientConnection(CLIENT_PROTOCOL, bytes(16), "mallory")
    for call_id in range(3):
        client.encode_call(call_id, METHODS[0], make_request(random, METHODS[0]))
    for piece in cut(stream, random):
        client.receive_data(piece)


def _feed_transfer(stream: bytes, random: Random) -> None:
    buffer = ReceiveBuffer()
    with suppress(TransferError):
        for piece in cut(transfer_stream(random) if random.random() < 0.7 else stream, random):
            for at in range(0, len(piece), 1024):
                part = piece[at : at + 1024]
                space = buffer.space()[: len(part)]
                space[:] = part[: len(space)]
                buffer.received(len(space))
                if random.random() < 0.3:
                    buffer.take_request()
                elif random.random() < 0.5:
                    buffer.take_ack()
                else:
                    buffer.take_packets()


# A NameNode over sockets.


async def fuzz_rpc(
    random: Random, inputs: int, port: int, *, protocols: tuple[Protocol, ...]
) -> None:
    done = 0
    while done < inputs:
        streams = [make_stream(random, CALLS_OF_A_STREAM, protocols) for _ in range(8)]
        jobs = []
        for data, client in streams:
            is_sound = random.random() < 0.5
            sent = data if is_sound else damage(data, random)
            jobs.append(_talk(port, sent, client, is_sound=is_sound))
        await asyncio.gather(*jobs)
        done += CALLS_OF_A_STREAM * len(streams)
        await _ask_honestly(port, protocols[0])
        show("rpc", done, inputs)


async def _talk(port: int, data: bytes, client: ClientConnection, *, is_sound: bool) -> None:
    """Send a stream, and read what comes; a sound one is answered in full."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        raise Failure(f"the server takes no connection: {error}") from None
    try:
        writer.write(data)
        if not is_sound:
            with suppress(OSError):
                writer.write_eof()
        async with asyncio.timeout(ANSWER_LIMIT_S):
            while client.unanswered or not is_sound:
                received = await reader.read(1 << 16)
                if not received:
                    break
                events = client.receive_data(received) if is_sound else ()
                closed = next((event for event in events if isinstance(event, Closed)), None)
                if closed is not None:
                    raise Failure(f"a sound stream was refused: {closed.error}")
    except TimeoutError:
        if is_sound:
            raise Failure(f"{client.unanswered} are not answered") from None
        raise Failure("a damaged stream keeps its connection open after its end") from None
    except OSError:
        if is_sound:
            raise Failure(f"reset while {client.unanswered} are not answered") from None
    finally:
        writer.close()
    if is_sound and client.unanswered:
        raise Failure(f"closed before {client.unanswered} are answered")


async def _ask_honestly(port: int, protocol: Protocol) -> None:
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = ClientConnection(protocol, bytes(range(16)), "honest")
    name = "getFileInfo" if protocol is CLIENT_PROTOCOL else "getDatanodeInfo"
    request: Any = protocol[name].request_type()
    if protocol is CLIENT_PROTOCOL:
        request.src = "/"
    writer.write(client.encode_opening() + client.encode_call(0, protocol[name], request))
    try:
        async with asyncio.timeout(HONEST_LIMIT_S):
            while client.unanswered:
                data = await reader.read(1 << 16)
                if not data:
                    raise Failure("an honest client was shown the door")
                client.receive_data(data)
    except TimeoutError:
        raise Failure(f"an honest client waits for {time.monotonic() - began:.1f} s") from None
    finally:
        writer.close()


# A DataNode over sockets.


def transfer_stream(random: Random) -> bytes:
    """An operation with random content, then packets or acks."""
    op, message = random.choice(_TRANSFERS)
    request = fill(message(), random, lacking=LACKING)
    with suppress(AttributeError):
        request.header.clientName = "mallory"
    stream = struct.pack(">hb", DATA_TRANSFER_VERSION, op)
    stream += encode_delimited(request.SerializePartialToString())
    for _ in range(random.choice((0, 1, 4))):
        data = random.randbytes(random.choice((0, 1, 511, 512, 4096)))
        sums = random.randbytes(4 * -(-len(data) // 512))
        header = data_transfer_pb2.PacketHeaderProto(
            offsetInBlock=random.choice((0, 512, 1 << 40)),
            seqno=random.choice((-1, 0, 1, 7)),
            lastPacketInBlock=random.random() < 0.3,
            dataLen=random.choice((len(data), len(data) + 1, 1 << 30)),
        ).SerializeToString()
        length = random.choice((4 + len(sums) + len(data), 4, 0, 1 << 30))
        stream += struct.pack(">ih", length, len(header)) + header + sums + data
    return stream


_TRANSFERS = (
    (80, data_transfer_pb2.OpWriteBlockProto),
    (81, data_transfer_pb2.OpReadBlockProto),
    (83, data_transfer_pb2.OpReplaceBlockProto),
    (84, data_transfer_pb2.OpCopyBlockProto),
    (85, data_transfer_pb2.OpBlockChecksumProto),
    (86, data_transfer_pb2.OpTransferBlockProto),
    (87, data_transfer_pb2.OpRequestShortCircuitAccessProto),
    (127, data_transfer_pb2.OpReadBlockProto),
)


async def fuzz_transfer(random: Random, inputs: int, port: int) -> None:
    done = 0
    while done < inputs:
        streams = [transfer_stream(random) for _ in range(16)]
        streams = [data if random.random() < 0.4 else damage(data, random) for data in streams]
        await asyncio.gather(*(_throw(port, data) for data in streams))
        done += len(streams)
        show("transfer", done, inputs)


async def _throw(port: int, data: bytes) -> None:
    try:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            writer.write_eof()
            while await reader.read(1 << 16):
                pass
            writer.close()
    except TimeoutError:
        raise Failure("a transfer keeps its connection open after the client's end") from None
    except OSError:
        pass


# Streams.


class Encoded:
    """A request that may lack what it is required to have."""

    def __init__(self, message: Message) -> None:
        self._data = message.SerializePartialToString()

    def SerializeToString(self) -> bytes:
        return self._data


def make_stream(
    random: Random, calls: int, protocols: tuple[Protocol, ...] = PROTOCOLS
) -> tuple[bytes, ClientConnection]:
    """What a client sends: the opening, then calls with random content."""
    user = random.choice(("mallory", "eve", "ada"))
    client = ClientConnection(protocols[0], random.randbytes(16), user)
    stream = client.encode_opening()
    methods = [method for protocol in protocols for method in protocol.methods.values()]
    for call_id in range(calls):
        method = random.choice(methods)
        if method.name not in LEFT_OUT:
            retry_count = random.choice((0, 0, 0, 1))
            stream += client.encode_call(call_id, method, make_request(random, method), retry_count)
    return stream, client


def make_request(random: Random, method: Method) -> Any:
    return Encoded(fill(method.request_type(), random, lacking=LACKING))


# Servers.


def sizes(node: Node) -> dict[str, int]:
    """What of a server must not grow."""
    root = Path(f"/proc/{node.pid}")
    status = dict(
        line.split(":", 1) for line in (root / "status").read_text().splitlines() if ":" in line
    )
    return {
        "rss_bytes": int(status["VmRSS"].split()[0]) * 1024,
        "threads": int(status["Threads"]),
        "descriptors": len(os.listdir(root / "fd")),
    }


def check_alive(node: Node) -> None:
    if not node.is_running:
        raise Failure(f"{node.name} has ended:\n{node.log_tail()}")


def check_growth(name: str, before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """How much a server has grown; raises if that is too much."""
    grown = {key: after[key] - before[key] for key in before}
    limits = {
        "rss_bytes": RSS_GROWTH_MAX,
        "threads": THREADS_GROWTH_MAX,
        "descriptors": DESCRIPTORS_GROWTH_MAX,
    }
    for key, limit in limits.items():
        if grown[key] > limit:
            raise Failure(f"{name} has grown: {key} by {grown[key]}, more than {limit}")
    return grown


_shown_s = 0.0


def show(what: str, done: int, inputs: int) -> None:
    """Where we are, once a second."""
    global _shown_s
    now_s = time.monotonic()
    if done >= inputs or now_s - _shown_s >= 1:
        _shown_s = now_s
        end = "\n" if done >= inputs else ""
        print(f"\rfuzz: {what} {min(done, inputs):,} of {inputs:,}", end=end, file=sys.stderr)


async def fuzz_servers(random: Random, inputs: int, directory: Path) -> dict[str, Any]:
    with Cluster(directory / "cluster", datanodes=1) as cluster:
        namenode, datanode = cluster.namenodes[0], cluster.datanodes[0]
        # The first inputs fill caches; what counts is growth after them.
        client, datanode_calls = PROTOCOLS, (CLIENT_DATANODE_PROTOCOL,)
        await fuzz_rpc(random, inputs // 10, namenode.port, protocols=client)
        await fuzz_transfer(random, inputs // 50, datanode.port)
        before = sizes(namenode), sizes(datanode)
        await fuzz_rpc(random, inputs - inputs // 10, namenode.port, protocols=client)
        await fuzz_rpc(random, inputs // 10, datanode.ipc_port, protocols=datanode_calls)
        await fuzz_transfer(random, inputs // 4, datanode.port)
        check_alive(namenode)
        check_alive(datanode)
        await asyncio.sleep(5)  # connections end
        return {
            "namenode": check_growth("the NameNode", before[0], sizes(namenode)),
            "datanode": check_growth("the DataNode", before[1], sizes(datanode)),
        }


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args()
    print(f"fuzz: seed {options.seed}", file=sys.stderr)
    random = Random(options.seed)
    began = time.monotonic()
    machines = options.inputs // 2
    servers = int((options.inputs - machines) / 1.37)
    try:
        fuzz_machines(random, machines)
        with tempfile.TemporaryDirectory(prefix="cairnfs-fuzz-") as directory:
            grown = asyncio.run(fuzz_servers(random, servers, Path(directory)))
    except Failure as failure:
        print(f"\nfuzz: seed {options.seed}: {failure}", file=sys.stderr)
        return 1
    seconds = round(time.monotonic() - began)
    print(json.dumps({"inputs": options.inputs, "seconds": seconds, "failures": 0, "grown": grown}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
