"""The calls about extended attributes over a socket, on both stores."""

from __future__ import annotations

import pytest
from tests.namenode.datanodes import FakeCluster
from tests.namenode.rpc import RpcClient
from tests.namenode.test_client_protocol import mkdirs

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    HdfsError,
    IOException,
    SafeModeException,
    XAttrNotFoundException,
)
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto.xattr_pb2 import (
    GetXAttrsRequestProto,
    GetXAttrsResponseProto,
    ListXAttrsRequestProto,
    ListXAttrsResponseProto,
    RemoveXAttrRequestProto,
    SetXAttrRequestProto,
    XAttrProto,
)
from cairnfs.wire.protocols import CLIENT_PROTOCOL
from cairnfs.wire.rpc_errors import InvalidProtocolBufferException

USER, TRUSTED, SYSTEM, RAW = (
    XAttrProto.USER,
    XAttrProto.TRUSTED,
    XAttrProto.SYSTEM,
    XAttrProto.RAW,
)
CREATE, REPLACE = 1, 2

Space = XAttrProto.XAttrNamespaceProto


def xattr(name: str, value: bytes | None = None, space: Space = USER) -> XAttrProto:
    return XAttrProto(namespace=space, name=name, value=value)


def setting(path: str, attribute: XAttrProto, flag: int = CREATE | REPLACE) -> SetXAttrRequestProto:
    return SetXAttrRequestProto(src=path, xAttr=attribute, flag=flag)


def get(rpc: RpcClient, path: str, *attributes: XAttrProto) -> list[XAttrProto]:
    request = GetXAttrsRequestProto(src=path, xAttrs=attributes)
    response: GetXAttrsResponseProto = rpc.call("getXAttrs", request)
    return list(response.xAttrs)


def names(rpc: RpcClient, path: str) -> list[str]:
    response: ListXAttrsResponseProto = rpc.call("listXAttrs", ListXAttrsRequestProto(src=path))
    assert not any(each.HasField("value") for each in response.xAttrs)
    return [each.name for each in response.xAttrs]


def test_attributes_are_set_read_and_removed(rpc: RpcClient) -> None:
    mkdirs(rpc, "/d")
    assert get(rpc, "/d") == names(rpc, "/d") == []
    rpc.call("setXAttr", setting("/d", xattr("a", b"\0\xff")))
    rpc.call("setXAttr", setting("/d", xattr("b", b"", TRUSTED)))
    rpc.call("setXAttr", setting("/d", xattr("ünï code.")))
    assert names(rpc, "/d") == ["a", "ünï code.", "b"]
    # As by HDFS, no value is told where it is empty.
    assert get(rpc, "/d") == [xattr("a", b"\0\xff"), xattr("ünï code."), xattr("b", space=TRUSTED)]
    assert get(rpc, "/d", xattr("a")) == [xattr("a", b"\0\xff")]
    rpc.call("removeXAttr", RemoveXAttrRequestProto(src="/d", xAttr=xattr("a", b"any value")))
    assert names(rpc, "/d") == ["ünï code.", "b"]


@pytest.mark.parametrize(
    ("method", "request_", "error", "words"),
    [
        ("setXAttr", setting("/d", xattr("new", b""), REPLACE), IOException, "new does not exist"),
        ("setXAttr", setting("/d", xattr("a", b""), CREATE), IOException, "a already exists"),
        (
            "setXAttr",
            setting("/d", xattr("a", b""), 0),
            HadoopIllegalArgumentException,
            "A flag must be specified",
        ),
        (
            "setXAttr",
            SetXAttrRequestProto(src="/d", xAttr=xattr("a", b"")),
            HadoopIllegalArgumentException,
            "A flag must be specified",
        ),
        (
            "setXAttr",
            SetXAttrRequestProto(src="/d", flag=CREATE),
            HadoopIllegalArgumentException,
            "XAttr name cannot be empty",
        ),
        (
            "setXAttr",
            setting("/d", xattr("")),
            HadoopIllegalArgumentException,
            "XAttr name cannot be empty",
        ),
        (
            "setXAttr",
            setting("/d", xattr("a", b"x" * 16384)),
            HadoopIllegalArgumentException,
            "The XAttr is too big",
        ),
        (
            "setXAttr",
            setting("/d", xattr("a", b"", SYSTEM)),
            AccessControlException,
            "permission for xattr: system",
        ),
        (
            "setXAttr",
            setting("/d", xattr("a", b"", RAW)),
            AccessControlException,
            "permission for xattr: raw",
        ),
        ("setXAttr", setting("/missing", xattr("a")), FileNotFoundException, "cannot find"),
        (
            "removeXAttr",
            RemoveXAttrRequestProto(src="/d", xAttr=xattr("new")),
            IOException,
            "No matching attributes found for remove operation",
        ),
        (
            "removeXAttr",
            RemoveXAttrRequestProto(src="/d"),
            HadoopIllegalArgumentException,
            "XAttr name cannot be empty",
        ),
        (
            "getXAttrs",
            GetXAttrsRequestProto(src="/d", xAttrs=[xattr("a"), xattr("new")]),
            XAttrNotFoundException,
            "At least one of the attributes provided was not found",
        ),
        ("getXAttrs", GetXAttrsRequestProto(src="/missing"), FileNotFoundException, "cannot find"),
        ("listXAttrs", ListXAttrsRequestProto(src="/missing"), FileNotFoundException, "cannot"),
    ],
)
def test_refusals_are_hdfss(
    rpc: RpcClient, method: str, request_: object, error: type[HdfsError], words: str
) -> None:
    mkdirs(rpc, "/d")
    rpc.call("setXAttr", setting("/d", xattr("a", b"1")))
    with pytest.raises(error, match=words) as refused:
        rpc.call(method, request_)  # type: ignore[arg-type]
    assert type(refused.value) is error
    assert get(rpc, "/d") == [xattr("a", b"1")]


