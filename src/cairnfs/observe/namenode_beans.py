"""The beans of a NameNode: what the dashboards of HDFS read, by HDFS's names.

An attribute that has no meaning here is not there, rather than made up.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from cairnfs.blocks.records import AdminState, CheckQueue
from cairnfs.namenode.datanode_protocol import SOFTWARE_VERSION
from cairnfs.namenode.namenode import NameNode
from cairnfs.observe.jmx import GIGABYTE, Bean, bean, process_beans, rpc_beans
from cairnfs.observe.namenode_facts import DataNodeFacts, NameNodeFacts
from cairnfs.store.schema import Table

_ADMIN_STATES = {
    AdminState.NORMAL: "In Service",
    AdminState.DECOMMISSION_INPROGRESS: "Decommission In Progress",
    AdminState.DECOMMISSIONED: "Decommissioned",
    AdminState.ENTERING_MAINTENANCE: "Entering Maintenance",
    AdminState.IN_MAINTENANCE: "In Maintenance",
}

_ACTIVITY = {
    # attribute: methods
    "CreateFileOps": ("create",),
    "FilesAppended": ("append",),
    "FilesRenamed": ("rename", "rename2"),
    "FilesTruncated": ("truncate",),
    "DeleteFileOps": ("delete",),
    "FileInfoOps": ("getFileInfo", "getFileLinkInfo", "getLocatedFileInfo"),
    "GetListingOps": ("getListing", "getBatchedListing"),
    "GetBlockLocations": ("getBlockLocations",),
    "GetLinkTargetOps": ("getLinkTarget",),
    "CreateSymlinkOps": ("createSymlink",),
    "AddBlockOps": ("addBlock",),
    "GetAdditionalDatanodeOps": ("getAdditionalDatanode",),
    "BlockReceivedAndDeletedOps": ("blockReceivedAndDeleted",),
}
_FILE_OPERATIONS = (
    *("CreateFileOps", "DeleteFileOps", "FileInfoOps", "GetListingOps", "GetBlockLocations"),
    *("FilesAppended", "FilesRenamed", "AddBlockOps", "GetAdditionalDatanodeOps"),
    *("CreateSymlinkOps", "GetLinkTargetOps", "FilesTruncated"),
)


def namenode_beans(namenode: NameNode, facts: NameNodeFacts, port: int) -> list[Bean]:
    """All of them; `port` is that of RPC."""
    service = "Hadoop:service=NameNode,name="
    return [
        bean(f"{service}FSNamesystem", _namesystem(facts)),
        bean(f"{service}FSNamesystemState", _state(facts)),
        bean(f"{service}NameNodeInfo", _info(namenode, facts)),
        bean(f"{service}NameNodeStatus", _status(namenode)),
        bean(f"{service}NameNodeActivity", _activity(namenode)),
        *rpc_beans(
            "NameNode",
            port,
            namenode.calls,
            connections=facts.connections,
            under_way=facts.calls_under_way,
            waiting=facts.calls_waiting,
        ),
        *process_beans("NameNode", facts.process),
    ]


def _totals(facts: NameNodeFacts) -> dict[str, Any]:
    """What several beans tell."""
    return {
        "CapacityTotal": facts.sum(lambda node: node.capacity_bytes),
        "CapacityUsed": facts.sum(lambda node: node.used_bytes),
        "CapacityRemaining": facts.sum(lambda node: node.remaining_bytes),
        "TotalLoad": facts.sum(lambda node: node.xceivers),
        "BlocksTotal": facts.rows.get(Table.BLOCKS, 0),
        "FilesTotal": facts.files_and_directories,
        "PendingReplicationBlocks": facts.copies_pending,
        "PendingReconstructionBlocks": facts.copies_pending,
        "UnderReplicatedBlocks": facts.low_redundancy,
        "LowRedundancyBlocks": facts.low_redundancy,
        "ScheduledReplicationBlocks": facts.copies_pending,
        "PendingDeletionBlocks": facts.rows.get(Table.INVALIDATIONS, 0),
        "NumLiveDataNodes": len(facts.live),
        "NumDeadDataNodes": len(facts.dead),
        "NumInServiceLiveDataNodes": len(facts.in_state(AdminState.NORMAL, alive=True)),
        "NumDecomLiveDataNodes": len(facts.in_state(AdminState.DECOMMISSIONED, alive=True)),
        "NumDecomDeadDataNodes": len(facts.in_state(AdminState.DECOMMISSIONED, alive=False)),
        "NumDecommissioningDataNodes": len(facts.in_state(AdminState.DECOMMISSION_INPROGRESS)),
        "NumEnteringMaintenanceDataNodes": len(facts.in_state(AdminState.ENTERING_MAINTENANCE)),
        "NumInMaintenanceLiveDataNodes": len(facts.in_state(AdminState.IN_MAINTENANCE, alive=True)),
        "NumInMaintenanceDeadDataNodes": len(
            facts.in_state(AdminState.IN_MAINTENANCE, alive=False)
        ),
        "VolumeFailuresTotal": facts.sum(lambda node: node.failed_volumes),
    }


def _namesystem(facts: NameNodeFacts) -> dict[str, Any]:
    totals = _totals(facts)
    return {
        "tag.Context": "dfs",
        "tag.HAState": "active",
        **totals,
        "CapacityTotalGB": totals["CapacityTotal"] / GIGABYTE,
        "CapacityUsedGB": totals["CapacityUsed"] / GIGABYTE,
        "CapacityRemainingGB": totals["CapacityRemaining"] / GIGABYTE,
        "CapacityUsedNonDFS": facts.sum(lambda node: node.non_dfs_bytes),
        "CorruptBlocks": facts.queues[CheckQueue.CORRUPT],
        "MissingBlocks": facts.queues[CheckQueue.CORRUPT],
        "MissingReplOneBlocks": 0,
        "HighestPriorityLowRedundancyReplicatedBlocks": facts.queues[CheckQueue.HIGHEST],
        "ExcessBlocks": facts.rows.get(Table.INVALIDATIONS, 0),
        "PostponedMisreplicatedBlocks": facts.queues[CheckQueue.POSTPONED],
        "NumFilesUnderConstruction": facts.rows.get(Table.LEASES, 0),
        "SnapshottableDirectories": facts.rows.get(Table.SNAPSHOTTABLE, 0),
        "Snapshots": facts.rows.get(Table.SNAPSHOTS, 0),
        "StaleDataNodes": sum(node.is_stale for node in facts.live),
        "LastWrittenTransactionId": facts.last_txid,
        "LockQueueLength": 0,  # nobody waits for a lock
    }


def _state(facts: NameNodeFacts) -> dict[str, Any]:
    return {
        "FSState": "safeMode" if facts.is_in_safe_mode else "Operational",
        **_totals(facts),
        "MaxObjects": 0,
        "NumStaleDataNodes": sum(node.is_stale for node in facts.live),
    }


def _info(namenode: NameNode, facts: NameNodeFacts) -> dict[str, Any]:
    total = facts.sum(lambda node: node.capacity_bytes)
    used = facts.sum(lambda node: node.used_bytes)
    free = facts.sum(lambda node: node.remaining_bytes)
    versions = Counter(node.version for node in facts.live)
    return {
        "Version": f"{SOFTWARE_VERSION}, CairnFS",
        "SoftwareVersion": SOFTWARE_VERSION,
        "Used": used,
        "Free": free,
        "Total": total,
        "Safemode": f"Safe mode is ON. {facts.safe_mode}" if facts.is_in_safe_mode else "",
        "UpgradeFinalized": True,
        "NonDfsUsedSpace": facts.sum(lambda node: node.non_dfs_bytes),
        "PercentUsed": _percent(used, total),
        "PercentRemaining": _percent(free, total),
        "BlockPoolUsedSpace": used,
        "PercentBlockPoolUsed": _percent(used, total),
        "TotalBlocks": facts.rows.get(Table.BLOCKS, 0),
        "NumberOfMissingBlocks": facts.queues[CheckQueue.CORRUPT],
        "NumberOfMissingBlocksWithReplicationFactorOne": 0,
        "HighestPriorityLowRedundancyReplicatedBlocks": facts.queues[CheckQueue.HIGHEST],
        "NumberOfSnapshottableDirs": facts.rows.get(Table.SNAPSHOTTABLE, 0),
        "Threads": facts.process.threads,
        "LiveNodes": json.dumps({node.name: _live_node(node) for node in facts.live}),
        "DeadNodes": json.dumps({node.name: _dead_node(node) for node in facts.dead}),
        "DecomNodes": json.dumps(
            {
                node.name: _dead_node(node)
                for node in facts.in_state(AdminState.DECOMMISSION_INPROGRESS)
            }
        ),
        "EnteringMaintenanceNodes": json.dumps(
            {
                node.name: _dead_node(node)
                for node in facts.in_state(AdminState.ENTERING_MAINTENANCE)
            }
        ),
        "ClusterId": namenode.cluster_id,
        "BlockPoolId": namenode.block_pool_id,
        "NNStartedTimeInMillis": int(facts.process.started_s * 1000),
        "NodeUsage": json.dumps({"nodeUsage": _node_usage(facts)}),
        "DistinctVersionCount": len(versions),
        "DistinctVersions": [{"key": name, "value": count} for name, count in versions.items()],
    }


def _status(namenode: NameNode) -> dict[str, Any]:
    """Every NameNode serves: none is on standby."""
    return {
        "NNRole": "NameNode",
        "State": "active",
        "HostAndPort": namenode.settings.address,
        "SecurityEnabled": False,
        "LastHATransitionTime": 0,
    }


def _activity(namenode: NameNode) -> dict[str, Any]:
    """Calls that succeeded, and what became of them in the store."""
    succeeded: Counter[str] = Counter()
    for method, figures in namenode.calls.by_method.items():
        succeeded[method.name] += figures.count
    for (method, _), count in namenode.calls.errors.items():
        succeeded[method.name] -= count
    counts = {
        attribute: sum(succeeded[name] for name in names) for attribute, names in _ACTIVITY.items()
    }
    statistics = namenode.statistics
    return {
        "tag.Context": "dfs",
        "tag.ProcessName": "NameNode",
        **counts,
        "TotalFileOps": sum(counts[name] for name in _FILE_OPERATIONS),
        "TransactionsNumOps": statistics.committed,
        "TransactionsBatchedInSync": statistics.committed - statistics.commits,
    }


def _live_node(node: DataNodeFacts) -> dict[str, Any]:
    return {
        "infoAddr": node.info_address,
        "infoSecureAddr": "",
        "xferaddr": node.address,
        "location": node.rack,
        "uuid": node.uuid,
        "lastContact": int(node.silent_s),
        "usedSpace": node.used_bytes,
        "adminState": _ADMIN_STATES[node.admin_state],
        "nonDfsUsedSpace": node.non_dfs_bytes,
        "capacity": node.capacity_bytes,
        "version": node.version,
        "used": node.used_bytes,
        "remaining": node.remaining_bytes,
        "blockPoolUsed": node.used_bytes,
        "blockPoolUsedPercent": _percent(node.used_bytes, node.capacity_bytes),
        "volfails": node.failed_volumes,
    }


def _dead_node(node: DataNodeFacts) -> dict[str, Any]:
    return {
        "lastContact": int(node.silent_s),
        "decommissioned": node.admin_state is AdminState.DECOMMISSIONED,
        "adminState": _ADMIN_STATES[node.admin_state],
        "xferaddr": node.address,
        "location": node.rack,
        "uuid": node.uuid,
    }


def _node_usage(facts: NameNodeFacts) -> dict[str, str]:
    """How evenly the DataNodes are filled."""
    usages = sorted(_percent(node.used_bytes, node.capacity_bytes) for node in facts.live)
    if not usages:
        usages = [0.0]
    mean = sum(usages) / len(usages)
    deviation = (sum((usage - mean) ** 2 for usage in usages) / len(usages)) ** 0.5
    figures = {"min": usages[0], "median": usages[len(usages) // 2], "max": usages[-1]}
    return {name: f"{value:.2f}%" for name, value in {**figures, "stdDev": deviation}.items()}


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
