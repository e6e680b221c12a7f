"""ClientNamenodeProtocol over a socket: every call answers, and says what HDFS would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from tests.namenode.fuzz import every_call
from tests.namenode.rpc import FixedGroups, RpcClient, RunningServer, running_server

from cairnfs.errors import (
    AccessControlException,
    FileAlreadyExistsException,
    FileNotFoundException,
    HdfsError,
    InvalidPathException,
    PathIsNotEmptyDirectoryException,
    UnsupportedOperationException,
)
from cairnfs.namenode.__main__ import SERVICES
from cairnfs.testing.scratch import scratch_namespace
from cairnfs.wire.proto import acl_pb2, encryption_pb2, ha_service_pb2, hdfs_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL

NO_LIMIT = 2**64 - 1


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
        yield connected


def permission(mode: int) -> acl_pb2.FsPermissionProto:
    return acl_pb2.FsPermissionProto(perm=mode)


def mkdirs(client: RpcClient, path: str, mode: int = 0o755) -> bool:
    request = pb.MkdirsRequestProto(src=path, masked=permission(mode), createParent=True)
    response: pb.MkdirsResponseProto = client.call("mkdirs", request)
    return response.result


def create(client: RpcClient, path: str, flags: int = 1) -> hdfs_pb2.HdfsFileStatusProto:
    request = pb.CreateRequestProto(
        src=path,
        masked=permission(0o644),
        clientName="test",
        createFlag=flags,
        createParent=True,
        replication=3,
        blockSize=128 << 20,
    )
    response: pb.CreateResponseProto = client.call("create", request)
    return response.fs


def write(client: RpcClient, path: str) -> hdfs_pb2.HdfsFileStatusProto:
    """Create an empty file and close it."""
    status = create(client, path)
    request = pb.CompleteRequestProto(src=path, clientName="test", fileId=status.fileId)
    assert client.call("complete", request).result
    return status


def info(client: RpcClient, path: str) -> hdfs_pb2.HdfsFileStatusProto | None:
    response: pb.GetFileInfoResponseProto = client.call(
        "getFileInfo", pb.GetFileInfoRequestProto(src=path)
    )
    return response.fs if response.HasField("fs") else None


def listing(client: RpcClient, path: str, *, located: bool = False) -> Any:
    request = pb.GetListingRequestProto(src=path, startAfter=b"", needLocation=located)
    return client.call("getListing", request)


# Every call of every protocol


def fill_required(message: Message, path: str) -> None:
    """Give each required field some value, the way a careless client would."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required:
            continue
        if field.message_type is not None:
            fill_required(getattr(message, field.name), path)
            getattr(message, field.name).SetInParent()
        elif field.enum_type is not None:
            setattr(message, field.name, field.enum_type.values[0].number)
        elif field.type == FieldDescriptor.TYPE_STRING:
            setattr(message, field.name, path)
        elif field.type == FieldDescriptor.TYPE_BYTES:
            setattr(message, field.name, b"")
        elif field.type == FieldDescriptor.TYPE_BOOL:
            setattr(message, field.name, False)
        else:
            setattr(message, field.name, 1)


@pytest.mark.parametrize("path", ["/missing/path", "/"])
def test_every_call_of_every_protocol_is_answered(server: RunningServer, path: str) -> None:
    with server.connect() as client:
        for protocol, name, request_class in every_call():
            request = request_class()
            fill_required(request, path)
            try:
                client.call(name, request, protocol)
            except HdfsError as refusal:
                text = str(refusal)
                assert "see the log" not in text, name
        assert info(client, "/") is not None


def test_every_client_call_has_a_handler() -> None:
    handlers = SERVICES[0].handlers
    assert SERVICES[0].protocol is CLIENT_PROTOCOL
    assert handlers.keys() == set(CLIENT_PROTOCOL.methods.values())


# Names


def test_a_status_has_what_hdfs_says(client: RpcClient) -> None:
    mkdirs(client, "/data")
    write(client, "/data/file")
    directory, file = info(client, "/data"), info(client, "/data/file")
    assert directory is not None
    assert file is not None

    assert directory.fileType == hdfs_pb2.HdfsFileStatusProto.IS_DIR
    assert directory.path == b""
    assert (directory.length, directory.block_replication, directory.blocksize) == (0, 0, 0)
    assert directory.permission.perm == 0o755
    assert (directory.owner, directory.group) == ("hdfs", "supergroup")
    assert directory.childrenNum == 1
    assert directory.fileId > 16385
    assert file.fileType == hdfs_pb2.HdfsFileStatusProto.IS_FILE
    assert (file.block_replication, file.blocksize) == (3, 128 << 20)
    assert file.childrenNum == 0
    assert file.HasField("flags")
    assert not file.HasField("symlink")
    assert not file.HasField("fileEncryptionInfo")


