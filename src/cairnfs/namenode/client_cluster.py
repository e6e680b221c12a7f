"""ClientNamenodeProtocol: the cluster, what it offers, and what its administrator asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec

from cairnfs.blocks.policies import DEFAULT
from cairnfs.blocks.records import AdminState, BlockId
from cairnfs.errors import UnsupportedOperationException
from cairnfs.namenode.admin_protocols import check_superuser
from cairnfs.namenode.block_messages import fill_datanode_info
from cairnfs.namenode.call_tasks import answer_with
from cairnfs.namenode.datanodes import LiveDataNode
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.responses import NOTHING
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem.corrupt_files import Position, get_corrupt_files
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.unsettled import Reached
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import ha_service_pb2, hdfs_pb2
from cairnfs.wire.protocols import CLIENT_PROTOCOL, as_text

CALLS = Service(CLIENT_PROTOCOL)

BLOCK_SIZE_BYTES = 128 << 20  # dfs.blocksize
REPLICATION = 3  # dfs.replication
BYTES_PER_CHECKSUM = 512  # dfs.bytes-per-checksum
WRITE_PACKET_BYTES = 64 << 10  # dfs.client-write-packet-size
FILE_BUFFER_BYTES = 4096  # io.file.buffer.size
BLOCK_ID_MAX = (1 << 63) - 1


# What clients go by


@CALLS.handler
def get_server_defaults(
    call: IncomingCall, request: pb.GetServerDefaultsRequestProto
) -> pb.GetServerDefaultsResponseProto:
    response = pb.GetServerDefaultsResponseProto()
    defaults = response.serverDefaults
    defaults.blockSize = BLOCK_SIZE_BYTES
    defaults.bytesPerChecksum = BYTES_PER_CHECKSUM
    defaults.writePacketSize = WRITE_PACKET_BYTES
    defaults.replication = REPLICATION
    defaults.fileBufferSize = FILE_BUFFER_BYTES
    defaults.encryptDataTransfer = False
    defaults.trashInterval = math.ceil(call.namenode.settings.trash.interval_min)
    defaults.checksumType = hdfs_pb2.CHECKSUM_CRC32C
    defaults.keyProviderUri = ""
    defaults.policyId = DEFAULT.id
    defaults.snapshotTrashRootEnabled = False
    return response


@CALLS.handler
def get_ha_service_state(
    call: IncomingCall, request: pb.HAServiceStateRequestProto
) -> pb.HAServiceStateResponseProto:
    return pb.HAServiceStateResponseProto(state=ha_service_pb2.ACTIVE)


@CALLS.handler
def msync(call: IncomingCall, request: pb.MsyncRequestProto) -> bytes:
    """Every NameNode answers with what is on disk: there is nothing to catch up with."""
    return NOTHING


# DataNodes and space


@CALLS.handler
def get_fs_stats(call: IncomingCall, request: pb.GetFsStatusRequestProto) -> None:
    answer_with(call, _get_fs_stats(call.namenode))


async def _get_fs_stats(namenode: NameNode) -> pb.GetFsStatsResponseProto:
    troubled = await namenode.troubled_blocks.figures()
    living = [node for node in namenode.datanodes if namenode.datanodes.is_alive(node)]
    return pb.GetFsStatsResponseProto(
        capacity=sum(node.sum(lambda usage: usage.capacity_bytes) for node in living),
        used=sum(node.sum(lambda usage: usage.used_bytes) for node in living),
        remaining=sum(node.sum(lambda usage: usage.remaining_bytes) for node in living),
        under_replicated=troubled.low_redundancy,
        corrupt_blocks=troubled.missing,
        missing_blocks=troubled.missing,
        missing_repl_one_blocks=0,
        blocks_in_future=0,
        pending_deletion_blocks=troubled.pending_deletion,
    )


@CALLS.handler
def get_fs_replicated_block_stats(
    call: IncomingCall, request: pb.GetFsReplicatedBlockStatsRequestProto
) -> None:
    answer_with(call, _get_fs_replicated_block_stats(call.namenode))


async def _get_fs_replicated_block_stats(
    namenode: NameNode,
) -> pb.GetFsReplicatedBlockStatsResponseProto:
    troubled = await namenode.troubled_blocks.figures()
    return pb.GetFsReplicatedBlockStatsResponseProto(
        low_redundancy=troubled.low_redundancy,
        corrupt_blocks=troubled.missing,
        missing_blocks=troubled.missing,
        missing_repl_one_blocks=0,
        blocks_in_future=0,
        pending_deletion_blocks=troubled.pending_deletion,
        highest_prio_low_redundancy_blocks=troubled.highest_priority,
        badly_distributed_blocks=troubled.badly_distributed,
    )


@CALLS.handler
def get_fs_ec_block_group_stats(
    call: IncomingCall, request: pb.GetFsECBlockGroupStatsRequestProto
) -> pb.GetFsECBlockGroupStatsResponseProto:
    """No block is erasure coded."""
    return pb.GetFsECBlockGroupStatsResponseProto(
        low_redundancy=0,
        corrupt_blocks=0,
        missing_blocks=0,
        blocks_in_future=0,
        pending_deletion_blocks=0,
        highest_prio_low_redundancy_blocks=0,
    )


@CALLS.handler
def get_datanode_report(
    call: IncomingCall, request: pb.GetDatanodeReportRequestProto
) -> pb.GetDatanodeReportResponseProto:
    response = pb.GetDatanodeReportResponseProto()
    for node in _datanodes_of_type(call, request.type):
        fill_datanode_info(response.di.add(), node)
    return response


@CALLS.handler
def get_datanode_storage_report(
    call: IncomingCall, request: pb.GetDatanodeStorageReportRequestProto
) -> pb.GetDatanodeStorageReportResponseProto:
    response = pb.GetDatanodeStorageReportResponseProto()
    for node in _datanodes_of_type(call, request.type):
        report = response.datanodeStorageReports.add()
        fill_datanode_info(report.datanodeInfo, node)
        for storage in node.record.storages:
            usage = node.usage.get(storage.id)
            if usage is None:
                continue
            of_storage = report.storageReports.add()
            of_storage.storageUuid = storage.id
            of_storage.storage.storageUuid = storage.id
            of_storage.storage.storageType = storage.type.value  # type: ignore[assignment]
            of_storage.failed = usage.has_failed
            of_storage.capacity = usage.capacity_bytes
            of_storage.dfsUsed = usage.used_bytes
            of_storage.remaining = usage.remaining_bytes
            of_storage.blockPoolUsed = usage.block_pool_used_bytes
            of_storage.nonDfsUsed = usage.non_dfs_used_bytes
    return response


@CALLS.handler
def get_slow_datanode_report(
    call: IncomingCall, request: pb.GetSlowDatanodeReportRequestProto
) -> pb.GetSlowDatanodeReportResponseProto:
    """None is told from the others, as in an HDFS without peer statistics."""
    return pb.GetSlowDatanodeReportResponseProto()


@CALLS.handler
def list_corrupt_file_blocks(
    call: IncomingCall, request: pb.ListCorruptFileBlocksRequestProto
) -> None:
    check_superuser(call)
    path = FsPath.parse(request.path)
    after = _parse_cookie(as_text(request.cookie))
    answer_with(call, _list_corrupt_files(call.namenode, path, after))


async def _list_corrupt_files(
    namenode: NameNode, path: FsPath, after: Position
) -> pb.ListCorruptFileBlocksResponseProto:
    """Page after page until some are found: to Hadoop's clients an empty answer is the last."""
    response = pb.ListCorruptFileBlocksResponseProto()
    while True:
        page = await namenode.call(get_corrupt_files, after, path)
        response.corrupt.files.extend(str(file) for file in page.files)
        after = page.last
        if response.corrupt.files or not page.has_more:
            response.corrupt.cookie = _COOKIES.encode(after).decode()
            return response


