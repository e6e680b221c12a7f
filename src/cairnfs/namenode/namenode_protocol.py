"""NamenodeProtocol: what HDFS's own balancer and satisfier ask, so that they can be run as well.

`hdfs balancer` plans by itself: it asks what is on a DataNode, and has DataNodes replace blocks.
An external satisfier is told that there is nothing for it to do: NameNodes do that themselves.
"""

from __future__ import annotations

from cairnfs.blocks.records import BlockId, BlockState, Replica
from cairnfs.errors import HadoopIllegalArgumentException, IllegalArgumentException
from cairnfs.namenode.call_tasks import answer_with
from cairnfs.namenode.datanode_protocol import namespace_info
from cairnfs.namenode.datanodes import LiveDataNode
from cairnfs.namenode.messages import to_signed
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.namesystem.permissions import check_superuser
from cairnfs.namesystem.redundancy import BlockFacts, inspect_blocks
from cairnfs.store.base import Reading, Scan
from cairnfs.store.schema import FIRST_BLOCK_ID, NUMBER, Table
from cairnfs.transaction.records import decode
from cairnfs.wire.proto import hdfs_pb2, hdfs_server_pb2, namenode_pb2
from cairnfs.wire.protocols import NAMENODE_PROTOCOL, as_text

NAMENODE_SERVICE = Service(NAMENODE_PROTOCOL)

PAGE = 500  # rows looked at in one step
BLOCKS_MAX = 10_000  # in one answer


@NAMENODE_SERVICE.handler
def get_blocks(call: IncomingCall, request: namenode_pb2.GetBlocksRequestProto) -> None:
    """Some blocks that a DataNode has, of so many bytes together, with all their replicas."""
    check_superuser(call.caller, "getBlocks")
    size_bytes = to_signed(request.size)
    if size_bytes <= 0:
        raise IllegalArgumentException(f"Unexpected not positive size: {size_bytes}")
    uuid = as_text(request.datanode.datanodeUuid)
    node = call.namenode.datanodes.get(uuid)
    if node is None:
        raise HadoopIllegalArgumentException(f"Datanode {uuid} not found.")
    wanted = request.storageType if request.HasField("storageType") else None
    answer_with(call, _list_blocks(call.namenode, node, size_bytes, request.minBlockSize, wanted))


@NAMENODE_SERVICE.handler
def get_next_sps_path(
    call: IncomingCall, request: namenode_pb2.GetNextSPSPathRequestProto
) -> namenode_pb2.GetNextSPSPathResponseProto:
    check_superuser(call.caller, "getNextSPSPath")
    return namenode_pb2.GetNextSPSPathResponseProto()


@NAMENODE_SERVICE.handler
def version_request(
    call: IncomingCall, request: hdfs_server_pb2.VersionRequestProto
) -> hdfs_server_pb2.VersionResponseProto:
    return hdfs_server_pb2.VersionResponseProto(info=namespace_info(call.namenode))


@NAMENODE_SERVICE.handler
def is_upgrade_finalized(
    call: IncomingCall, request: namenode_pb2.IsUpgradeFinalizedRequestProto
) -> namenode_pb2.IsUpgradeFinalizedResponseProto:
    return namenode_pb2.IsUpgradeFinalizedResponseProto(isUpgradeFinalized=True)


@NAMENODE_SERVICE.handler
def is_rolling_upgrade(
    call: IncomingCall, request: namenode_pb2.IsRollingUpgradeRequestProto
) -> namenode_pb2.IsRollingUpgradeResponseProto:
    return namenode_pb2.IsRollingUpgradeResponseProto(isRollingUpgrade=False)


@NAMENODE_SERVICE.handler
def get_block_keys(
    call: IncomingCall, request: namenode_pb2.GetBlockKeysRequestProto
) -> namenode_pb2.GetBlockKeysResponseProto:
    """As HDFS without security says that blocks need no tokens."""
    response = namenode_pb2.GetBlockKeysResponseProto()
    keys = response.keys
    keys.isBlockTokenEnabled = False
    keys.keyUpdateInterval = keys.tokenLifeTime = 0
    keys.currentKey.keyId = keys.currentKey.expiryDate = 0
    return response


async def _list_blocks(
    namenode: NameNode, node: LiveDataNode, size_bytes: int, least_bytes: int, type: int | None
) -> namenode_pb2.GetBlocksResponseProto:
    response = namenode_pb2.GetBlocksResponseProto()
    blocks = response.blocks
    blocks.SetInParent()
    # Each time from elsewhere on, as HDFS does: who asks again is not told the same.
    end_id = max(namenode.datanodes.block_ids_end, FIRST_BLOCK_ID + 1)
    start = NUMBER.pack(namenode.datanodes.random.randrange(FIRST_BLOCK_ID, end_id))
    for storage in node.record.storages:
        if type is not None and storage.type != type:
            continue
        for after, end in ((start, None), (b"", start)):
            while len(blocks.blocks) < BLOCKS_MAX:
                scan = Scan(Table.REPLICAS, storage.number, after, PAGE)
                rows = (await namenode.store.read(Reading(scans=[scan]))).scans[scan]
                within = [row for row in rows if end is None or row.key[2] <= end]
                replicas: list[Replica] = [decode(Table.REPLICAS, row.data) for row in within]
                ids = [each.block_id for each in replicas if each.length_bytes >= least_bytes]
                for facts in await _inspect(namenode, ids):
                    size_bytes -= _add(namenode, blocks, facts)
                    if size_bytes <= 0:
                        return response
                if len(within) < PAGE:
                    break
                after = within[-1].key[2]
    return response


async def _inspect(namenode: NameNode, ids: list[BlockId]) -> list[BlockFacts]:
    found = await namenode.call(inspect_blocks, ids) if ids else []
    return [
        facts
        for facts in found
        if facts is not None
        and facts.block.state is BlockState.COMPLETE
        and not namenode.redundancy.deleting(facts)
    ]


def _add(
    namenode: NameNode, blocks: hdfs_server_pb2.BlocksWithLocationsProto, facts: BlockFacts
) -> int:
    """Describe a block; how long it is."""
    block = facts.block
    good = [storage for storage, replica in facts.replicas if replica.is_good_for(block)]
    located = namenode.datanodes.locate(good)
    blocks.blocks.add(
        block=hdfs_pb2.BlockProto(
            blockId=block.id, genStamp=block.generation_stamp, numBytes=block.replica_bytes
        ),
        datanodeUuids=[each.uuid for each in located],
        storageUuids=[each.storage.id for each in located],
        storageTypes=[each.storage.type.name for each in located],
    )
    return block.replica_bytes