def test_what_is_not_there_has_no_status(client: RpcClient) -> None:
    assert info(client, "/nothing") is None
    assert not listing(client, "/nothing").HasField("dirList")


def test_listings_have_local_names(client: RpcClient) -> None:
    for name in ("b", "a", "c"):
        mkdirs(client, f"/d/{name}")
    found = listing(client, "/d").dirList
    assert [entry.path for entry in found.partialListing] == [b"a", b"b", b"c"]
    assert found.remainingEntries == 0

    after = pb.GetListingRequestProto(src="/d", startAfter=b"b", needLocation=False)
    entries = client.call("getListing", after).dirList.partialListing
    assert [entry.path for entry in entries] == [b"c"]


def test_a_listing_tells_what_each_of_them_tells_whatever_was_listed_before(
    client: RpcClient,
) -> None:
    def check(names: list[str]) -> None:
        for _ in range(2):
            entries = listing(client, "/d").dirList.partialListing
            assert [entry.path.decode() for entry in entries] == names
            for entry in entries:
                status = info(client, f"/d/{entry.path.decode()}")
                entry.path = b""
                assert entry == status

    for name in ("a", "b"):
        mkdirs(client, f"/d/{name}")
    create(client, "/d/f")
    check(["a", "b", "f"])
    mkdirs(client, "/d/b/below")  # its number of children
    check(["a", "b", "f"])
    client.call("setPermission", pb.SetPermissionRequestProto(src="/d/f", permission=permission(0)))
    check(["a", "b", "f"])
    mkdirs(client, "/d/g")
    check(["a", "b", "f", "g"])
    client.call("rename", pb.RenameRequestProto(src="/d/f", dst="/d/c"))
    check(["a", "b", "c", "g"])
    client.call("delete", pb.DeleteRequestProto(src="/d/a", recursive=True))
    check(["b", "c", "g"])
    client.call("delete", pb.DeleteRequestProto(src="/d/g", recursive=True))
    check(["b", "c"])


def test_a_located_listing_has_the_blocks_of_files(client: RpcClient) -> None:
    mkdirs(client, "/d/sub")
    write(client, "/d/file")
    file, sub = listing(client, "/d", located=True).dirList.partialListing
    assert file.HasField("locations")
    assert not sub.HasField("locations")


def test_a_batch_of_listings_goes_on_where_it_ended(client: RpcClient) -> None:
    for name in ("/x/1", "/x/2", "/y/3"):
        mkdirs(client, name)
    request = pb.GetBatchedListingRequestProto(
        paths=["/x", "/missing", "/y"], startAfter=b"", needLocation=False
    )
    response = client.call("getBatchedListing", request)
    assert [
        (each.parentIdx, [entry.path for entry in each.partialListing], each.exception.className)
        for each in response.listings
    ] == [(0, [b"1", b"2"], ""), (1, [], "java.io.FileNotFoundException"), (2, [b"3"], "")]
    assert not response.hasMore


def test_errors_come_with_their_class(client: RpcClient) -> None:
    write(client, "/d/file")
    with pytest.raises(FileAlreadyExistsException):
        create(client, "/d/file")
    with pytest.raises(PathIsNotEmptyDirectoryException):
        client.call("delete", pb.DeleteRequestProto(src="/d", recursive=False))
    with pytest.raises(InvalidPathException):
        info(client, "relative")
    with pytest.raises(FileNotFoundException):
        client.call("getContentSummary", pb.GetContentSummaryRequestProto(path="/nothing"))


def test_users_have_the_rights_that_their_groups_give(server: RunningServer) -> None:
    with server.connect() as superuser:
        mkdirs(superuser, "/staff", 0o770)
        superuser.call("setOwner", pb.SetOwnerRequestProto(src="/staff", groupname="staff"))
    with server.connect("alice") as alice, server.connect("bob") as bob:
        assert mkdirs(alice, "/staff/alice")
        with pytest.raises(AccessControlException, match="user=bob, access=EXECUTE"):
            mkdirs(bob, "/staff/bob")


def test_a_retry_is_answered_with_the_first_reply(client: RpcClient) -> None:
    mkdirs(client, "/a")
    request = pb.RenameRequestProto(src="/a", dst="/b")
    first = client.send("rename", request, call_id=1000)
    assert client.wait(first).result
    again = client.send("rename", request, call_id=1000, retry_count=1)
    assert client.wait(again).result
    once_more = client.call("rename", request)
    assert not once_more.result


