"""DatanodeProtocol: registration, and heartbeats with commands; reports are beside it.

How full and busy a DataNode is stays in memory (`datanodes`).  Commands are given only by
the NameNode that has the redundancy duty: to real HDFS DataNodes it is the active one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from cairnfs.blocks.invalidations import take_invalidations
from cairnfs.blocks.records import Block, StorageNumber
from cairnfs.blocks.registration import ReportedStorage, list_datanodes, register_datanode
from cairnfs.namenode.block_messages import (
    fill_block_to_write,
    fill_datanode_id,
    from_extended_block,
)
from cairnfs.namenode.call_tasks import answer_with
from cairnfs.namenode.datanode_identity import (
    decode_registration,
    find_registered,
    know_storages,
    reported_storage,
)
from cairnfs.namenode.datanode_reports import CALLS as REPORTS
from cairnfs.namenode.datanode_reports import grant_lease, learn_block_ids
from cairnfs.namenode.datanode_reports import run_bad_blocks as run_bad_blocks
from cairnfs.namenode.datanodes import LiveDataNode, Located, StorageUsage, Transfer
from cairnfs.namenode.messages import to_signed
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem import block_recovery
from cairnfs.namesystem.answers import LocatedBlock
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2, hdfs_server_pb2
from cairnfs.wire.protocols import DATANODE_LIFELINE_PROTOCOL, DATANODE_PROTOCOL, as_text

log = logging.getLogger(__name__)

SOFTWARE_VERSION = "3.5.0"  # of the Hadoop whose protocol this is
LAYOUT_VERSION = -67
REPORT_BUFFERS = 1  # the capability to read block reports as varints (NamespaceInfo.Capability)
INVALIDATIONS_MAX = 1000  # dfs.block.invalidate.limit
TELL_AGAIN_S = 60.0  # what was not reported as deleted by then is told again
TRANSFERS_MAX = 8  # commands to copy in one heartbeat
USAGE_BYTES_MAX = 1 << 60  # of a volume; sums of it are still numbers of 64 bits

_UINT32 = 0xFFFFFFFF

CALLS = Service(DATANODE_PROTOCOL)
LIFELINE_SERVICE = Service(DATANODE_LIFELINE_PROTOCOL)


def namespace_info(namenode: NameNode) -> hdfs_server_pb2.NamespaceInfoProto:
    """Which namespace this NameNode serves."""
    info = hdfs_server_pb2.NamespaceInfoProto(
        buildVersion="cairnfs",
        unused=0,
        blockPoolID=namenode.block_pool_id,
        softwareVersion=SOFTWARE_VERSION,
        capabilities=REPORT_BUFFERS,
    )
    info.storageInfo.layoutVersion = LAYOUT_VERSION & _UINT32
    info.storageInfo.namespceID = namenode.namespace_id
    info.storageInfo.clusterID = namenode.cluster_id
    info.storageInfo.cTime = 0
    return info


@CALLS.handler
def version_request(
    call: IncomingCall, request: hdfs_server_pb2.VersionRequestProto
) -> hdfs_server_pb2.VersionResponseProto:
    return hdfs_server_pb2.VersionResponseProto(info=namespace_info(call.namenode))


@CALLS.handler
def register_datanode_(call: IncomingCall, request: pb.RegisterDatanodeRequestProto) -> None:
    """Take up a DataNode; its address is where the call comes from, as HDFS has it."""
    answer_with(call, _register(call.namenode, request.registration, call.caller.address))


async def _register(
    namenode: NameNode, registration: pb.DatanodeRegistrationProto, address: str
) -> pb.RegisterDatanodeResponseProto:
    registered = decode_registration(namenode, registration, address)
    record = await namenode.call(register_datanode, registered)
    txid = await namenode.store.last_txid()
    await learn_block_ids(namenode)
    namenode.datanodes.register(record, txid)
    log.info("DataNode %s at %s has registered", record.uuid, record.transfer_address)
    response = pb.RegisterDatanodeResponseProto(registration=registration)
    response.registration.datanodeID.ipAddr = record.ip_address
    return response


@CALLS.handler
def send_heartbeat(
    call: IncomingCall, request: pb.HeartbeatRequestProto
) -> pb.HeartbeatResponseProto | None:
    node = find_registered(call.namenode, request.registration)
    if node is None:
        response = _heartbeat_response(call.namenode)
        response.cmds.add(cmdType=pb.DatanodeCommandProto.RegisterCommand).registerCmd.SetInParent()
        return response
    answer_with(call, _take_heartbeat(call.namenode, node, request))
    return None


async def _take_heartbeat(
    namenode: NameNode, node: LiveDataNode, request: pb.HeartbeatRequestProto
) -> pb.HeartbeatResponseProto:
    await know_storages(namenode, node, [_storage_of(report) for report in request.reports])
    _hear(namenode, node, request)
    await _refresh_records(namenode)
    response = _heartbeat_response(namenode)
    _add_bandwidth(node, response)
    if request.requestFullBlockReportLease:
        response.fullBlockReportLeaseId = await grant_lease(namenode, node)
    if not namenode.gives_commands or namenode.safe_mode.is_on:
        node.transfers.clear()  # of a time when it was for us to give them
        node.moves.clear()
        node.told.clear()
        node.given_up.clear()  # whoever has the duty sees volumes come and go
        namenode.block_recoveries.forget()
        namenode.moves.forget_all()
        namenode.balancer.forget()
        return response
    _add_recoveries(namenode, node, response)
    _add_transfers(namenode, node, response)
    _add_moves(namenode, node, response)
    await _add_invalidations(namenode, node, response)
    return response


@CALLS.handler
def commit_block_synchronization(
    call: IncomingCall, request: pb.CommitBlockSynchronizationRequestProto
) -> None:
    """A primary has recovered a block."""
    datanodes = call.namenode.datanodes
    found = map(
        datanodes.number_of,
        [target.datanodeUuid for target in request.newTaragets],
        request.newTargetStorages,
    )
    answer_with(
        call,
        _commit_recovered(
            call.namenode,
            from_extended_block(request.block),
            to_signed(request.newGenStamp),
            to_signed(request.newLength),
            request.deleteBlock,
            [number for number in found if number is not None],
        ),
    )


async def _commit_recovered(
    namenode: NameNode,
    block: Block,
    stamp: int,
    length_bytes: int,
    removes: bool,
    storages: list[StorageNumber],
) -> pb.CommitBlockSynchronizationResponseProto:
    namenode.safe_mode.check_off("commit_block_synchronization", ())
    await namenode.call(
        block_recovery.commit_block_synchronization, block, stamp, length_bytes, removes, storages
    )
    namenode.block_recoveries.note_done(stamp)
    what = "removed" if removes else f"recovered with {length_bytes} bytes as generation {stamp}"
    log.info("%s was %s", block, what)
    return pb.CommitBlockSynchronizationResponseProto()


@LIFELINE_SERVICE.handler
def send_lifeline(
    call: IncomingCall, request: pb.HeartbeatRequestProto
) -> pb.LifelineResponseProto:
    """A DataNode that is too busy for heartbeats says that it is alive."""
    node = find_registered(call.namenode, request.registration)
    if node is not None:
        _hear(call.namenode, node, request)
    return pb.LifelineResponseProto()


@CALLS.handler
def error_report(
    call: IncomingCall, request: pb.ErrorReportRequestProto
) -> pb.ErrorReportResponseProto:
    who = request.registartion.datanodeID
    log.warning(
        "DataNode %s:%d reports: %s", as_text(who.ipAddr), who.xferPort, as_text(request.msg)
    )
    return pb.ErrorReportResponseProto()


@CALLS.handler
def cache_report(
    call: IncomingCall, request: pb.CacheReportRequestProto
) -> pb.CacheReportResponseProto:
    return pb.CacheReportResponseProto()


DATANODE_SERVICE = Service.join(CALLS, REPORTS)


# What a heartbeat says.


def _storage_of(report: hdfs_pb2.StorageReportProto) -> ReportedStorage:
    if report.HasField("storage"):
        return reported_storage(report.storage)
    return ReportedStorage(report.storageUuid)


def _hear(namenode: NameNode, node: LiveDataNode, request: pb.HeartbeatRequestProto) -> None:
    usage = {
        _storage_of(report).id: StorageUsage(
            min(report.capacity, USAGE_BYTES_MAX),
            min(report.dfsUsed, USAGE_BYTES_MAX),
            min(report.remaining, USAGE_BYTES_MAX),
            min(report.blockPoolUsed, USAGE_BYTES_MAX),
            min(report.nonDfsUsed, USAGE_BYTES_MAX),
            report.failed,
        )
        for report in request.reports
    }
    namenode.datanodes.hear(
        node, namenode.clock.now_ms(), usage, request.xceiverCount, request.failedVolumes
    )


async def _refresh_records(namenode: NameNode) -> None:
    """Now and then, learn what other NameNodes have put down of DataNodes."""
    if not namenode.datanodes.must_refresh_records():
        return
    after = b""
    while page := await namenode.call(list_datanodes, after):
        for record in page:
            namenode.datanodes.put(record)
        after = page[-1].uuid.encode()


# What it is answered with.


def _heartbeat_response(namenode: NameNode) -> pb.HeartbeatResponseProto:
    response = pb.HeartbeatResponseProto()
    state = hdfs_server_pb2.NNHAStatusHeartbeatProto
    response.haStatus.state = state.ACTIVE if namenode.gives_commands else state.STANDBY
    response.haStatus.txid = max(namenode.statistics.committed, 1)
    return response


def _add_recoveries(
    namenode: NameNode, node: LiveDataNode, response: pb.HeartbeatResponseProto
) -> None:
    """Have a DataNode lead the recovery of blocks."""
    attempts = namenode.block_recoveries.take(node)
    if not attempts:
        return
    command = response.cmds.add(cmdType=pb.DatanodeCommandProto.BlockRecoveryCommand)
    for attempt in attempts:
        message = command.recoveryCmd.blocks.add(newGenStamp=attempt.stamp)
        storages = attempt.participants.storages
        fill_block_to_write(message.block, namenode, LocatedBlock(attempt.block, 0, storages))
        if attempt.cut is not None:
            message.truncateBlock.blockId = attempt.cut.id
            message.truncateBlock.genStamp = attempt.cut.generation_stamp
            message.truncateBlock.numBytes = attempt.cut.length_bytes


def _add_bandwidth(node: LiveDataNode, response: pb.HeartbeatResponseProto) -> None:
    """Tell a DataNode how fast replicas may be moved; any NameNode may be asked to."""
    if node.bandwidth_bytes_per_s:
        command = response.cmds.add(cmdType=pb.DatanodeCommandProto.BalancerBandwidthCommand)
        command.balancerCmd.bandwidth = node.bandwidth_bytes_per_s
        node.bandwidth_bytes_per_s = 0


def _add_transfers(
    namenode: NameNode, node: LiveDataNode, response: pb.HeartbeatResponseProto
) -> None:
    if node.transfers:
        transfers, node.transfers = node.transfers[:TRANSFERS_MAX], node.transfers[TRANSFERS_MAX:]
        command = _block_command(namenode, response, pb.BlockCommandProto.TRANSFER)
        _add_copies(command, transfers)


def _add_moves(namenode: NameNode, node: LiveDataNode, response: pb.HeartbeatResponseProto) -> None:
    """Have replicas go elsewhere; in Hadoop's words: be copied, and here is why."""
    if node.moves:
        moves, node.moves = node.moves, []
        command = _block_command(namenode, response, pb.BlockCommandProto.TRANSFER)
        command.isMove = True
        _add_copies(command, moves)


