"""CairnProtocol: a whole tree at one moment, read in parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from cairnfs.errors import IllegalArgumentException
from cairnfs.namenode.datanodes import DataNodes
from cairnfs.namenode.responses import encode_nothing
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem import open_files, snapshot_list, tree_scan, view_changes, views
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.open_files import LeasePage
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.snapshot_changes import ChangePage, Position
from cairnfs.namesystem.snapshot_list import SnapshotListPage, SnapshotPlace
from cairnfs.namesystem.tree_parts import FORMAT, Cursor, KnownStorage, Part, ScanPage, Split
from cairnfs.namesystem.views import View
from cairnfs.wire.proto import cairn_pb2
from cairnfs.wire.protocols import CAIRN_PROTOCOL, as_text

CALLS = Service(CAIRN_PROTOCOL)

_T = TypeVar("_T")
_encode = msgspec.msgpack.Encoder().encode


@CALLS.handler
def open_view(call: IncomingCall, request: cairn_pb2.OpenViewRequestProto) -> None:
    def encode(view: View) -> cairn_pb2.OpenViewResponseProto:
        return cairn_pb2.OpenViewResponseProto(view=to_view(view))

    limit_ms = request.limitMs or views.VIEW_LIMIT_MS
    call.run(
        views.open_view,
        encode,
        FsPath.parse(request.path),
        request.txid,
        limit_ms,
        as_text(request.label),
    )


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
        response = cairn_pb2.ScanViewResponseProto(page=page.data)
        if page.cursor is not None:
            response.cursor = _encode(page.cursor)
        if page.storages:
            response.storages = _encode(_known_storages(call.namenode.datanodes, page.storages))
        return response

    part = _decode(request.part, Part)
    cursor = _decode(request.cursor, Cursor) if request.cursor else None
    call.run(
        tree_scan.scan_part,
        encode,
        request.number,
        part,
        cursor,
        tree_scan.PAGE_INODES,
        request.details,
    )


@CALLS.handler
def is_view_current(call: IncomingCall, request: cairn_pb2.IsViewCurrentRequestProto) -> None:
    def encode(is_current: bool) -> cairn_pb2.IsViewCurrentResponseProto:
        return cairn_pb2.IsViewCurrentResponseProto(isCurrent=is_current)

    call.run(view_changes.is_view_current, encode, request.number)


@CALLS.handler
def get_view_changes(call: IncomingCall, request: cairn_pb2.GetViewChangesRequestProto) -> None:
    def encode(page: ChangePage) -> cairn_pb2.GetViewChangesResponseProto:
        response = cairn_pb2.GetViewChangesResponseProto(page=_encode(page.changes))
        if page.resume is not None:
            response.cursor = _encode(page.resume)
        return response

    cursor = _decode(request.cursor, Position) if request.cursor else None
    call.run(view_changes.view_changes, encode, request.fromNumber, request.toNumber, cursor)


@CALLS.handler
def list_all_snapshots(call: IncomingCall, request: cairn_pb2.ListAllSnapshotsRequestProto) -> None:
    def encode(page: SnapshotListPage) -> cairn_pb2.ListAllSnapshotsResponseProto:
        response = cairn_pb2.ListAllSnapshotsResponseProto(page=_encode(page.snapshots))
        if page.resume is not None:
            response.cursor = _encode(page.resume)
        return response

    cursor = _decode(request.cursor, SnapshotPlace) if request.cursor else None
    call.run(snapshot_list.list_all_snapshots, encode, cursor)


@CALLS.handler
def list_leases(call: IncomingCall, request: cairn_pb2.ListLeasesRequestProto) -> None:
    def encode(page: LeasePage) -> cairn_pb2.ListLeasesResponseProto:
        return cairn_pb2.ListLeasesResponseProto(page=_encode(page.leases), after=page.next_after)

    call.run(open_files.list_leases, encode, InodeId(request.after))


def _known_storages(datanodes: DataNodes, numbers: Iterable[int]) -> list[KnownStorage]:
    """What is known of storages, as far as they are still there."""
    found = []
    for number in numbers:
        known = datanodes.storage(number)
        if known is not None:
            node, storage = known
            record = node.record
            found.append(
                KnownStorage(
                    number,
                    storage.id,
                    storage.type,
                    record.transfer_address,
                    record.uuid,
                    record.rack,
                    record.admin_state,
                    datanodes.is_alive(node),
                )
            )
    return found


def to_view(view: View) -> cairn_pb2.ViewProto:
    return cairn_pb2.ViewProto(
        number=view.number,
        txid=view.txid,
        path=view.path,
        user=view.user,
        renewedMs=view.renewed_ms,
        format=FORMAT,
        label=view.label,
    )


def _decode(data: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError):
        raise IllegalArgumentException(
            f"{data[:40].hex()} is no {kind.__name__.lower()} of a view: send back what came"
        ) from None