def test_negative_numbers_cross_the_wire(client: RpcClient) -> None:
    mkdirs(client, "/q")
    request = pb.SetQuotaRequestProto(path="/q", namespaceQuota=5, storagespaceQuota=2**63 - 1)
    client.call("setQuota", request)
    usage = client.call("getQuotaUsage", pb.GetQuotaUsageRequestProto(path="/q")).usage
    assert (usage.quota, usage.spaceQuota) == (5, NO_LIMIT)
    request.namespaceQuota = NO_LIMIT  # clear
    client.call("setQuota", request)
    summary = client.call("getContentSummary", pb.GetContentSummaryRequestProto(path="/q")).summary
    assert summary.quota == NO_LIMIT

    before = info(client, "/q")
    client.call("setTimes", pb.SetTimesRequestProto(src="/q", mtime=7, atime=NO_LIMIT))
    after = info(client, "/q")
    assert before is not None
    assert after is not None
    assert (after.modification_time, after.access_time) == (7, before.access_time)


@pytest.mark.parametrize("time_ms", [-2, -(2**62)])
def test_negative_times_but_minus_one_are_refused(client: RpcClient, time_ms: int) -> None:
    mkdirs(client, "/d")
    before = info(client, "/d")
    for times in ((time_ms, -1), (-1, time_ms)):
        mtime, atime = (each % 2**64 for each in times)
        request = pb.SetTimesRequestProto(src="/d", mtime=mtime, atime=atime)
        with pytest.raises(HdfsError, match=f"time {time_ms}: it is -1 or later than 1970"):
            client.call("setTimes", request)
    assert info(client, "/d") == before


def test_stored_times_before_1970_are_told_as_1970(
    server: RunningServer, client: RpcClient
) -> None:
    """As they are when the NameNode's clock was wrong."""
    server.scratch.clock.advance(-1000 - server.scratch.clock.now_ms())
    mkdirs(client, "/d/below")
    write(client, "/d/file")
    server.scratch.create_symlink("file", "/d/link")
    server.scratch.allow_snapshot("/d")
    server.scratch.create_snapshot("/d", "s")
    listed = [
        *listing(client, "/d").dirList.partialListing,
        *listing(client, "/d/.snapshot").dirList.partialListing,
    ]
    assert [status.path for status in listed] == [b"below", b"file", b"link", b"s"]
    found = [info(client, path) for path in ("/d/below", "/d/file", "/d/.snapshot/s/file")]
    for status in [*listed, *found]:
        assert status is not None
        assert (status.modification_time, status.access_time) == (0, 0)


def test_access_control_lists(client: RpcClient) -> None:
    mkdirs(client, "/d")
    entry = acl_pb2.AclEntryProto(
        type=acl_pb2.AclEntryProto.USER,
        scope=acl_pb2.AclEntryProto.ACCESS,
        permissions=acl_pb2.AclEntryProto.READ,
        name="alice",
    )
    client.call("modifyAclEntries", acl_pb2.ModifyAclEntriesRequestProto(src="/d", aclSpec=[entry]))
    status = client.call("getAclStatus", acl_pb2.GetAclStatusRequestProto(src="/d")).result
    assert entry in status.entries
    directory = info(client, "/d")
    assert directory is not None
    assert directory.flags == hdfs_pb2.HdfsFileStatusProto.HAS_ACL


def test_reserved_names_are_listed(client: RpcClient) -> None:
    found = listing(client, "/.reserved").dirList.partialListing
    assert [entry.path for entry in found] == [b".inodes", b"raw"]


def test_links_tell_their_target(client: RpcClient) -> None:
    request = pb.CreateSymlinkRequestProto(
        target="/far/away", link="/link", dirPerm=permission(0o755), createParent=True
    )
    client.call("createSymlink", request)
    target = client.call("getLinkTarget", pb.GetLinkTargetRequestProto(path="/link"))
    assert target.targetPath == "/far/away"
    link = client.call("getFileLinkInfo", pb.GetFileLinkInfoRequestProto(src="/link")).fs
    assert link.symlink == b"/far/away"


# Features that are not there


def test_absent_features_answer_as_an_hdfs_that_does_not_use_them(client: RpcClient) -> None:
    zones = encryption_pb2.ListEncryptionZonesRequestProto(id=0)
    assert not client.call("listEncryptionZones", zones).zones
    with pytest.raises(UnsupportedOperationException, match="has no encryption zones"):
        client.call(
            "createEncryptionZone", encryption_pb2.CreateEncryptionZoneRequestProto(src="/")
        )


def test_a_namenode_is_always_active(client: RpcClient) -> None:
    state = client.call("getHAServiceState", pb.HAServiceStateRequestProto()).state
    assert state == ha_service_pb2.ACTIVE


def test_defaults_are_those_of_hdfs(client: RpcClient) -> None:
    defaults = client.call("getServerDefaults", pb.GetServerDefaultsRequestProto()).serverDefaults
    assert defaults.blockSize == 128 << 20
    assert defaults.bytesPerChecksum == 512
    assert defaults.replication == 3
    assert defaults.checksumType == hdfs_pb2.CHECKSUM_CRC32C
