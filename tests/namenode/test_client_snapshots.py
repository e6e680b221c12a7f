"""The calls about snapshots over a socket: messages as HDFS's, on both protocols."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.namenode.rpc import FixedGroups, RpcClient, RunningServer, running_server
from tests.namenode.test_client_protocol import info, listing, mkdirs, write

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HdfsError,
    IllegalArgumentException,
    IOException,
    SafeModeException,
    SnapshotException,
)
from cairnfs.testing.scratch import scratch_namespace
from cairnfs.wire.proto import cairn_pb2, hdfs_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CAIRN_PROTOCOL


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with (
        scratch_namespace(tmp_path) as scratch,
        running_server(scratch, FixedGroups(alice=("staff",))) as running,
    ):
        yield running


@pytest.fixture
def client(server: RunningServer) -> Iterator[RpcClient]:
    with server.connect() as connected:
        mkdirs(connected, "/d/sub")
        allow(connected, "/d")
        yield connected
        # What snapshots, clones and what was rolled back hold is not left over, but would look so.
        connected.call("setSafeMode", pb.SetSafeModeRequestProto(action=pb.SAFEMODE_LEAVE))
        for directory in snapshottable(connected):
            path = f"{directory.parent_fullpath.decode()}/{directory.dirStatus.path.decode()}"
            for snapshot in snapshots(connected, path):
                delete(connected, path, snapshot.dirStatus.path.decode())
        for name in names(connected, "/"):
            path = f"/{name.decode()}"
            connected.call("delete", pb.DeleteRequestProto(src=path, recursive=True))


def allow(client: RpcClient, path: str) -> None:
    client.call("allowSnapshot", pb.AllowSnapshotRequestProto(snapshotRoot=path))


def take(client: RpcClient, path: str, name: str | None = None) -> str:
    request = pb.CreateSnapshotRequestProto(snapshotRoot=path, snapshotName=name)
    response: pb.CreateSnapshotResponseProto = client.call("createSnapshot", request)
    return response.snapshotPath


def delete(client: RpcClient, path: str, name: str) -> None:
    request = pb.DeleteSnapshotRequestProto(snapshotRoot=path, snapshotName=name)
    client.call("deleteSnapshot", request)


def rename(client: RpcClient, path: str, old: str, new: str) -> None:
    client.call(
        "renameSnapshot",
        pb.RenameSnapshotRequestProto(snapshotRoot=path, snapshotOldName=old, snapshotNewName=new),
    )


def snapshottable(client: RpcClient) -> list[hdfs_pb2.SnapshottableDirectoryStatusProto]:
    response = client.call(
        "getSnapshottableDirListing", pb.GetSnapshottableDirListingRequestProto()
    )
    return list(response.snapshottableDirList.snapshottableDirListing)


def snapshots(client: RpcClient, path: str) -> list[hdfs_pb2.SnapshotStatusProto]:
    request = pb.GetSnapshotListingRequestProto(snapshotRoot=path)
    response = client.call("getSnapshotListing", request)
    assert response.HasField("snapshotList")
    return list(response.snapshotList.snapshotListing)


def test_lists_say_what_hadoops_client_makes_paths_of(client: RpcClient) -> None:
    mkdirs(client, "/d/sub/nested")
    for path in ("/d/sub/nested", "/"):
        allow(client, path)
    take(client, "/d/sub/nested", "s1")
    take(client, "/", "s1")
    take(client, "/", "s2")
    found = snapshottable(client)
    assert [(each.parent_fullpath, each.dirStatus.path) for each in found] == [
        (b"", b""),
        (b"/", b"d"),
        (b"/d/sub", b"nested"),
    ]
    assert [each.snapshot_number for each in found] == [2, 0, 1]
    assert {each.snapshot_quota for each in found} == {65_536}
    assert {each.dirStatus.fileType for each in found} == {hdfs_pb2.HdfsFileStatusProto.IS_DIR}
    listed = snapshots(client, "/")
    assert [(each.parent_fullpath, each.dirStatus.path) for each in listed] == [
        (b"/", b"s1"),
        (b"/", b"s2"),
    ]
    assert listed[0].snapshotID < listed[1].snapshotID
    assert not any(each.isDeleted for each in listed)
    assert [each.parent_fullpath for each in snapshots(client, "/d/sub/nested")] == [
        b"/d/sub/nested"
    ]
    assert snapshots(client, "/d") == []
    with pytest.raises(SnapshotException, match="not a snapshottable directory: /d/sub"):
        snapshots(client, "/d/sub")
    with pytest.raises(FileNotFoundException):
        snapshots(client, "/missing")


def test_only_directories_of_the_caller_are_listed(
    server: RunningServer, client: RpcClient
) -> None:
    mkdirs(client, "/of-alice")
    client.call("setOwner", pb.SetOwnerRequestProto(src="/of-alice", username="alice"))
    with server.connect("alice") as alice:
        assert snapshottable(alice) == []
        allow(client, "/of-alice")
        assert [each.dirStatus.path for each in snapshottable(alice)] == [b"of-alice"]
        assert take(alice, "/of-alice", "mine") == "/of-alice/.snapshot/mine"
        with pytest.raises(AccessControlException, match="alice is not the owner of inode=/d"):
            take(alice, "/d", "other")
        with pytest.raises(AccessControlException, match="Superuser privilege is required"):
            allow(alice, "/of-alice")


def test_a_snapshot_is_read_where_it_was_told(client: RpcClient) -> None:
    write(client, "/d/file")
    path = take(client, "/d")
    client.call("delete", pb.DeleteRequestProto(src="/d/file", recursive=False))
    assert [each.path for each in listing(client, path).dirList.partialListing] == [b"file", b"sub"]
    found = info(client, f"{path}/file")
    assert found is not None
    assert found.fileType == hdfs_pb2.HdfsFileStatusProto.IS_FILE
    assert info(client, "/d/file") is None
    rename(client, "/d", path.rpartition("/")[2], "named")
    assert info(client, f"{path}/file") is None
    assert info(client, "/d/.snapshot/named/file") is not None
    delete(client, "/d", "named")
    assert info(client, "/d/.snapshot/named/file") is None


def test_a_directory_says_that_it_may_have_snapshots(client: RpcClient) -> None:
    flag = hdfs_pb2.HdfsFileStatusProto.SNAPSHOT_ENABLED
    found, other = info(client, "/d"), info(client, "/d/sub")
    assert found is not None
    assert other is not None
    assert found.flags & flag
    assert not other.flags & flag
    [listed] = [each for each in listing(client, "/").dirList.partialListing if each.path == b"d"]
    assert listed.flags & flag


@pytest.mark.parametrize("name", ["a/b", ".", "..", ".snapshot", ".reserved", "a:b", "x" * 256])
def test_names_that_will_not_do(client: RpcClient, name: str) -> None:
    take(client, "/d", "s1")
    with pytest.raises(HdfsError):
        take(client, "/d", name)
    with pytest.raises(HdfsError):
        rename(client, "/d", "s1", name)
    assert [each.dirStatus.path for each in snapshots(client, "/d")] == [b"s1"]


def test_no_name_is_no_snapshot(client: RpcClient) -> None:
    take(client, "/d", "s1")
    with pytest.raises(IOException, match=r"The snapshot name is null or empty.*/d"):
        delete(client, "/d", "")
    with pytest.raises(IOException, match=r"The new snapshot name is null or empty.*s1 of /d"):
        rename(client, "/d", "s1", "")
    assert take(client, "/d", "").startswith("/d/.snapshot/s2")  # the time


def test_a_repeated_call_is_answered_as_before(client: RpcClient) -> None:
    request = pb.CreateSnapshotRequestProto(snapshotRoot="/d", snapshotName="s1")
    first = client.wait(client.send("createSnapshot", request, call_id=100))
    again = client.wait(client.send("createSnapshot", request, call_id=100, retry_count=1))
    assert first == again
    removal = pb.DeleteSnapshotRequestProto(snapshotRoot="/d", snapshotName="s1")
    for retry_count in (0, 1):
        client.wait(client.send("deleteSnapshot", removal, call_id=101, retry_count=retry_count))


def test_in_safe_mode_none_is_taken(client: RpcClient) -> None:
    client.call("setSafeMode", pb.SetSafeModeRequestProto(action=pb.SAFEMODE_ENTER))
    with pytest.raises(SafeModeException, match=r"Cannot create snapshot for /d\. Name node"):
        take(client, "/d", "s1")
    assert snapshots(client, "/d") == []


# Our own protocol


def take_together(client: RpcClient, paths: list[str], name: str | None = None) -> list[str]:
    request = cairn_pb2.CreateSnapshotsRequestProto(snapshotRoots=paths, snapshotName=name)
    return list(client.call("createSnapshots", request, CAIRN_PROTOCOL).snapshotPaths)


def test_several_directories_are_of_one_moment(client: RpcClient) -> None:
    mkdirs(client, "/e")
    allow(client, "/e")
    taken = take_together(client, ["/e", "/d"], "both")
    assert taken == ["/e/.snapshot/both", "/d/.snapshot/both"]
    [one], [other] = snapshots(client, "/d"), snapshots(client, "/e")
    assert one.snapshotID == other.snapshotID


def test_all_of_several_or_none(client: RpcClient) -> None:
    mkdirs(client, "/not-allowed")
    for wrong in ("/not-allowed", "/missing"):
        with pytest.raises(HdfsError):
            take_together(client, ["/d", wrong], "both")
    with pytest.raises(IllegalArgumentException, match="takes 1 to 1000 directories, not 0"):
        take_together(client, [])
    assert snapshots(client, "/d") == []


def roll_back(client: RpcClient, path: str, name: str, **sending: int) -> str:
    request = cairn_pb2.RollbackSnapshotRequestProto(path=path, snapshotName=name)
    sent = client.send("rollbackSnapshot", request, CAIRN_PROTOCOL, **sending)
    answer: cairn_pb2.RollbackSnapshotResponseProto = client.wait(sent)
    return answer.safetySnapshot


def names(client: RpcClient, path: str) -> list[bytes]:
    return [each.path for each in listing(client, path).dirList.partialListing]


def test_a_roll_back_can_be_undone(client: RpcClient) -> None:
    take(client, "/d", "s1")
    mkdirs(client, "/d/new")
    client.call("delete", pb.DeleteRequestProto(src="/d/sub", recursive=True))
    safety = roll_back(client, "/d", "s1")
    assert names(client, "/d") == [b"sub"]
    assert names(client, f"/d/.snapshot/{safety}") == [b"new"]
    assert names(client, "/d/.snapshot/s1") == [b"sub"]
    roll_back(client, "/d", safety)
    assert names(client, "/d") == [b"new"]


def test_a_repeated_roll_back_names_the_same_snapshot(client: RpcClient) -> None:
    take(client, "/d", "s1")
    mkdirs(client, "/d/new")
    safety = roll_back(client, "/d", "s1", call_id=200)
    mkdirs(client, "/d/later")
    assert roll_back(client, "/d", "s1", call_id=200, retry_count=1) == safety
    assert names(client, "/d") == [b"later", b"sub"]  # nothing was done again
    assert names(client, f"/d/.snapshot/{safety}") == [b"new", b"sub"]
    assert len(snapshots(client, "/d")) == 2


def test_a_refused_roll_back_leaves_nothing(server: RunningServer, client: RpcClient) -> None:
    take(client, "/d", "s1")
    with pytest.raises(SnapshotException, match="Cannot roll /d back to snapshot gone"):
        roll_back(client, "/d", "gone")
    with pytest.raises(SnapshotException, match="not a snapshottable"):
        roll_back(client, "/d/sub", "s1")
    with pytest.raises(FileNotFoundException):
        roll_back(client, "/missing", "s1")
    mkdirs(client, "/d/new")
    allow(client, "/d/new")
    take(client, "/d/new", "own")
    with pytest.raises(HdfsError, match=r"would remove .*new"):
        roll_back(client, "/d", "s1")
    with server.connect("alice") as alice, pytest.raises(AccessControlException):
        roll_back(alice, "/d", "s1")
    client.call("setSafeMode", pb.SetSafeModeRequestProto(action=pb.SAFEMODE_ENTER))
    with pytest.raises(SafeModeException, match="Cannot roll back /d"):
        roll_back(client, "/d", "s1")
    assert [each.dirStatus.path for each in snapshots(client, "/d")] == [b"s1"]
    assert names(client, "/d") == [b"new", b"sub"]


def test_a_repeated_roll_back_of_everything_is_done_once(client: RpcClient) -> None:
    create = cairn_pb2.CreateRootSnapshotRequestProto()
    client.call("createRootSnapshot", create, CAIRN_PROTOCOL)
    mkdirs(client, "/new")

    def roll_back_all(retry_count: int) -> str:
        request = cairn_pb2.RollbackRootSnapshotRequestProto()
        sending = {"call_id": 300, "retry_count": retry_count}
        sent = client.send("rollbackRootSnapshot", request, CAIRN_PROTOCOL, **sending)
        answer: cairn_pb2.RollbackRootSnapshotResponseProto = client.wait(sent)
        return answer.safetySnapshot

    safety = roll_back_all(0)
    mkdirs(client, "/later")
    assert roll_back_all(1) == safety
    assert b"later" in names(client, "/")
    assert b"new" not in names(client, "/")
    assert b"new" in names(client, f"/.snapshot/{safety}")
    client.call("setSafeMode", pb.SetSafeModeRequestProto(action=pb.SAFEMODE_ENTER))
    finalize = cairn_pb2.FinalizeRootSnapshotRequestProto()
    with pytest.raises(SafeModeException, match=r"Cannot finalize the root snapshot\."):
        client.call("finalizeRootSnapshot", finalize, CAIRN_PROTOCOL)
    client.call("setSafeMode", pb.SetSafeModeRequestProto(action=pb.SAFEMODE_LEAVE))
    client.call("finalizeRootSnapshot", finalize, CAIRN_PROTOCOL)


def clone(client: RpcClient, path: str, name: str, destination: str) -> None:
    request = cairn_pb2.CloneSnapshotRequestProto(
        snapshotRoot=path, snapshotName=name, destination=destination
    )
    client.call("cloneSnapshot", request, CAIRN_PROTOCOL)


def test_a_located_listing_of_a_clone_has_the_blocks_of_the_original(client: RpcClient) -> None:
    write(client, "/d/file")
    take(client, "/d", "s1")
    clone(client, "/d", "s1", "/clone")
    file, sub = listing(client, "/clone", located=True).dirList.partialListing
    assert file.HasField("locations")
    assert not sub.HasField("locations")


def test_a_clone_goes_its_own_way(client: RpcClient) -> None:
    take(client, "/d", "s1")
    clone(client, "/d", "s1", "/clone")
    mkdirs(client, "/clone/mine")
    mkdirs(client, "/d/theirs")
    assert names(client, "/clone") == [b"mine", b"sub"]
    assert names(client, "/d") == [b"sub", b"theirs"]
    for path, name, destination in (
        ("/d", "s1", "/clone"),
        ("/d", "gone", "/other"),
        ("/d", "s1", "/missing/below"),
        ("/missing", "s1", "/other"),
    ):
        with pytest.raises(HdfsError):
            clone(client, path, name, destination)
    assert info(client, "/other") is None
