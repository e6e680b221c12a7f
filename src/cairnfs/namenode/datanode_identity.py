"""Who a DataNode is that calls: its cluster, its registration, its storages.

Invariant: of two DataNodes with one identity, the one that registered last with this
NameNode is it; the other one is refused from then on.
"""

from __future__ import annotations

from collections.abc import Iterable

from cairnfs.blocks.records import DataNode, StorageType
from cairnfs.blocks.registration import ReportedStorage, add_storages
from cairnfs.blocks.topology import DEFAULT_RACK, parse_rack
from cairnfs.errors import DisallowedDatanodeException, IOException, UnregisteredNodeException
from cairnfs.namenode.datanodes import LiveDataNode
from cairnfs.namenode.namenode import NameNode
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2

NAME_LENGTH_MAX = 255  # of a uuid, a storage's id, a host
PORT_MAX = 65535


def decode_registration(
    namenode: NameNode, registration: pb.DatanodeRegistrationProto, address: str
) -> DataNode:
    """A DataNode that wants to register; its address is where the call comes from."""
    _check_cluster(namenode, registration)
    id = registration.datanodeID
    rack = registration.rack or DEFAULT_RACK
    for name in (id.datanodeUuid, id.hostName, rack, registration.softwareVersion):
        _check_name(name)
    for port in (id.xferPort, id.infoPort, id.ipcPort, id.infoSecurePort):
        if port > PORT_MAX:
            raise DisallowedDatanodeException(f"A DataNode cannot be at port {port}")
    return DataNode(
        uuid=id.datanodeUuid,
        ip_address=address,
        host_name=id.hostName,
        transfer_port=id.xferPort,
        info_port=id.infoPort,
        ipc_port=id.ipcPort,
        info_secure_port=id.infoSecurePort,
        rack=parse_rack(rack),
        software_version=registration.softwareVersion,
    )


def find_registered(
    namenode: NameNode, registration: pb.DatanodeRegistrationProto
) -> LiveDataNode | None:
    """The DataNode that calls, if it has registered with this NameNode since it started."""
    _check_cluster(namenode, registration)
    id = registration.datanodeID
    node = namenode.datanodes.get(id.datanodeUuid)
    if node is None or node.registered_at is None:
        return None
    if node.registered_at != (id.ipAddr, id.xferPort, id.ipcPort):
        raise UnregisteredNodeException(
            f"DataNode {id.datanodeUuid} is at {node.record.transfer_address} by now; another one"
            f" at {id.ipAddr}:{id.xferPort} cannot have the same identity"
        )
    return node


def check_registered(
    namenode: NameNode, registration: pb.DatanodeRegistrationProto, block_pool_id: str
) -> LiveDataNode:
    """The DataNode that reports blocks of this namespace."""
    if block_pool_id != namenode.block_pool_id:
        raise IOException(f"{block_pool_id} is not here: this is {namenode.block_pool_id}")
    node = find_registered(namenode, registration)
    if node is None:
        # Not UnregisteredNodeException, for which DataNodes give up: they try again, and are
        # told to register by the answer to their next heartbeat.
        id = registration.datanodeID
        raise IOException(
            f"DataNode {id.ipAddr}:{id.xferPort} ({id.datanodeUuid}) has not registered since"
            " this NameNode started, or was taken for dead"
        )
    return node


def reported_storage(storage: hdfs_pb2.DatanodeStorageProto) -> ReportedStorage:
    """A volume as a message names it."""
    return ReportedStorage(storage.storageUuid, StorageType(storage.storageType))


async def know_storages(
    namenode: NameNode, node: LiveDataNode, storages: Iterable[ReportedStorage]
) -> None:
    """See to it that each of these storages has a number: nearly always it has."""
    known = {storage.id: storage.type for storage in node.record.storages}
    new = [
        each for each in storages if each.id not in known or each.type not in (None, known[each.id])
    ]
    if not new:
        return
    for each in new:
        _check_name(each.id)
    namenode.datanodes.put(await namenode.call(add_storages, node.record.uuid, new))


def _check_cluster(namenode: NameNode, registration: pb.DatanodeRegistrationProto) -> None:
    storage = registration.storageInfo
    if storage.clusterID != namenode.cluster_id or storage.namespceID != namenode.namespace_id:
        raise UnregisteredNodeException(
            f"DataNode {registration.datanodeID.hostName}:{registration.datanodeID.xferPort}"
            f" belongs to cluster {storage.clusterID}, namespace {storage.namespceID}; this is"
            f" {namenode.cluster_id}, namespace {namenode.namespace_id}"
        )


def _check_name(name: str | bytes) -> None:
    if not isinstance(name, str):  # it is not UTF-8
        raise DisallowedDatanodeException(f"{name[:NAME_LENGTH_MAX]!r} is not a name")
    if not 0 < len(name) <= NAME_LENGTH_MAX:
        raise DisallowedDatanodeException(f"A name of {len(name)} characters: {name[:40]!r}")