_COOKIES = msgspec.json.Encoder()
_decode_cookie = msgspec.json.Decoder(int | Reached).decode


def _parse_cookie(cookie: str) -> Position:
    """Where to go on; as in HDFS, what cannot be read is where to begin."""
    try:
        after = _decode_cookie(cookie)
    except (msgspec.DecodeError, RecursionError):
        return Reached()
    if isinstance(after, Reached):
        return after
    return BlockId(min(after, BLOCK_ID_MAX)) if after >= 0 else Reached()


def _datanodes_of_type(
    call: IncomingCall, type: pb.DatanodeReportTypeProto
) -> Iterator[LiveDataNode]:
    datanodes = call.namenode.datanodes
    matches = _MATCHES[type]
    return (node for node in datanodes if matches(node, datanodes.is_alive(node)))


def _is_in(state: AdminState) -> Callable[[LiveDataNode, bool], bool]:
    return lambda node, is_alive: is_alive and node.record.admin_state == state


_MATCHES: dict[int, Callable[[LiveDataNode, bool], bool]] = {
    pb.ALL: lambda node, is_alive: True,
    pb.LIVE: lambda node, is_alive: is_alive,
    pb.DEAD: lambda node, is_alive: not is_alive,
    pb.DECOMMISSIONING: _is_in(AdminState.DECOMMISSION_INPROGRESS),
    pb.ENTERING_MAINTENANCE: _is_in(AdminState.ENTERING_MAINTENANCE),
    pb.IN_MAINTENANCE: _is_in(AdminState.IN_MAINTENANCE),
}


# Administration: there is neither an image to be saved nor a log to be rolled


@CALLS.handler
def set_safe_mode(
    call: IncomingCall, request: pb.SetSafeModeRequestProto
) -> pb.SetSafeModeResponseProto:
    safe_mode = call.namenode.safe_mode
    if request.action != pb.SAFEMODE_GET:
        check_superuser(call)
    if request.action == pb.SAFEMODE_ENTER:
        safe_mode.enter()
    elif request.action in (pb.SAFEMODE_LEAVE, pb.SAFEMODE_FORCE_EXIT):
        safe_mode.leave()
    return pb.SetSafeModeResponseProto(result=safe_mode.is_on)


@CALLS.handler
def save_namespace(
    call: IncomingCall, request: pb.SaveNamespaceRequestProto
) -> pb.SaveNamespaceResponseProto:
    """Whatever was answered is on disk."""
    check_superuser(call)
    return pb.SaveNamespaceResponseProto(saved=True)


@CALLS.handler
def roll_edits(call: IncomingCall, request: pb.RollEditsRequestProto) -> None:
    raise UnsupportedOperationException("rollEdits is not supported: there is no edit log")


@CALLS.handler
def restore_failed_storage(
    call: IncomingCall, request: pb.RestoreFailedStorageRequestProto
) -> pb.RestoreFailedStorageResponseProto:
    check_superuser(call)
    return pb.RestoreFailedStorageResponseProto(result=False)


@CALLS.handler
def refresh_nodes(call: IncomingCall, request: pb.RefreshNodesRequestProto) -> bytes:
    """Read the list of DataNodes that are to leave once more."""
    check_superuser(call)
    call.namenode.redundancy.read_excluded_hosts()
    return NOTHING


@CALLS.handler
def meta_save(call: IncomingCall, request: pb.MetaSaveRequestProto) -> None:
    raise UnsupportedOperationException("metaSave is not supported: everything is in the store")
