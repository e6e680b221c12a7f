"""ClientNamenodeProtocol: extended attributes."""

from __future__ import annotations

from cairnfs.namenode.responses import encode_nothing
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem import xattrs
from cairnfs.namesystem.inheritance import XAttrs
from cairnfs.namesystem.inodes import XAttr
from cairnfs.namesystem.paths import FsPath
from cairnfs.wire.proto import xattr_pb2 as pb
from cairnfs.wire.protocols import CLIENT_PROTOCOL, as_text
from cairnfs.xattr_text import XAttrName

CALLS = Service(CLIENT_PROTOCOL)

_parse = FsPath.parse


@CALLS.handler
def set_xattr(call: IncomingCall, request: pb.SetXAttrRequestProto) -> None:
    call.run(
        xattrs.set_xattr,
        encode_nothing,
        _parse(request.src),
        _name(request.xAttr),
        request.xAttr.value if request.xAttr.HasField("value") else None,
        request.flag,
    )


@CALLS.handler
def get_xattrs(call: IncomingCall, request: pb.GetXAttrsRequestProto) -> None:
    def encode(found: XAttrs) -> pb.GetXAttrsResponseProto:
        return pb.GetXAttrsResponseProto(xAttrs=map(_encode, found))

    call.run(xattrs.get_xattrs, encode, _parse(request.src), *map(_name, request.xAttrs))


@CALLS.handler
def list_xattrs(call: IncomingCall, request: pb.ListXAttrsRequestProto) -> None:
    def encode(found: list[XAttrName]) -> pb.ListXAttrsResponseProto:
        return pb.ListXAttrsResponseProto(xAttrs=(_encode_name(name) for name in found))

    call.run(xattrs.list_xattrs, encode, _parse(request.src))


@CALLS.handler
def remove_xattr(call: IncomingCall, request: pb.RemoveXAttrRequestProto) -> None:
    call.run(xattrs.remove_xattr, encode_nothing, _parse(request.src), _name(request.xAttr))


def _name(message: pb.XAttrProto) -> XAttrName:
    return XAttrName(message.namespace, as_text(message.name))


def _encode_name(name: XAttrName) -> pb.XAttrProto:
    namespace: pb.XAttrProto.XAttrNamespaceProto = name.namespace  # type: ignore[assignment]
    return pb.XAttrProto(namespace=namespace, name=name.name)


def _encode(xattr: XAttr) -> pb.XAttrProto:
    """As in HDFS, an empty value is not told."""
    message = _encode_name(XAttrName(xattr.namespace, xattr.name))
    if xattr.value:
        message.value = xattr.value
    return message
