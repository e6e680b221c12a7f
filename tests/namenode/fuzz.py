"""Calls with random contents: well-formed messages that no sane client would send.

    python -m tests.namenode.fuzz [CALLS] [SEED]

Each is answered, with a response or an error that has a name; "see the log" means that an
operation met what it was not made for.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from tests.namenode.rpc import FixedGroups, RunningServer, running_server

from cairnfs.errors import HdfsError
from cairnfs.namenode.__main__ import SERVICES
from cairnfs.testing.scratch import SUPERUSER, scratch_namespace
from cairnfs.wire.proto import (
    administration_pb2,
    cairn_pb2,
    client_namenode_pb2,
    datanode_pb2,
    ha_service_pb2,
    namenode_pb2,
)
from cairnfs.wire.protocols import Protocol

MODULES = (
    administration_pb2,
    cairn_pb2,
    client_namenode_pb2,
    datanode_pb2,
    ha_service_pb2,
    namenode_pb2,
)
CALLS_IN_FLIGHT = 32
LEFT_OUT = {"setSafeMode"}  # or most calls were refused for that alone
OFTEN = {
    "mkdirs", "create", "addBlock", "complete", "abandonBlock", "rename", "rename2", "delete",
    "concat", "createSymlink", "setAcl", "modifyAclEntries", "setQuota", "setReplication",
    "getListing", "getBatchedListing", "getBlockLocations", "fsync", "updatePipeline",
    "updateBlockForPipeline", "getAdditionalDatanode", "allowSnapshot", "createSnapshot",
    "createSnapshots", "renameSnapshot", "deleteSnapshot",
}  # fmt: skip
DEPTH_MAX = 4

PATHS = (
    "/", "/d", "/d/f", "/d/g", "/d/sub", "/d/f/below", "/missing", "//d//f", "/d/", "", "relative",
    "/..", "/d/../f", "/d/./f", "/.reserved", "/.reserved/raw/d", "/.reserved/.inodes/16385",
    "/.reserved/.inodes/16387/x", "/.reserved/.inodes/-1", "/d/.snapshot/s", "/a:b", "/d/\0",
    "/d/ü", "/" + "n" * 300, "/x" * 1100, "/link", "/link/below", "hdfs://host/d",
)  # fmt: skip
WORDS = ("", "hdfs", "alice", "staff", "supergroup", "test", "\0", "ü", "x" * 2000, "HOT", "user.a")
NUMBERS = (0, 1, 2, 3, 511, 512, 1001, 16385, 16386, 16387, 1 << 20, 128 << 20, 2**31 - 1, 2**31,
           2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 1073741825)  # fmt: skip

_INTEGERS = {
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_SINT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SINT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_FIXED64: (0, 2**64 - 1),
}


def every_call() -> Iterator[tuple[Protocol, str, type[Message]]]:
    """The calls of all protocols that are served, with the classes of their requests."""
    requests = {
        frozenset(method.name for method in service.methods): {
            method.name: GetMessageClass(method.input_type) for method in service.methods
        }
        for module in MODULES
        for service in module.DESCRIPTOR.services_by_name.values()
    }
    for service in SERVICES:
        protocol = service.protocol
        for name, request_class in requests[frozenset(protocol.methods)].items():
            yield protocol, name, request_class


def fill(message: Message, chance: random.Random, depth: int = 0) -> None:
    """Give each required field a value, and each other one sometimes."""
    descriptor: Descriptor = message.DESCRIPTOR
    for field in descriptor.fields:
        if field.is_repeated:
            values = getattr(message, field.name)
            for _ in range(chance.choice((0, 0, 1, 1, 2, 5)) if depth < DEPTH_MAX else 0):
                if field.message_type is not None:
                    if not field.message_type.GetOptions().map_entry:
                        fill(values.add(), chance, depth + 1)
                else:
                    values.append(_value(field, chance))
        elif field.is_required or chance.random() < 0.6:
            if field.message_type is not None:
                nested = getattr(message, field.name)
                nested.SetInParent()
                fill(nested, chance, depth + 1)
            else:
                setattr(message, field.name, _value(field, chance))


def _value(field: FieldDescriptor, chance: random.Random) -> Any:
    if field.enum_type is not None:
        return chance.choice(field.enum_type.values).number
    if field.type == FieldDescriptor.TYPE_STRING:
        if chance.random() < 0.3:
            return chance.choice(WORDS)
        return chance.choice(PATHS[:5] if chance.random() < 0.7 else PATHS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.choice((b"", b"f", b"\xff\xfe", b"/d/f", chance.randbytes(20)))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return chance.random() < 0.5
    if field.type in _INTEGERS:
        low, high = _INTEGERS[field.type]
        number = chance.choice(NUMBERS) * chance.choice((1, 1, -1))
        return min(max(number, low), high)
    return 0.5


def fuzz(server: RunningServer, calls: int, seed: int) -> Counter[str]:
    """Send so many random calls; how often each outcome came, by its Java class."""
    chance = random.Random(seed)
    offered = [call for call in every_call() if call[1] not in LEFT_OUT]
    offered += 5 * [call for call in offered if call[1] in OFTEN]
    outcomes: Counter[str] = Counter()
    clients = [server.connect(user) for user in (SUPERUSER, "alice")]
    try:
        for _ in range(0, calls, CALLS_IN_FLIGHT):
            client = chance.choice(clients)
            sent = []
            for _ in range(CALLS_IN_FLIGHT):
                protocol, name, request_class = chance.choice(offered)
                request = request_class()
                fill(request, chance)
                retry_count = chance.choice((0, 0, 0, 1))
                sent.append(
                    (client.send(name, request, protocol, retry_count=retry_count), name, request)
                )
            for call_id, name, request in sent:
                try:
                    client.wait(call_id)
                    outcomes["answered"] += 1
                except HdfsError as error:
                    outcomes[error.java_class] += 1
                    if "see the log" in str(error):
                        raise AssertionError(f"seed {seed}: {name}\n{request}") from error
    finally:
        for client in clients:
            client.close()
    return outcomes


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"{calls} calls, seed {seed}")
    with (
        tempfile.TemporaryDirectory() as directory,
        scratch_namespace(Path(directory)) as scratch,
        running_server(scratch, FixedGroups(alice=("staff",))) as server,
    ):
        for outcome, count in fuzz(server, calls, seed).most_common():
            print(f"{count:8} {outcome}")


if __name__ == "__main__":
    main()
