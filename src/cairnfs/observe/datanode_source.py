"""A DataNode as `routes` shows it; any thread may ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cairnfs.config_file import Config
from cairnfs.datanode import figures as names
from cairnfs.datanode.settings import SOFTWARE_VERSION
from cairnfs.datanode.volumes import Volume
from cairnfs.observe.conf import Property, properties_of
from cairnfs.observe.jmx import Bean, bean, process_beans
from cairnfs.observe.process import ProcessFacts, process_families
from cairnfs.observe.prometheus import Family, counter, gauge, histogram

if TYPE_CHECKING:  # a DataNode serves these pages itself
    from cairnfs.datanode.node import DataNode

_BYTES = {
    names.BYTES_READ: "Sent to clients.",
    names.BYTES_WRITTEN: "Received, from clients and other DataNodes.",
    names.BYTES_COPIED: "Sent to other DataNodes.",
}
_BLOCKS = {
    names.BLOCKS_COPIED: "Replicas copied to other DataNodes.",
    names.BLOCKS_DELETED: "Replicas deleted, as a NameNode told.",
    names.BLOCKS_CORRUPT: "Replicas found to be bad, and reported.",
}


class DataNodeSource:
    """Tells of a DataNode; before it has started, only of its process."""

    def __init__(self, node: DataNode, config: Config) -> None:
        self._node = node
        self._config = config

    async def families(self) -> list[Family]:
        facts = ProcessFacts.gather()
        return [*self._node_families(), *process_families(facts)]

    async def beans(self) -> list[Bean]:
        beans = process_beans("DataNode", ProcessFacts.gather())
        return [*self._node_beans(), *beans] if self._node.is_started else beans

    def properties(self) -> list[Property]:
        return properties_of(self._config)

    def _node_families(self) -> Iterator[Family]:
        node = self._node
        yield gauge("cairnfs_datanode_started", "Whether a NameNode was found.").add(
            node.is_started
        )
        for name, help in {**_BYTES, **_BLOCKS}.items():
            yield counter(f"cairnfs_datanode_{name}_total", help).add(node.figures[name])
        took = histogram("cairnfs_datanode_operation_seconds", "Operations, from start to end.")
        for kind, figures in node.figures.operations.items():
            took.add_histogram(figures, operation=kind)
        errors = counter("cairnfs_datanode_operation_errors_total", "Operations that failed.")
        for (kind, error), count in node.figures.errors.items():
            errors.add(count, operation=kind, error=error)
        yield took
        yield errors
        volumes = gauge("cairnfs_datanode_volumes", "Volumes, by state.")
        volumes.add(len(node.volumes.good), state="good")
        yield volumes.add(len(node.volumes.failed), state="failed")
        if not node.is_started:
            return
        replicas = gauge("cairnfs_datanode_replicas", "Replicas, by state.")
        replicas.add(len(node.replicas) - node.replicas.unfinished, state="finalized")
        yield replicas.add(node.replicas.unfinished, state="unfinished")
        yield gauge("cairnfs_datanode_connections", "Connections for block transfer.").add(
            node.server.active
        )
        yield gauge("cairnfs_datanode_copies_waiting", "Copies ordered, not made yet.").add(
            node.commands.copies
        )
        capacity = gauge("cairnfs_datanode_capacity_bytes", "Room on good volumes, by use.")
        for volume in node.volumes.good:
            where = str(volume.location.path)
            capacity.add(volume.capacity_bytes, volume=where, use="total")
            capacity.add(volume.used_bytes, volume=where, use="used")
            capacity.add(_available(volume), volume=where, use="remaining")
        yield capacity

    def _node_beans(self) -> Iterator[Bean]:
        node, figures = self._node, self._node.figures
        operations = figures.operations
        reads, writes = operations.get("read_block"), operations.get("write_block")
        good = list(node.volumes.good)
        yield bean(
            f"Hadoop:service=DataNode,name=DataNodeActivity-{node.settings.host}-{node.port}",
            {
                "BytesRead": figures[names.BYTES_READ],
                "BytesWritten": figures[names.BYTES_WRITTEN],
                "BlocksRead": 0 if reads is None else reads.count,
                "BlocksWritten": 0 if writes is None else writes.count,
                "BlocksReplicated": figures[names.BLOCKS_COPIED],
                "BlocksRemoved": figures[names.BLOCKS_DELETED],
                "BlockVerificationFailures": figures[names.BLOCKS_CORRUPT],
                "VolumeFailures": len(node.volumes.failed),
                "DataNodeActiveXceiversCount": node.server.active,
            },
        )
        capacity = sum(volume.capacity_bytes for volume in good)
        used = sum(volume.used_bytes for volume in good)
        remaining = sum(map(_available, good))
        yield bean(
            f"Hadoop:service=DataNode,name=FSDatasetState-{node.uuid}",
            {
                "Capacity": capacity,
                "DfsUsed": used,
                "Remaining": remaining,
                "NumFailedVolumes": len(node.volumes.failed),
                "FailedStorageLocations": [str(each.path) for each in node.volumes.failed],
                "EstimatedCapacityLostTotal": sum(
                    each.capacity_bytes for each in node.volumes.failed
                ),
            },
            "FSDatasetState",
        )
        yield bean(
            "Hadoop:service=DataNode,name=DataNodeInfo",
            {
                "Version": f"{SOFTWARE_VERSION}, CairnFS",
                "SoftwareVersion": SOFTWARE_VERSION,
                "RpcPort": str(node.ipc_port),
                "DataPort": str(node.port),
                "DatanodeHostname": node.settings.hostname or node.settings.host,
                "XceiverCount": node.server.active + 1,
                "XmitsInProgress": node.commands.copies,
                "NamenodeAddresses": json.dumps(
                    {str(address): "" for address in node.settings.namenodes}
                ),
                "VolumeInfo": json.dumps({str(v.location.path): _volume_info(v) for v in good}),
            },
        )


def _volume_info(volume: Volume) -> dict[str, object]:
    return {
        "usedSpace": volume.used_bytes,
        "freeSpace": _available(volume),
        "storageType": volume.storage_type.name,
    }


def _available(volume: Volume) -> int:
    try:
        return volume.available_bytes()
    except OSError:  # it has just failed; the next heartbeat notices
        return 0
