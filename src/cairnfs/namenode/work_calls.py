"""CairnProtocol: the work that calls have left for later, listed and done.  For the superuser."""

from __future__ import annotations

from collections.abc import Iterable

from cairnfs.errors import IllegalArgumentException
from cairnfs.namenode.admin_protocols import check_superuser
from cairnfs.namenode.call_tasks import answer_with
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem.outstanding import WorkItem, WorkKind
from cairnfs.wire.proto import cairn_pb2 as pb
from cairnfs.wire.protocols import CAIRN_PROTOCOL

CALLS = Service(CAIRN_PROTOCOL)

ROWS = 100_000  # of a part, and of a call
LIMIT_MS = 5_000
LIMIT_MS_MAX = 30_000  # callers do not wait for much longer
ITEMS_MAX = 10_000  # of a call
TXID_MAX = 2**63 - 1


@CALLS.handler
def list_work(call: IncomingCall, request: pb.ListWorkRequestProto) -> None:
    check_superuser(call)
    kinds = frozenset(map(WorkKind, request.kinds)) or frozenset(WorkKind)
    answer_with(
        call, _list(call.namenode, kinds, request.cursor, min(request.rows or ROWS, TXID_MAX))
    )


@CALLS.handler
def do_work(call: IncomingCall, request: pb.DoWorkRequestProto) -> None:
    check_superuser(call)
    if len(request.items) > ITEMS_MAX:
        raise IllegalArgumentException(
            f"doWork takes up to {ITEMS_MAX} items, not {len(request.items)}"
        )
    limit_ms = min(request.limitMs or LIMIT_MS, LIMIT_MS_MAX)
    items = list(map(_from_item, request.items))
    answer_with(call, _do(call.namenode, items, request.rows or ROWS, limit_ms / 1000))


async def _list(
    namenode: NameNode, kinds: frozenset[WorkKind], cursor: bytes, rows: int
) -> pb.ListWorkResponseProto:
    page = await namenode.outstanding.list_page(kinds, cursor, rows)
    response = pb.ListWorkResponseProto(items=_to_items(page.items), notYet=page.not_yet)
    if page.cursor:
        response.cursor = page.cursor
    return response


async def _do(
    namenode: NameNode, items: list[WorkItem], rows: int, limit_s: float
) -> pb.DoWorkResponseProto:
    done = await namenode.outstanding.work_off(items, rows, limit_s)
    return pb.DoWorkResponseProto(rows=done.rows, done=done.done, left=_to_items(done.left))


def _from_item(message: pb.WorkItemProto) -> WorkItem:
    if max(message.id, message.txid, message.begin, message.end) > TXID_MAX:
        raise IllegalArgumentException("an item of work has a number that no inode or TxID has")
    return WorkItem(WorkKind(message.kind), message.id, message.txid, message.begin, message.end)


def _to_items(items: Iterable[WorkItem]) -> list[pb.WorkItemProto]:
    return [
        pb.WorkItemProto(
            kind=item.kind.name,
            id=item.id,
            txid=item.txid or None,
            begin=item.begin or None,
            end=item.end or None,
        )
        for item in items
    ]
