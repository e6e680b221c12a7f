"""The generated code is what the .proto files say, and every call is there by name."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.internal import api_implementation
from google.protobuf.message_factory import GetMessageClass

from cairnfs.errors import RpcNoSuchMethodException, RpcNoSuchProtocolException
from cairnfs.wire import protocols
from cairnfs.wire.proto import client_namenode_pb2, hdfs_pb2, rpc_pb2
from cairnfs.wire.protocols import CLIENT_PROTOCOL, MethodTable, Protocol
from cairnfs.wire.rpc_errors import InvalidProtocolBufferException, VersionMismatch

ROOT = Path(__file__).parents[2]
PROTO = ROOT / "src" / "cairnfs" / "wire" / "proto"
PROTOCOLS = [value for value in vars(protocols).values() if isinstance(value, Protocol)]
HEADER = {
    "methodName": "getFileInfo",
    "declaringClassProtocolName": CLIENT_PROTOCOL.name,
    "clientProtocolVersion": 1,
}


def test_generated_code_is_up_to_date(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    command = [sys.executable, str(ROOT / "scripts" / "generate-protos"), "--into", str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)
    generated = {path.name: path.read_text() for path in tmp_path.rglob("*_pb2.py*")}
    committed = {path.name: path.read_text() for path in PROTO.glob("*_pb2.py*")}
    assert generated.keys() == committed.keys()
    stale = [name for name, text in generated.items() if committed[name] != text]
    assert not stale, "run `make protos`"


def test_protobuf_is_the_fast_one() -> None:
    assert api_implementation.Type() == "upb"


def test_no_name_can_clash_with_hadoops_own() -> None:
    for path in PROTO.glob("*_pb2.py"):
        file = importlib.import_module(f"cairnfs.wire.proto.{path.stem}").DESCRIPTOR
        assert file.name == f"cairnfs/wire/proto/{path.stem.removesuffix('_pb2')}.proto"
        assert file.package.startswith("cairnfs.")


def test_every_service_is_a_protocol() -> None:
    services = {
        service.full_name
        for path in PROTO.glob("*_pb2.py")
        for service in importlib.import_module(
            f"cairnfs.wire.proto.{path.stem}"
        ).DESCRIPTOR.services_by_name.values()
    }
    assert len(services) == len(PROTOCOLS) == len({protocol.name for protocol in PROTOCOLS})


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_methods_are_found_by_their_headers(protocol: Protocol) -> None:
    table = MethodTable(PROTOCOLS)
    assert protocol.methods
    for name, method in protocol.methods.items():
        assert (method.name, method.protocol) == (name, protocol.name)
        assert table.find(method.header) is method
        assert protocol[name] is method


def test_client_protocol_is_complete() -> None:
    assert len(CLIENT_PROTOCOL.methods) == 111
    assert {"getFileInfo", "addBlock", "msync", "getEnclosingRoot"} < CLIENT_PROTOCOL.methods.keys()


def test_a_header_in_another_order_finds_its_method() -> None:
    version, rest = CLIENT_PROTOCOL["mkdirs"].header[-2:], CLIENT_PROTOCOL["mkdirs"].header[:-2]
    table = MethodTable([CLIENT_PROTOCOL])
    for _ in range(2):
        assert table.find(version + rest) is CLIENT_PROTOCOL["mkdirs"]


def test_variants_of_headers_are_not_remembered_without_end() -> None:
    table = MethodTable([CLIENT_PROTOCOL])
    mkdirs = CLIENT_PROTOCOL["mkdirs"]
    for number in range(2000):
        unknown_field = b"\xf8\x01" + bytes((number & 0x7F | 0x80, number >> 7))
        assert table.find(mkdirs.header + unknown_field) is mkdirs
    assert len(table._known) <= 1024


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        (
            {"declaringClassProtocolName": "a.B"},
            RpcNoSuchProtocolException,
            "Unknown protocol: a.B",
        ),
        (
            {"methodName": "x"},
            RpcNoSuchMethodException,
            f"Unknown method x called on {CLIENT_PROTOCOL.name} protocol.",
        ),
        (
            {"clientProtocolVersion": 2},
            VersionMismatch,
            f"Protocol {CLIENT_PROTOCOL.name} version mismatch. (client = 2, server = 1)",
        ),
    ],
)
def test_what_is_not_offered(
    fields: dict[str, object], error: type[Exception], message: str
) -> None:
    header = rpc_pb2.RequestHeaderProto(**HEADER | fields)  # type: ignore[arg-type]
    with pytest.raises(error) as raised:
        MethodTable([CLIENT_PROTOCOL]).find(header.SerializeToString())
    assert str(raised.value) == message


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x0a\x02\xff\xfe", b"\x0a\x7f"])
def test_a_header_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(InvalidProtocolBufferException):
        MethodTable([CLIENT_PROTOCOL]).find(data)


def test_a_name_that_is_not_utf8_is_unknown() -> None:
    header = CLIENT_PROTOCOL["mkdirs"].header.replace(b"mkdirs", b"mkdir\xff")
    with pytest.raises(RpcNoSuchMethodException, match="mkdir\ufffd"):
        MethodTable([CLIENT_PROTOCOL]).find(header)


def test_a_request_that_lacks_a_field_is_refused_as_in_java() -> None:
    with pytest.raises(InvalidProtocolBufferException, match="missing required fields: src"):
        CLIENT_PROTOCOL["getFileInfo"].decode_request(b"")


def test_strings_beyond_utf8_come_out_as_bytes() -> None:
    request = CLIENT_PROTOCOL["getFileInfo"].decode_request(b"\x0a\x02\xff\xfe")
    assert isinstance(request, client_namenode_pb2.GetFileInfoRequestProto)
    assert request.src == b"\xff\xfe"


def test_every_message_takes_what_it_gives() -> None:
    for path in PROTO.glob("*_pb2.py"):
        file = importlib.import_module(f"cairnfs.wire.proto.{path.stem}").DESCRIPTOR
        for descriptor in file.message_types_by_name.values():
            message = GetMessageClass(descriptor)()
            assert message.FromString(message.SerializePartialToString()) == message


def test_values_that_java_depends_on() -> None:
    assert hdfs_pb2.HdfsFileStatusProto().childrenNum == -1
    assert rpc_pb2.RpcRequestHeaderProto(callId=-3).SerializePartialToString() == b"\x18\x05"
    assert client_namenode_pb2.FsyncRequestProto().lastBlockLength == -1
