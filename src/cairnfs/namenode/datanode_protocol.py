"""DatanodeProtocol: registration, heartbeats with commands, block reports.

What a DataNode reports becomes rows before it is answered, so that any NameNode knows it;
how full and busy it is stays in memory (`datanodes`).  Commands are given only by the
NameNode that has the redundancy duty: to real HDFS DataNodes it is the active one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from cairnfs.blocks.records import (
    BlockId,
    DataNode,
    GenerationStamp,
    Storage,
    StorageNumber,
    StorageType,
)
from cairnfs.blocks.registration import (
    ReportedStorage,
    add_storages,
    register_datanode,
)
from cairnfs.blocks.reports import (
    REPLICAS_PAGE,
    ReportedReplica,
    Verdict,
    delete_replicas,
    mark_corrupt,
    receive_replicas,
    reconcile_replicas,
)
from cairnfs.blocks.topology import DEFAULT_RACK, parse_rack
from cairnfs.errors import (
    DisallowedDatanodeException,
    IOException,
    UnregisteredNodeException,
)
from cairnfs.namenode.datanodes import LiveDataNode, Located, StorageUsage
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.wire.framing import ProtocolError, decode_varint
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2, hdfs_server_pb2
from cairnfs.wire.protocols import DATANODE_LIFELINE_PROTOCOL, DATANODE_PROTOCOL

log = logging.getLogger(__name__)

SOFTWARE_VERSION = "3.5.0"  # of the Hadoop whose protocol this is
LAYOUT_VERSION = -67
REPORT_BUFFERS = 2  # the capability to read block reports as varints
INVALIDATIONS_MAX = 1000  # dfs.block.invalidate.limit
TRANSFERS_MAX = 8  # commands to copy in one heartbeat

_UINT32 = 0xFFFFFFFF
_BLOCK_ID_END = 1 << 63
_FINALIZED = 0

DATANODE_SERVICE = Service(DATANODE_PROTOCOL)
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


@DATANODE_SERVICE.handler
def version_request(
    call: IncomingCall, request: hdfs_server_pb2.VersionRequestProto
) -> hdfs_server_pb2.VersionResponseProto:
    return hdfs_server_pb2.VersionResponseProto(info=namespace_info(call.namenode))


@DATANODE_SERVICE.handler
def register_datanode_(call: IncomingCall, request: pb.RegisterDatanodeRequestProto) -> None:
    """Take up a DataNode; its address is where the call comes from, as HDFS has it."""
    namenode, registration = call.namenode, request.registration
    _check_cluster(namenode, registration)
    registered = _decode_registration(registration, call.caller.address)

    def done(record: DataNode | None, error: BaseException | None) -> None:
        if record is None:
            call.fail(error or IOException("not registered"))
            return
        namenode.datanodes.register(record)
        log.info("DataNode %s at %s has registered", record.uuid, record.transfer_address)
        response = pb.RegisterDatanodeResponseProto(registration=registration)
        response.registration.datanodeID.ipAddr = record.ip_address
        call.answer(response)

    call.start(register_datanode, done, registered)


@DATANODE_SERVICE.handler
def send_heartbeat(
    call: IncomingCall, request: pb.HeartbeatRequestProto
) -> pb.HeartbeatResponseProto | None:
    node = _registered(call.namenode, request.registration)
    if node is None:
        response = _heartbeat_response(call.namenode, request)
        response.cmds.add(cmdType=pb.DatanodeCommandProto.RegisterCommand).registerCmd.SetInParent()
        return response

    def answer() -> None:
        _hear(call.namenode, node, request)
        response = _heartbeat_response(call.namenode, request)
        _add_commands(call.namenode, node, response)
        call.answer(response)

    _with_storages(call, node, [report.storage for report in request.reports], answer)
    return None


@LIFELINE_SERVICE.handler
def send_lifeline(
    call: IncomingCall, request: pb.HeartbeatRequestProto
) -> pb.LifelineResponseProto:
    """A DataNode that is too busy for heartbeats says that it is alive."""
    node = _registered(call.namenode, request.registration)
    if node is not None:
        _hear(call.namenode, node, request)
    return pb.LifelineResponseProto()


@DATANODE_SERVICE.handler
def block_report(call: IncomingCall, request: pb.BlockReportRequestProto) -> None:
    """Everything that some storages have; it is reconciled page by page."""
    namenode = call.namenode
    node = _check_registered(namenode, request.registration)
    reports = [(report.storage, _decode_report(report)) for report in request.reports]

    def reconcile() -> None:
        steps = [
            (number, first, end, page)
            for storage, replicas in reports
            if (number := _number(node, storage.storageUuid)) is not None
            for first, end, page in _pages(replicas)
        ]
        _run_each(call, reconcile_replicas, steps, finish)

    def finish() -> None:
        for storage, replicas in reports:
            number = _number(node, storage.storageUuid)
            if number is not None:
                node.reported.add(number)
                for replica in replicas if namenode.datanodes.has_waiting else ():
                    namenode.datanodes.note_replica(number, replica.block_id)
        namenode.datanodes.put(node.record)
        namenode.safe_mode.note_storages(node.record)
        call.answer(pb.BlockReportResponseProto())

    _with_storages(call, node, [storage for storage, _ in reports], reconcile)


@DATANODE_SERVICE.handler
def block_received_and_deleted(
    call: IncomingCall, request: pb.BlockReceivedAndDeletedRequestProto
) -> None:
    namenode = call.namenode
    node = _check_registered(namenode, request.registration)
    storages = [_storage_of(each) for each in request.blocks]

    def take() -> None:
        received: list[tuple[StorageNumber, list[ReportedReplica]]] = []
        deleted: list[tuple[StorageNumber, list[BlockId]]] = []
        for storage, each in zip(storages, request.blocks, strict=True):
            number = _number(node, storage.storageUuid)
            if number is None:
                continue
            new = [
                ReportedReplica(
                    BlockId(info.block.blockId),
                    GenerationStamp(info.block.genStamp),
                    info.block.numBytes,
                )
                for info in each.blocks
                if info.status == pb.ReceivedDeletedBlockInfoProto.RECEIVED
            ]
            gone = [
                BlockId(info.block.blockId)
                for info in each.blocks
                if info.status == pb.ReceivedDeletedBlockInfoProto.DELETED
            ]
            if new:
                received.append((number, new))
            if gone:
                deleted.append((number, gone))
                for block_id in gone:
                    node.invalidations.pop(block_id, None)

        def then() -> None:
            _run_each(call, delete_replicas, deleted, answer)

        def note(step: tuple[Any, ...], verdicts: Any) -> None:
            for replica, verdict in zip(step[1], verdicts, strict=True):
                if verdict in (Verdict.STORED, Verdict.KNOWN):
                    namenode.datanodes.note_replica(step[0], replica.block_id)

        _run_each(call, receive_replicas, received, then, note)

    def answer() -> None:
        call.answer(pb.BlockReceivedAndDeletedResponseProto())

    _with_storages(call, node, storages, take)


@DATANODE_SERVICE.handler
def report_bad_blocks(call: IncomingCall, request: pb.ReportBadBlocksRequestProto) -> None:
    run_bad_blocks(call, request.blocks, lambda: call.answer(pb.ReportBadBlocksResponseProto()))


def run_bad_blocks(
    call: IncomingCall,
    blocks: Sequence[hdfs_pb2.LocatedBlockProto],
    answer: Callable[[], None],
) -> None:
    """Put down which replicas are corrupt, as clients and DataNodes say."""
    datanodes = call.namenode.datanodes
    steps = []
    for located in blocks:
        # Hadoop's client names no storages: whichever the DataNode has the replica on.
        storage_ids = [*located.storageIDs, *[""] * len(located.locs)]
        for location, storage_id in zip(located.locs, storage_ids, strict=False):
            node = datanodes.get(location.id.datanodeUuid)
            for storage in node.record.storages if node is not None else ():
                if storage_id in ("", storage.id):
                    steps.append((storage.number, BlockId(located.b.blockId)))
    _run_each(call, mark_corrupt, steps, answer)


@DATANODE_SERVICE.handler
def error_report(
    call: IncomingCall, request: pb.ErrorReportRequestProto
) -> pb.ErrorReportResponseProto:
    who = request.registartion.datanodeID
    log.warning("DataNode %s:%d reports: %s", who.ipAddr, who.xferPort, request.msg)
    return pb.ErrorReportResponseProto()


@DATANODE_SERVICE.handler
def cache_report(
    call: IncomingCall, request: pb.CacheReportRequestProto
) -> pb.CacheReportResponseProto:
    return pb.CacheReportResponseProto()


# Who a DataNode is.


def _check_cluster(namenode: NameNode, registration: pb.DatanodeRegistrationProto) -> None:
    storage = registration.storageInfo
    if not registration.datanodeID.datanodeUuid:
        raise DisallowedDatanodeException("A DataNode without a UUID cannot register")
    if storage.clusterID != namenode.cluster_id or storage.namespceID != namenode.namespace_id:
        raise UnregisteredNodeException(
            f"DataNode {registration.datanodeID.hostName}:{registration.datanodeID.xferPort}"
            f" belongs to cluster {storage.clusterID}, namespace {storage.namespceID}; this is"
            f" {namenode.cluster_id}, namespace {namenode.namespace_id}"
        )


def _decode_registration(registration: pb.DatanodeRegistrationProto, address: str) -> DataNode:
    id = registration.datanodeID
    return DataNode(
        uuid=id.datanodeUuid,
        ip_address=address,
        host_name=id.hostName,
        transfer_port=id.xferPort,
        info_port=id.infoPort,
        ipc_port=id.ipcPort,
        info_secure_port=id.infoSecurePort,
        rack=parse_rack(registration.rack) if registration.rack else DEFAULT_RACK,
        software_version=registration.softwareVersion,
    )


def _registered(
    namenode: NameNode, registration: pb.DatanodeRegistrationProto
) -> LiveDataNode | None:
    """The DataNode that calls, if it has registered with this NameNode since it started.

    Of two with one identity, the one that registered last is it.
    """
    id = registration.datanodeID
    node = namenode.datanodes.get(id.datanodeUuid)
    if node is None or not node.is_registered:
        return None
    if node.record.transfer_port != id.xferPort or node.record.ipc_port != id.ipcPort:
        raise UnregisteredNodeException(
            f"DataNode {id.datanodeUuid} is at {node.record.transfer_address} by now; another one"
            f" at port {id.xferPort} cannot have the same identity"
        )
    return node


def _check_registered(
    namenode: NameNode, registration: pb.DatanodeRegistrationProto
) -> LiveDataNode:
    node = _registered(namenode, registration)
    if node is None:
        # Not UnregisteredNodeException, for which DataNodes give up: they try again, and are
        # told to register by the answer to their next heartbeat.
        id = registration.datanodeID
        raise IOException(
            f"DataNode {id.ipAddr}:{id.xferPort} ({id.datanodeUuid}) has not registered since"
            " this NameNode started"
        )
    return node


# Storages.


def _with_storages(
    call: IncomingCall,
    node: LiveDataNode,
    storages: Sequence[hdfs_pb2.DatanodeStorageProto],
    go_on: Callable[[], None],
) -> None:
    """Go on when each of these storages has a number: nearly always at once."""
    known = {storage.id: storage for storage in node.record.storages}
    reported = [
        ReportedStorage(storage.storageUuid, StorageType(storage.storageType))
        for storage in storages
    ]
    if all(_is_known(known, each) for each in reported):
        go_on()
        return

    def done(record: DataNode | None, error: BaseException | None) -> None:
        if record is None:
            call.fail(error or IOException("storages were not taken up"))
            return
        call.namenode.datanodes.put(record)
        try:
            go_on()
        except Exception as failure:  # we are not in the handler any more
            call.fail(failure)

    call.start(add_storages, done, node.record.uuid, reported)


def _is_known(known: dict[str, Storage], reported: ReportedStorage) -> bool:
    storage = known.get(reported.id)
    return storage is not None and storage.type is reported.type


def _storage_of(
    blocks: pb.StorageReceivedDeletedBlocksProto,
) -> hdfs_pb2.DatanodeStorageProto:
    if blocks.HasField("storage"):
        return blocks.storage
    return hdfs_pb2.DatanodeStorageProto(storageUuid=blocks.storageUuid)


def _number(node: LiveDataNode, storage_id: str) -> StorageNumber | None:
    for storage in node.record.storages:
        if storage.id == storage_id:
            return storage.number
    return None


# Heartbeats.


def _hear(namenode: NameNode, node: LiveDataNode, request: pb.HeartbeatRequestProto) -> None:
    usage = {
        report.storage.storageUuid or report.storageUuid: StorageUsage(
            report.capacity,
            report.dfsUsed,
            report.remaining,
            report.blockPoolUsed,
            report.nonDfsUsed,
            report.failed,
        )
        for report in request.reports
    }
    namenode.datanodes.hear(
        node, namenode.clock.now_ms(), usage, request.xceiverCount, request.failedVolumes
    )


def _heartbeat_response(
    namenode: NameNode, request: pb.HeartbeatRequestProto
) -> pb.HeartbeatResponseProto:
    response = pb.HeartbeatResponseProto()
    state = hdfs_server_pb2.NNHAStatusHeartbeatProto
    response.haStatus.state = state.ACTIVE if namenode.gives_commands else state.STANDBY
    response.haStatus.txid = max(namenode.statistics.committed, 1)
    if request.requestFullBlockReportLease:
        response.fullBlockReportLeaseId = namenode.datanodes.random.getrandbits(62) | 1
    return response


def _add_commands(
    namenode: NameNode, node: LiveDataNode, response: pb.HeartbeatResponseProto
) -> None:
    if not namenode.gives_commands:
        return
    if node.transfers:
        transfers, node.transfers = node.transfers[:TRANSFERS_MAX], node.transfers[TRANSFERS_MAX:]
        command = _block_command(namenode, response, pb.BlockCommandProto.TRANSFER)
        for transfer in transfers:
            _add_block(
                command,
                transfer.block.id,
                transfer.block.generation_stamp,
                transfer.block.length_bytes,
            )
            _add_targets(command, transfer.targets)
    if node.invalidations:
        command = _block_command(namenode, response, pb.BlockCommandProto.INVALIDATE)
        for block_id in list(node.invalidations)[:INVALIDATIONS_MAX]:
            # Told again with a later heartbeat if the duty finds that it is still there.
            block = node.invalidations.pop(block_id)
            _add_block(command, block.id, block.generation_stamp, block.length_bytes)


def _block_command(
    namenode: NameNode,
    response: pb.HeartbeatResponseProto,
    action: pb.BlockCommandProto.Action,
) -> pb.BlockCommandProto:
    command = response.cmds.add(cmdType=pb.DatanodeCommandProto.BlockCommand).blkCmd
    command.action = action
    command.blockPoolId = namenode.block_pool_id
    return command


def _add_block(command: pb.BlockCommandProto, block_id: int, stamp: int, length_bytes: int) -> None:
    command.blocks.add(blockId=block_id, genStamp=stamp, numBytes=length_bytes)
    if command.action == pb.BlockCommandProto.INVALIDATE:
        command.targets.add()


def _add_targets(command: pb.BlockCommandProto, targets: Sequence[Located]) -> None:
    infos = command.targets.add()
    for target in targets:
        info = infos.datanodes.add()
        encode_datanode_id(target.datanode, info.id)
        info.location = target.datanode.rack
    command.targetStorageUuids.add(storageUuids=[target.storage.id for target in targets])
    names = [target.storage.type.name for target in targets]
    command.targetStorageTypes.add(storageTypes=map(hdfs_pb2.StorageTypeProto.Value, names))


def encode_datanode_id(record: DataNode, message: hdfs_pb2.DatanodeIDProto) -> None:
    """A DataNode as messages name it."""
    message.ipAddr = record.ip_address
    message.hostName = record.host_name
    message.datanodeUuid = record.uuid
    message.xferPort = record.transfer_port
    message.infoPort = record.info_port
    message.ipcPort = record.ipc_port
    message.infoSecurePort = record.info_secure_port


# Reports.


def _decode_report(report: pb.StorageBlockReportProto) -> list[ReportedReplica]:
    """The replicas of a full report, by block id."""
    if report.HasField("numberOfBlocks"):
        replicas = _decode_buffers(b"".join(report.blocksBuffers), report.numberOfBlocks)
    else:
        replicas = _decode_longs(report.blocks)
    replicas.sort(key=lambda replica: replica.block_id)
    return replicas


def _decode_buffers(data: bytes, count: int) -> list[ReportedReplica]:
    replicas = []
    at = 0
    try:
        for _ in range(count):
            id, at = decode_varint(data, at)
            length, at = decode_varint(data, at)
            stamp, at = decode_varint(data, at)
            state, at = decode_varint(data, at)
            replicas.append(
                _reported((id >> 1) ^ -(id & 1), length, stamp, is_finalized=state == _FINALIZED)
            )
    except ProtocolError as error:
        raise IOException(f"A block report that cannot be read: {error}") from None
    return replicas


def _decode_longs(longs: Sequence[int]) -> list[ReportedReplica]:
    """The older form: two counts, triples, a separator, quadruples."""
    if not longs:
        return []
    try:
        finalized, others = longs[0], longs[1]
        if len(longs) < 2 + 3 * finalized + (3 + 4 * others if others else 0):
            raise IndexError
        replicas = []
        for n in range(2, 2 + 3 * finalized, 3):
            replicas.append(_reported(longs[n], longs[n + 1], longs[n + 2], is_finalized=True))
        start = 2 + 3 * finalized + 3
        for n in range(start, start + 4 * others, 4):
            replicas.append(
                _reported(
                    longs[n], longs[n + 1], longs[n + 2], is_finalized=longs[n + 3] == _FINALIZED
                )
            )
    except IndexError:
        raise IOException("A block report that is cut short") from None
    return replicas


def _reported(id: int, length: int, stamp: int, *, is_finalized: bool) -> ReportedReplica:
    return ReportedReplica(BlockId(id), GenerationStamp(stamp), length, is_finalized)


def _pages(
    replicas: list[ReportedReplica],
) -> list[tuple[int, int, list[ReportedReplica]]]:
    """A report in parts that together cover every block id once."""
    parts = [replicas[n : n + REPLICAS_PAGE] for n in range(0, len(replicas), REPLICAS_PAGE)]
    pages = []
    first = 0
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        end = _BLOCK_ID_END if is_last else parts[index + 1][0].block_id
        pages.append((first, end, part))
        first = end
    return pages or [(0, _BLOCK_ID_END, [])]


def _run_each(
    call: IncomingCall,
    operation: Any,
    steps: Sequence[tuple[Any, ...]],
    finish: Callable[[], None],
    note: Callable[[tuple[Any, ...], Any], None] | None = None,
) -> None:
    """Run an operation with each of these arguments, one after the other, then finish."""
    remaining = iter(steps)

    def go_on() -> None:
        step = next(remaining, None)
        if step is None:
            finish()
            return

        def done(result: Any, error: BaseException | None) -> None:
            if error is not None:
                call.fail(error)
                return
            try:
                if note is not None:
                    note(step, result)
                go_on()
            except Exception as failure:  # we are not in the handler any more
                call.fail(failure)

        call.start(operation, done, *step)

    go_on()
