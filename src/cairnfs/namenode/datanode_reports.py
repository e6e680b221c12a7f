"""Block reports: what DataNodes have in full, what has changed, what is bad.

What a DataNode reports is in rows before it is answered, so that any NameNode knows it.  A
full report is taken up page by page, and other calls are served between the pages.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from cairnfs.blocks.records import BlockId, GenerationStamp, StorageNumber
from cairnfs.blocks.registration import ReportedStorage
from cairnfs.blocks.reports import (
    REPLICAS_PAGE,
    ReplicaChange,
    ReportedState,
    Verdict,
    drop_unreported,
    mark_corrupt,
    receive_changes,
    receive_report,
)
from cairnfs.errors import IOException
from cairnfs.namenode.block_lists import INT64_END, decode_report, reported
from cairnfs.namenode.call_tasks import answer_with
from cairnfs.namenode.datanode_identity import check_registered, know_storages, reported_storage
from cairnfs.namenode.datanodes import LiveDataNode, ReportLease
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.store.schema import Table
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.protocols import DATANODE_PROTOCOL

log = logging.getLogger(__name__)

LEASE_S = 300.0  # dfs.namenode.full.block.report.lease.length.ms
DELETE_HINT_LENGTH_MAX = 255

CALLS = Service(DATANODE_PROTOCOL)

_RECEIVED = pb.ReceivedDeletedBlockInfoProto.RECEIVED
_DELETED = pb.ReceivedDeletedBlockInfoProto.DELETED
_ARRIVED = (Verdict.STORED, Verdict.KNOWN)


async def grant_lease(namenode: NameNode, node: LiveDataNode) -> int:
    """Let a DataNode send a full report; returns the number to send it under.

    The report is made after this: whatever is committed by now is older than it.
    """
    as_of = await namenode.store.last_txid()
    await learn_block_ids(namenode)
    id = namenode.datanodes.random.getrandbits(62) | 1
    node.lease = ReportLease(id, namenode.datanodes.now_s(), as_of)
    return id


async def learn_block_ids(namenode: NameNode) -> None:
    """Find out which ids blocks may have, so as to tell ours from others."""
    namenode.datanodes.block_ids_end = await namenode.store.peek("block id")


# Full reports.


@CALLS.handler
def block_report(call: IncomingCall, request: pb.BlockReportRequestProto) -> None:
    node = check_registered(call.namenode, request.registration, request.blockPoolId)
    as_of = _check_lease(call.namenode, node, request.context)
    answer_with(call, _take_report(call.namenode, node, request, as_of))


def _check_lease(
    namenode: NameNode, node: LiveDataNode, context: pb.BlockReportContextProto
) -> int:
    """A TxID at which the report was not begun yet."""
    if not context.leaseId:
        return node.registered_txid  # in Hadoop too, 0 stands for: without asking
    lease = node.lease
    if (
        lease is None
        or lease.id != context.leaseId
        or namenode.datanodes.now_s() - lease.granted_s > LEASE_S
    ):
        raise IOException(
            f"DataNode {node.record.transfer_address} has no permission to send a full report"
            " now, or too old a one: it has to ask for another with a heartbeat"
        )
    return lease.as_of


async def _take_report(
    namenode: NameNode, node: LiveDataNode, request: pb.BlockReportRequestProto, as_of: int
) -> pb.BlockReportResponseProto:
    await know_storages(
        namenode, node, [reported_storage(each.storage) for each in request.reports]
    )
    done = []
    for report in request.reports:
        number = _number(node, report.storage.storageUuid)
        await _take_storage(namenode, node, number, report, as_of)
        done.append(number)
    namenode.datanodes.note_report(node, done)
    namenode.safe_mode.note_storages(done)
    return pb.BlockReportResponseProto()


async def _take_storage(
    namenode: NameNode,
    node: LiveDataNode,
    number: StorageNumber,
    report: pb.StorageBlockReportProto,
    as_of: int,
) -> None:
    present: set[int] = set()
    verdicts = Counter[Verdict]()
    ids_end = namenode.datanodes.block_ids_end
    for page in decode_report(report, REPLICAS_PAGE):
        taken = await namenode.call(receive_report, number, page, as_of, ids_end)
        verdicts.update(taken)
        for replica in page:
            present.add(replica.block_id)
            if replica.block_id in namenode.datanodes.awaited:
                namenode.datanodes.tell_waiting(replica.block_id)
    for table in (Table.REPLICAS, Table.INVALIDATIONS):
        after = b""
        while True:
            after = await namenode.call(drop_unreported, number, table, after, present, as_of)
            if not after:
                break
    _log_report(node, report.storage.storageUuid, verdicts)


def _log_report(node: LiveDataNode, storage_id: str, verdicts: Counter[Verdict]) -> None:
    counts = ", ".join(f"{count} {verdict.name}" for verdict, count in sorted(verdicts.items()))
    address = node.record.transfer_address
    log.info("%s has reported storage %s: %s", address, storage_id, counts or "nothing is in it")
    if verdicts[Verdict.FOREIGN]:
        log.warning(
            "%s has %d replicas of blocks that were never made in this namespace: they are left"
            " alone.  If the store was restored from a backup, data may be missing from it",
            node.record.transfer_address,
            verdicts[Verdict.FOREIGN],
        )


# Incremental reports.


@CALLS.handler
def block_received_and_deleted(
    call: IncomingCall, request: pb.BlockReceivedAndDeletedRequestProto
) -> None:
    node = check_registered(call.namenode, request.registration, request.blockPoolId)
    answer_with(call, _take_changes(call.namenode, node, request))


async def _take_changes(
    namenode: NameNode, node: LiveDataNode, request: pb.BlockReceivedAndDeletedRequestProto
) -> pb.BlockReceivedAndDeletedResponseProto:
    await know_storages(namenode, node, [_storage_of(each) for each in request.blocks])
    changes = list(_decode_changes(node, request))
    for start in range(0, len(changes), REPLICAS_PAGE):
        page = changes[start : start + REPLICAS_PAGE]
        verdicts = await namenode.call(receive_changes, page, namenode.datanodes.block_ids_end)
        if Verdict.FOREIGN in verdicts:  # or made, and removed, since ids were last learnt
            await learn_block_ids(namenode)
            verdicts = await namenode.call(receive_changes, page, namenode.datanodes.block_ids_end)
        for change, verdict in zip(page, verdicts, strict=True):
            if change.is_deleted:
                node.told.pop((change.storage, change.replica.block_id), None)
            elif verdict in _ARRIVED:
                namenode.datanodes.note_replica(change.storage, change.replica.block_id)
    return pb.BlockReceivedAndDeletedResponseProto()


def _decode_changes(
    node: LiveDataNode, request: pb.BlockReceivedAndDeletedRequestProto
) -> Iterator[ReplicaChange]:
    for each in request.blocks:
        number = _number(node, _storage_of(each).id)
        for info in each.blocks:
            # Of one that is being received there is nothing to know but whether it is wanted:
            # its block may have been abandoned, or deleted with its file.
            is_done = info.status in (_RECEIVED, _DELETED)
            state = ReportedState.FINALIZED if is_done else ReportedState.RBW
            block = info.block
            replica = reported(block.blockId, block.numBytes, block.genStamp, state)
            if replica is not None:
                hint = info.deleteHint if len(info.deleteHint) <= DELETE_HINT_LENGTH_MAX else ""
                if hint == node.record.uuid:  # it has gone from one volume to another
                    others = (storage.number for storage in node.record.storages)
                    moved_from = tuple(each for each in others if each != number)
                    yield ReplicaChange(number, replica, moved_from=moved_from)
                else:
                    yield ReplicaChange(number, replica, info.status == _DELETED, hint)


def _storage_of(blocks: pb.StorageReceivedDeletedBlocksProto) -> ReportedStorage:
    if blocks.HasField("storage"):
        return reported_storage(blocks.storage)
    return ReportedStorage(blocks.storageUuid)


def _number(node: LiveDataNode, storage_id: str) -> StorageNumber:
    number = node.number_of(storage_id)
    if number is None:
        raise IOException(f"Storage {storage_id} of {node.record.transfer_address} was removed")
    return number


# Bad replicas.


@CALLS.handler
def report_bad_blocks(call: IncomingCall, request: pb.ReportBadBlocksRequestProto) -> None:
    run_bad_blocks(call, request.blocks, lambda: call.answer(pb.ReportBadBlocksResponseProto()))


def run_bad_blocks(
    call: IncomingCall,
    blocks: Sequence[hdfs_pb2.LocatedBlockProto],
    answer: Callable[[], None],
) -> None:
    """Put down which replicas are corrupt, as clients and DataNodes say, then answer."""
    remaining = iter(list(_decode_bad_blocks(call.namenode, blocks)))

    def go_on(result: None, error: BaseException | None) -> None:
        if error is not None:
            call.fail(error)
        elif (bad := next(remaining, None)) is None:
            answer()
        else:
            call.start(mark_corrupt, go_on, *bad)

    go_on(None, None)


def _decode_bad_blocks(
    namenode: NameNode, blocks: Sequence[hdfs_pb2.LocatedBlockProto]
) -> Iterator[tuple[list[StorageNumber], BlockId, GenerationStamp]]:
    for located in blocks:
        id, stamp = located.b.blockId, located.b.generationStamp
        if not (0 < id < INT64_END and stamp < INT64_END):
            continue
        # Hadoop's client names no storages: whichever the DataNode has the replica on.
        storage_ids = [*located.storageIDs, *[""] * len(located.locs)]
        for location, storage_id in zip(located.locs, storage_ids, strict=False):
            node = namenode.datanodes.get(location.id.datanodeUuid)
            if node is not None and (storages := _storages_meant(node, storage_id)):
                yield storages, BlockId(id), GenerationStamp(stamp)


def _storages_meant(node: LiveDataNode, storage_id: str) -> list[StorageNumber]:
    """Without an id, those that could be read: what is away is not what somebody has seen.

    Which that are, a NameNode that has not heard of the DataNode does not know.
    """
    return [
        storage.number
        for storage in node.record.storages
        if storage_id == storage.id
        or (not storage_id and not (node.is_heard and node.has_failed(storage)))
    ]
