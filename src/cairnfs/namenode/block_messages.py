"""Blocks, their replicas and DataNodes as Hadoop's messages, and back."""

from __future__ import annotations

from cairnfs.blocks.records import Block, BlockId, BlockState, DataNode, GenerationStamp
from cairnfs.namenode.datanodes import LiveDataNode, Located, StorageUsage
from cairnfs.namenode.messages import to_signed
from cairnfs.namenode.namenode import NameNode
from cairnfs.namesystem.answers import LocatedBlock, LocatedBlocks
from cairnfs.wire.proto import hdfs_pb2, security_pb2


def from_extended_block(message: hdfs_pb2.ExtendedBlockProto) -> Block:
    """A block as its writer or a reader names it."""
    return Block(
        BlockId(to_signed(message.blockId)),
        GenerationStamp(to_signed(message.generationStamp)),
        to_signed(message.numBytes),
        BlockState.UNDER_CONSTRUCTION,
    )


def fill_block_to_write(
    message: hdfs_pb2.LocatedBlockProto, namenode: NameNode, located: LocatedBlock
) -> None:
    """A block with the storages of its pipeline, in their order."""
    _fill_block(message, namenode, located, namenode.datanodes.locate_in_order(located.storages))


def fill_block_to_read(
    message: hdfs_pb2.LocatedBlockProto, namenode: NameNode, located: LocatedBlock, reader: str
) -> None:
    """A block with the storages that have it, the best for the reader first."""
    _fill_block(message, namenode, located, namenode.datanodes.locate(located.storages, reader))


def fill_blocks(
    message: hdfs_pb2.LocatedBlocksProto, namenode: NameNode, located: LocatedBlocks, reader: str
) -> None:
    """The blocks of a file, for a reader."""
    message.fileLength = located.length_bytes
    message.underConstruction = located.under_construction
    message.isLastBlockComplete = located.last_is_complete
    for each in located.blocks:
        fill_block_to_read(message.blocks.add(), namenode, each, reader)
    if located.last is None:
        return
    if located.blocks and located.blocks[-1] == located.last:
        message.lastBlock.CopyFrom(message.blocks[-1])
    else:
        fill_block_to_read(message.lastBlock, namenode, located.last, reader)


def fill_datanode_id(message: hdfs_pb2.DatanodeIDProto, datanode: DataNode) -> None:
    message.ipAddr = datanode.ip_address
    message.hostName = datanode.host_name
    message.datanodeUuid = datanode.uuid
    message.xferPort = datanode.transfer_port
    message.infoPort = datanode.info_port
    message.ipcPort = datanode.ipc_port
    message.infoSecurePort = datanode.info_secure_port


def fill_datanode_info(message: hdfs_pb2.DatanodeInfoProto, node: LiveDataNode) -> None:
    """A DataNode with what its last heartbeat said."""
    _fill_datanode(message, node.record)
    message.capacity = node.sum(lambda usage: usage.capacity_bytes)
    message.dfsUsed = node.sum(lambda usage: usage.used_bytes)
    message.remaining = node.sum(lambda usage: usage.remaining_bytes)
    message.blockPoolUsed = node.sum(lambda usage: usage.block_pool_used_bytes)
    message.nonDfsUsed = node.sum(lambda usage: usage.non_dfs_used_bytes)
    message.lastUpdate = node.heard_ms
    message.lastUpdateMonotonic = int(node.heard_s * 1000)
    message.xceiverCount = node.xceivers


def _fill_datanode(message: hdfs_pb2.DatanodeInfoProto, datanode: DataNode) -> None:
    fill_datanode_id(message.id, datanode)
    message.location = datanode.rack
    message.adminState = datanode.admin_state.value  # type: ignore[assignment]
    message.softwareVersion = datanode.software_version


def _fill_block(
    message: hdfs_pb2.LocatedBlockProto,
    namenode: NameNode,
    located: LocatedBlock,
    replicas: list[Located],
) -> None:
    block = located.block
    message.b.poolId = namenode.block_pool_id
    message.b.blockId = block.id
    message.b.generationStamp = block.generation_stamp
    message.b.numBytes = block.length_bytes
    message.offset = located.offset_bytes
    message.corrupt = located.is_corrupt
    message.blockToken.CopyFrom(_NO_TOKEN)
    for replica in replicas:
        message.locs.append(_describe(replica))
        message.isCached.append(False)
        message.storageTypes.append(replica.storage.type.value)  # type: ignore[arg-type]
        message.storageIDs.append(replica.storage.id)


# As from an HDFS without security.
_NO_TOKEN = security_pb2.TokenProto(identifier=b"", password=b"", kind="", service="")

# The messages of DataNodes, as long as what they are made of is the same.
_DESCRIBED_MAX = 10_000
_described: dict[str, tuple[DataNode, StorageUsage, hdfs_pb2.DatanodeInfoProto]] = {}


def _describe(replica: Located) -> hdfs_pb2.DatanodeInfoProto:
    """The DataNode of a replica; whoever is given this copies it."""
    id = replica.storage.id
    known = _described.get(id)
    if known is None or known[0] is not replica.datanode or known[1] is not replica.usage:
        message = hdfs_pb2.DatanodeInfoProto()
        _fill_datanode(message, replica.datanode)
        message.capacity = replica.usage.capacity_bytes
        message.dfsUsed = replica.usage.used_bytes
        message.remaining = replica.usage.remaining_bytes
        if len(_described) >= _DESCRIBED_MAX:
            _described.clear()
        _described[id] = known = (replica.datanode, replica.usage, message)
    return known[2]