def _add_copies(command: pb.BlockCommandProto, transfers: Sequence[Transfer]) -> None:
    for transfer in transfers:
        block = transfer.block
        command.blocks.add(
            blockId=block.id, genStamp=block.generation_stamp, numBytes=block.replica_bytes
        )
        _add_targets(command, transfer.targets)


async def _add_invalidations(
    namenode: NameNode, node: LiveDataNode, response: pb.HeartbeatResponseProto
) -> None:
    """Tell a DataNode what to delete: what rows say at this moment, and nothing else.

    Not what was on a volume that broke: it would be deleted from whichever has the block now.
    """
    now_s = namenode.datanodes.now_s()
    node.told = {key: at_s for key, at_s in node.told.items() if now_s - at_s < TELL_AGAIN_S}
    orders = await namenode.call(
        take_invalidations,
        [storage.number for storage in node.record.storages if not node.has_failed(storage)],
        frozenset(node.told),
        namenode.datanodes.is_readable,
        INVALIDATIONS_MAX,
    )
    if not orders or not namenode.gives_commands:
        return
    command = _block_command(namenode, response, pb.BlockCommandProto.INVALIDATE)
    for storage, order in orders:
        node.told[storage, order.block_id] = now_s
        command.blocks.add(blockId=order.block_id, genStamp=order.generation_stamp, numBytes=0)
        command.targets.add()


def _block_command(
    namenode: NameNode,
    response: pb.HeartbeatResponseProto,
    action: pb.BlockCommandProto.Action,
) -> pb.BlockCommandProto:
    command = response.cmds.add(cmdType=pb.DatanodeCommandProto.BlockCommand).blkCmd
    command.action = action
    command.blockPoolId = namenode.block_pool_id
    return command


def _add_targets(command: pb.BlockCommandProto, targets: Sequence[Located]) -> None:
    infos = command.targets.add()
    for target in targets:
        info = infos.datanodes.add()
        fill_datanode_id(info.id, target.datanode)
        info.location = target.datanode.rack
    command.targetStorageUuids.add(storageUuids=[target.storage.id for target in targets])
    names = [target.storage.type.name for target in targets]
    command.targetStorageTypes.add(storageTypes=map(hdfs_pb2.StorageTypeProto.Value, names))
