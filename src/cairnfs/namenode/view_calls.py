"""CairnProtocol: a whole tree at one moment, read in parts."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from cairnfs.errors import IllegalArgumentException
from cairnfs.namenode.messages import encode_nothing
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem import tree_scan, views
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.tree_scan import FORMAT, Cursor, Part, ScanPage, Split
from cairnfs.namesystem.views import View
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.protocols import CAIRN_PROTOCOL

CALLS = Service(CAIRN_PROTOCOL)

_T = TypeVar("_T")
_encode = msgspec.msgpack.Encoder().encode


@CALLS.handler
def open_view(call: IncomingCall, request: cairn_pb2.OpenViewRequestProto) -> None:
    def encode(view: View) -> cairn_pb2.OpenViewResponseProto:
        return cairn_pb2.OpenViewResponseProto(view=to_view(view))

    call.run(views.open_view, encode, FsPath.parse(request.path))


@CALLS.handler
def renew_view(call: IncomingCall, request: cairn_pb2.RenewViewRequestProto) -> None:
    def encode(view: View) -> cairn_pb2.RenewViewResponseProto:
        return cairn_pb2.RenewViewResponseProto(view=to_view(view))

    call.run(views.renew_view, encode, request.number)


@CALLS.handler
def close_view(call: IncomingCall, request: cairn_pb2.CloseViewRequestProto) -> None:
    call.run(views.close_view, encode_nothing, request.number)


@CALLS.handler
def list_views(call: IncomingCall, request: cairn_pb2.ListViewsRequestProto) -> None:
    def encode(found: list[View]) -> cairn_pb2.ListViewsResponseProto:
        return cairn_pb2.ListViewsResponseProto(views=map(to_view, found))

    call.run(views.list_views, encode)


@CALLS.handler
def split_view(call: IncomingCall, request: cairn_pb2.SplitViewRequestProto) -> None:
    def encode(split: Split) -> cairn_pb2.SplitViewResponseProto:
        return cairn_pb2.SplitViewResponseProto(split=_encode(split))

    part = _decode(request.part, Part)
    call.run(tree_scan.split_part, encode, request.number, part, request.inodes)


@CALLS.handler
def scan_view(call: IncomingCall, request: cairn_pb2.ScanViewRequestProto) -> None:
    def encode(page: ScanPage) -> cairn_pb2.ScanViewResponseProto:
        response = cairn_pb2.ScanViewResponseProto(page=_encode(page.listed))
        if page.cursor is not None:
            response.cursor = _encode(page.cursor)
        return response

    part = _decode(request.part, Part)
    cursor = _decode(request.cursor, Cursor) if request.cursor else None
    call.run(tree_scan.scan_part, encode, request.number, part, cursor)


def to_view(view: View) -> cairn_pb2.ViewProto:
    return cairn_pb2.ViewProto(
        number=view.number,
        txid=view.txid,
        path=view.path,
        user=view.user,
        renewedMs=view.renewed_ms,
        format=FORMAT,
    )


def _decode(data: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.MsgspecError:
        raise IllegalArgumentException(
            f"{data[:40].hex()} is no {kind.__name__.lower()} of a view: send back what came"
        ) from None
