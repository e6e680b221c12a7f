"""Random calls are answered, whatever is in them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tests.namenode.fuzz import fuzz, fuzz_with_bytes_for_text
from tests.namenode.rpc import FixedGroups, RpcClient, running_server

from cairnfs.errors import HdfsError
from cairnfs.testing.scratch import scratch_namespace
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CAIRN_PROTOCOL


def remove_everything(client: RpcClient) -> None:
    """What snapshots and roll-backs hold is not left over, but would look so."""
    with suppress(HdfsError):  # there may be none
        client.call(
            "finalizeRootSnapshot", cairn_pb2.FinalizeRootSnapshotRequestProto(), CAIRN_PROTOCOL
        )
    request = pb.GetSnapshottableDirListingRequestProto()
    listing = client.call("getSnapshottableDirListing", request).snapshottableDirList
    for each in listing.snapshottableDirListing:
        parent, name = each.parent_fullpath.decode(), each.dirStatus.path.decode()
        path = f"{parent.rstrip('/')}/{name}"
        snapshots = client.call(
            "getSnapshotListing", pb.GetSnapshotListingRequestProto(snapshotRoot=path)
        )
        for snapshot in snapshots.snapshotList.snapshotListing:
            client.call(
                "deleteSnapshot",
                pb.DeleteSnapshotRequestProto(
                    snapshotRoot=path, snapshotName=snapshot.dirStatus.path.decode()
                ),
            )
    root = pb.GetListingRequestProto(src="/", startAfter=b"", needLocation=False)
    for entry in client.call("getListing", root).dirList.partialListing:
        delete = pb.DeleteRequestProto(src=f"/{entry.path.decode()}", recursive=True)
        client.call("delete", delete)


def test_random_calls_are_answered_with_names(tmp_path: Path) -> None:
    with (
        scratch_namespace(tmp_path) as scratch,
        running_server(scratch, FixedGroups(alice=("staff",))) as server,
    ):
        outcomes = fuzz(server, 3000, seed=1)
        with server.connect() as client:
            remove_everything(client)
    assert outcomes["answered"] > 100


def test_what_is_not_text_is_answered_too(tmp_path: Path) -> None:
    with scratch_namespace(tmp_path) as scratch, running_server(scratch) as server:
        scratch.mkdirs("/d")
        scratch.create("/d/f")
        outcomes = fuzz_with_bytes_for_text(server, seed=1)
        with server.connect() as client:
            remove_everything(client)
    assert outcomes["answered"] > 100