def test_a_name_space_that_there_is_not_cannot_be_decoded() -> None:
    encoded = setting("/", xattr("a")).SerializeToString()
    unknown = encoded.replace(b"\x08\x00\x12\x01a", b"\x08\x09\x12\x01a")
    assert unknown != encoded
    with pytest.raises(InvalidProtocolBufferException, match="namespace"):
        CLIENT_PROTOCOL["setXAttr"].decode_request(unknown)


def test_rights_are_those_of_the_user(cluster: FakeCluster, rpc: RpcClient) -> None:
    mkdirs(rpc, "/d", 0o755)
    mkdirs(rpc, "/closed", 0o700)
    rpc.call("setXAttr", setting("/d", xattr("a", b"1")))
    rpc.call("setXAttr", setting("/d", xattr("b", b"2", TRUSTED)))
    rpc.call("setXAttr", setting("/.reserved/raw/d", xattr("c", b"3", RAW)))
    with RpcClient(cluster.port, "alice") as alice:
        assert get(alice, "/d") == [xattr("a", b"1")]
        assert names(alice, "/.reserved/raw/d") == ["a", "c"]
        for path, attribute in (
            ("/d", xattr("a", b"2")),
            ("/d", xattr("b", b"2", TRUSTED)),
            ("/closed", xattr("a", b"2")),
            ("/.reserved/raw/d", xattr("c", b"4", RAW)),
        ):
            with pytest.raises(AccessControlException):
                alice.call("setXAttr", setting(path, attribute))
            request = RemoveXAttrRequestProto(src=path, xAttr=attribute)
            with pytest.raises(AccessControlException):
                alice.call("removeXAttr", request)
        with pytest.raises(AccessControlException):
            get(alice, "/closed")
        with pytest.raises(AccessControlException):
            get(alice, "/d", xattr("b", space=TRUSTED))
    assert len(get(rpc, "/.reserved/raw/d")) == 3


def test_a_call_that_is_repeated_runs_once(rpc: RpcClient) -> None:
    mkdirs(rpc, "/d")
    first = rpc.send("setXAttr", setting("/d", xattr("a", b"1"), CREATE), call_id=1000)
    rpc.wait(first)
    rpc.wait(
        rpc.send("setXAttr", setting("/d", xattr("a", b"1"), CREATE), call_id=1000, retry_count=1)
    )
    # One that changes nothing is not to undo later what another one has changed.
    same = setting("/d", xattr("a", b"1"), REPLACE)
    rpc.wait(rpc.send("setXAttr", same, call_id=1001))
    rpc.call("setXAttr", setting("/d", xattr("a", b"2"), REPLACE))
    rpc.wait(rpc.send("setXAttr", same, call_id=1001, retry_count=1))
    assert get(rpc, "/d") == [xattr("a", b"2")]
    removal = RemoveXAttrRequestProto(src="/d", xAttr=xattr("a"))
    rpc.wait(rpc.send("removeXAttr", removal, call_id=1002))
    rpc.call("setXAttr", setting("/d", xattr("a", b"3"), CREATE))
    rpc.wait(rpc.send("removeXAttr", removal, call_id=1002, retry_count=1))
    assert get(rpc, "/d") == [xattr("a", b"3")]


def test_nothing_is_set_in_safe_mode(rpc: RpcClient) -> None:
    mkdirs(rpc, "/d")
    rpc.call("setXAttr", setting("/d", xattr("a", b"1")))
    rpc.call("setSafeMode", pb.SetSafeModeRequestProto(action=pb.SAFEMODE_ENTER))
    with pytest.raises(SafeModeException, match=r"Cannot set XAttr on /d\. Name node is in safe"):
        rpc.call("setXAttr", setting("/d", xattr("a", b"2")))
    with pytest.raises(SafeModeException, match=r"Cannot remove XAttr entry on /d\. Name"):
        rpc.call("removeXAttr", RemoveXAttrRequestProto(src="/d", xAttr=xattr("a")))
    assert get(rpc, "/d") == [xattr("a", b"1")]
    rpc.call("setSafeMode", pb.SetSafeModeRequestProto(action=pb.SAFEMODE_LEAVE))


def test_the_status_of_a_path_does_not_tell_of_attributes(rpc: RpcClient) -> None:
    mkdirs(rpc, "/d")
    before = rpc.call("getFileInfo", pb.GetFileInfoRequestProto(src="/d")).fs
    rpc.call("setXAttr", setting("/d", xattr("a", b"1")))
    assert rpc.call("getFileInfo", pb.GetFileInfoRequestProto(src="/d")).fs == before
