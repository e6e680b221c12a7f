"""Which calls leave a line in the audit log, and what it says, under every control."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.namenode.rpc import RpcClient
from tests.observe.servers import SUPERUSER, ServedNameNode, served_namenode

from cairnfs.clock import ManualClock
from cairnfs.config import AuditSettings, Control
from cairnfs.errors import AccessControlException, HdfsError
from cairnfs.namenode import client_open_files
from cairnfs.testing.scratch import ScratchClient
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto.acl_pb2 import FsPermissionProto
from cairnfs.wire.protocols import CAIRN_PROTOCOL


@pytest.fixture(params=list(Control))
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServedNameNode]:
    with served_namenode(tmp_path, control=request.param) as made:
        yield made


def mkdirs(client: RpcClient, path: str, mode: int = 0o755) -> None:
    request = pb.MkdirsRequestProto(
        src=path, masked=FsPermissionProto(perm=mode), createParent=True
    )
    client.call("mkdirs", request)


def events(served: ServedNameNode, tmp_path: Path) -> list[dict[str, str]]:
    """The lines of the log, as fields."""
    served.flush_audit()
    found = []
    for line in (tmp_path / "audit.log").read_text().splitlines():
        _, _, fields = line.partition(" INFO FSNamesystem.audit: ")
        found.append(dict(field.split("=", 1) for field in fields.split("\t")))
    return found


def brief(event: dict[str, str]) -> tuple[str, str, str, str, str]:
    return event["allowed"], event["cmd"], event["src"], event["dst"], event["perm"]


def test_what_was_made_is_told_with_owner_and_mode(served: ServedNameNode, tmp_path: Path) -> None:
    with served.connect() as client:
        mkdirs(client, "/a/b", 0o750)
        mkdirs(client, "/a/b", 0o700)  # it is there: nothing changes
        client.call("rename", pb.RenameRequestProto(src="/a/b", dst="/a/c"))
        client.call("rename", pb.RenameRequestProto(src="/none", dst="/other"))  # answers false
        client.call(
            "rename2",
            pb.Rename2RequestProto(src="/a/c", dst="/a/d", overwriteDest=False, moveToTrash=True),
        )
        client.call("setOwner", pb.SetOwnerRequestProto(src="/a/d", username="ada"))
        client.call(
            "createSymlink",
            pb.CreateSymlinkRequestProto(
                target="/a/d",
                link="/link",
                dirPerm=FsPermissionProto(perm=0o755),
                createParent=False,
            ),
        )
        for _ in range(2):
            client.call("delete", pb.DeleteRequestProto(src="/a", recursive=True))
    assert list(map(brief, events(served, tmp_path))) == [
        ("true", "mkdirs", "/a/b", "null", "hdfs:supergroup:rwxr-x---"),
        ("true", "mkdirs", "/a/b", "null", "hdfs:supergroup:rwxr-x---"),
        ("true", "rename", "/a/b", "/a/c", "hdfs:supergroup:rwxr-x---"),
        ("true", "rename (options=[TO_TRASH])", "/a/c", "/a/d", "hdfs:supergroup:rwxr-x---"),
        ("true", "setOwner", "/a/d", "null", "ada:supergroup:rwxr-x---"),
        ("true", "createSymlink", "/link", "/a/d", "hdfs:supergroup:rwxrwxrwx"),
        ("true", "delete", "/a", "null", "null"),
        ("false", "delete", "/a", "null", "null"),  # as HDFS has it: there was nothing
    ]


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_truncate_that_waits_is_told_with_owner_and_mode(
    store: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits for DataNodes it only looks: what it has changed is what it is told for."""
    monkeypatch.setattr(client_open_files, "RECOVERY_WAIT_S", 0.3)
    monkeypatch.setattr(client_open_files, "RECOVERY_POLL_S", 0.05)
    monkeypatch.setattr(client_open_files, "_choose_replicas", lambda *_: lambda *_: (1,))
    url = request.getfixturevalue("postgres_dsn") if store == "postgres" else None
    with served_namenode(tmp_path, url) as served:
        caller = served.thread.namenode.caller(SUPERUSER, (), "127.0.0.1")
        ScratchClient(served.thread, caller, ManualClock()).write("/f", 1000)
        with served.connect() as client:
            half = pb.TruncateRequestProto(src="/f", newLength=500, clientName="c")
            assert not client.call("truncate", half).result  # nobody has cut it yet
        (told,) = events(served, tmp_path)
    assert brief(told) == ("true", "truncate", "/f", "null", "hdfs:supergroup:rw-r--r--")


def test_denied_calls_are_told_and_failed_ones_are_not(
    served: ServedNameNode, tmp_path: Path
) -> None:
    with served.connect() as client, served.connect("mallory") as mallory:
        mkdirs(client, "/closed", 0o700)
        for method, request in (
            (
                "getListing",
                pb.GetListingRequestProto(src="/closed", startAfter=b"", needLocation=0),
            ),
            ("delete", pb.DeleteRequestProto(src="/closed", recursive=True)),
            ("saveNamespace", pb.SaveNamespaceRequestProto()),
        ):
            with pytest.raises(AccessControlException):
                mallory.call(method, request)
        with pytest.raises(HdfsError, match="does not exist"):
            client.call("setOwner", pb.SetOwnerRequestProto(src="/none", username="ada"))
    _, *told = events(served, tmp_path)
    assert list(map(brief, told)) == [
        ("false", "listStatus", "/closed", "null", "null"),
        ("false", "delete", "/closed", "null", "null"),
        ("false", "saveNamespace", "null", "null", "null"),
    ]
    assert {event["ugi"] for event in told} == {"mallory (auth:SIMPLE)"}


