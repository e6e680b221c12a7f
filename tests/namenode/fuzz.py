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
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from tests.fuzz.messages import GARBLED, fill
from tests.namenode.rpc import FixedGroups, RpcClient, RunningServer, running_server

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
GARBLED_ROUNDS = 8  # of every call
LEFT_OUT = {"setSafeMode"}  # or most calls were refused for that alone
OFTEN = {
    "mkdirs", "create", "addBlock", "complete", "abandonBlock", "rename", "rename2", "delete",
    "concat", "createSymlink", "setAcl", "modifyAclEntries", "setQuota", "setReplication",
    "getListing", "getBatchedListing", "getBlockLocations", "fsync", "updatePipeline",
    "updateBlockForPipeline", "getAdditionalDatanode", "allowSnapshot", "createSnapshot",
    "createSnapshots", "renameSnapshot", "deleteSnapshot",
}  # fmt: skip


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


def fuzz(server: RunningServer, calls: int, seed: int) -> Counter[str]:
    """Send so many random calls; how often each outcome came, by its Java class."""
    chance = random.Random(seed)
    offered = [call for call in every_call() if call[1] not in LEFT_OUT]
    offered += 5 * [call for call in offered if call[1] in OFTEN]
    outcomes: Counter[str] = Counter()
    with server.connect(SUPERUSER) as superuser, server.connect("alice") as alice:
        for _ in range(0, calls, CALLS_IN_FLIGHT):
            client = chance.choice((superuser, alice))
            requests = [
                (protocol, name, fill(request_class(), chance))
                for protocol, name, request_class in chance.choices(offered, k=CALLS_IN_FLIGHT)
            ]
            outcomes += send_all(client, requests, chance)
    return outcomes


def fuzz_with_bytes_for_text(server: RunningServer, seed: int) -> Counter[str]:
    """Every call, with what is not UTF-8 wherever it should be."""
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    with server.connect(SUPERUSER) as client:
        for _ in range(GARBLED_ROUNDS):
            requests = [
                (protocol, name, fill(request_class(), chance, texts=(GARBLED, "/d/f")))
                for protocol, name, request_class in every_call()
                if name not in LEFT_OUT
            ]
            outcomes += send_all(client, requests, chance)
    return outcomes


def send_all(
    client: RpcClient, requests: Sequence[tuple[Protocol, str, Message]], chance: random.Random
) -> Counter[str]:
    """All at once; how often each outcome came.  Each has to be one that is meant to be."""
    outcomes: Counter[str] = Counter()
    retry_counts = chance.choices((0, 0, 0, 1), k=len(requests))
    sent = [
        (client.send(name, request, protocol, retry_count=retry_count), name, request)
        for retry_count, (protocol, name, request) in zip(retry_counts, requests, strict=True)
    ]
    for call_id, name, request in sent:
        try:
            client.wait(call_id)
            outcomes["answered"] += 1
        except HdfsError as error:
            outcomes[error.java_class] += 1
            if "see the log" in str(error):
                raise AssertionError(f"{name}\n{request}") from error
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