def test_snapshots_are_told_as_hdfs_tells_them(served: ServedNameNode, tmp_path: Path) -> None:
    """In the words of HDFS 3.3.6; it leaves out of which directory one was not allowed."""
    root = {"snapshotRoot": "/d"}
    with served.connect() as client, served.connect("mallory") as mallory:
        mkdirs(client, "/d")
        with pytest.raises(AccessControlException):
            mallory.call("allowSnapshot", pb.AllowSnapshotRequestProto(**root))
        client.call("allowSnapshot", pb.AllowSnapshotRequestProto(**root))
        named = pb.CreateSnapshotRequestProto(**root, snapshotName="s1")
        with pytest.raises(AccessControlException):
            mallory.call("createSnapshot", named)
        client.call("createSnapshot", named)
        by_time = client.call("createSnapshot", pb.CreateSnapshotRequestProto(**root)).snapshotPath
        several = cairn_pb2.CreateSnapshotsRequestProto(snapshotRoots=["/d"], snapshotName="s2")
        client.call("createSnapshots", several, CAIRN_PROTOCOL)
        request = pb.RenameSnapshotRequestProto(**root, snapshotOldName="s1", snapshotNewName="t")
        client.call("renameSnapshot", request)
        with pytest.raises(HdfsError, match="s1"):
            client.call("renameSnapshot", request)
        client.call("getSnapshottableDirListing", pb.GetSnapshottableDirListingRequestProto())
        client.call("getSnapshotListing", pb.GetSnapshotListingRequestProto(**root))
        removal = pb.DeleteSnapshotRequestProto(**root, snapshotName="t")
        with pytest.raises(AccessControlException):
            mallory.call("deleteSnapshot", removal)
        client.call("deleteSnapshot", removal)
        with pytest.raises(HdfsError, match="snapshot"):
            client.call("disallowSnapshot", pb.DisallowSnapshotRequestProto(**root))
    _, *told = events(served, tmp_path)
    assert [brief(event)[:4] for event in told] == [
        ("false", "allowSnapshot", "/d", "null"),
        ("true", "allowSnapshot", "/d", "null"),
        ("false", "createSnapshot", "/d", "null"),
        ("true", "createSnapshot", "/d", "/d/.snapshot/s1"),
        ("true", "createSnapshot", "/d", by_time),
        ("true", "createSnapshots", "[/d]", "[/d/.snapshot/s2]"),
        ("true", "renameSnapshot", "/d/.snapshot/s1", "/d/.snapshot/t"),
        ("true", "listSnapshottableDirectory", "null", "null"),
        ("true", "ListSnapshot", "/d", "null"),
        ("false", "deleteSnapshot", "/d/.snapshot/t", "null"),
        ("true", "deleteSnapshot", "/d/.snapshot/t", "null"),
    ]
    assert {event["perm"] for event in told} == {"null"}


def test_who_acts_for_somebody_else_is_named(tmp_path: Path) -> None:
    with served_namenode(tmp_path) as served:
        with served.connect("alice", "hdfs") as proxy:
            proxy.call("getFileInfo", pb.GetFileInfoRequestProto(src="/"))
        (event,) = events(served, tmp_path)
    assert event["ugi"] == "alice (auth:PROXY) via hdfs (auth:SIMPLE)"
    assert (event["ip"], event["proto"]) == ("/127.0.0.1", "rpc")


QUOTAS = {
    "clearQuota": (-1, 2**63 - 1),
    "clearSpaceQuota": (2**63 - 1, -1),
    "setQuota": (10, 2**63 - 1),
    "setSpaceQuota": (2**63 - 1, 1 << 40),
}


def test_commands_that_depend_on_the_request(tmp_path: Path) -> None:
    with served_namenode(tmp_path) as served:
        with served.connect() as client:
            mkdirs(client, "/q")
            for names, space in QUOTAS.values():
                client.call(
                    "setQuota",
                    pb.SetQuotaRequestProto(
                        path="/q",
                        namespaceQuota=names % 2**64,
                        storagespaceQuota=space % 2**64,
                    ),
                )
            for action in (pb.SAFEMODE_GET, pb.SAFEMODE_LEAVE):
                client.call("setSafeMode", pb.SetSafeModeRequestProto(action=action))
            client.call("getDatanodeReport", pb.GetDatanodeReportRequestProto(type=pb.ALL))
            client.call(
                "getBatchedListing",
                pb.GetBatchedListingRequestProto(
                    paths=["/q", "/"], startAfter=b"", needLocation=False
                ),
            )
        _, *told = [(event["cmd"], event["src"]) for event in events(served, tmp_path)]
    assert told == [
        *((command, "/q") for command in QUOTAS),
        ("safemode_get", "null"),
        ("safemode_leave", "null"),
        ("datanodeReport", "null"),
        ("listStatus", "/q"),
        ("listStatus", "/"),
    ]


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    audit = AuditSettings("/dev/full")
    with served_namenode(tmp_path, audit=audit) as served, served.connect() as client:
        for number in range(100):
            mkdirs(client, f"/d{number}")
        served.flush_audit()
        log = served.thread.namenode.audit
        assert log is not None
        assert (log.file.lines_written, log.file.lines_lost) == (0, 100)
        assert client.call("getFileInfo", pb.GetFileInfoRequestProto(src="/d99")).HasField("fs")


def test_off_there_is_neither_a_log_nor_a_trace(tmp_path: Path) -> None:
    with (
        served_namenode(tmp_path, audit=AuditSettings()) as served,
        served.connect() as client,
    ):
        mkdirs(client, "/a")
        assert served.thread.namenode.audit is None
    assert not (tmp_path / "audit.log").exists()
