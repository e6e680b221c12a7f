"""The metrics of a NameNode, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from cairnfs.blocks.records import AdminState, CheckQueue
from cairnfs.namenode.namenode import NameNode
from cairnfs.observe.namenode_facts import NameNodeFacts
from cairnfs.observe.process import process_families
from cairnfs.observe.prometheus import Family, counter, gauge, histogram
from cairnfs.store.base import Count
from cairnfs.store.schema import Table

_BLOCK_STATES = {
    CheckQueue.HIGHEST: "highest_priority",
    CheckQueue.VERY_LOW_REDUNDANCY: "very_low_redundancy",
    CheckQueue.LOW_REDUNDANCY: "low_redundancy",
    CheckQueue.BADLY_DISTRIBUTED: "badly_distributed",
    CheckQueue.CORRUPT: "missing",
    CheckQueue.POSTPONED: "postponed",
}


def namenode_families(namenode: NameNode, facts: NameNodeFacts) -> list[Family]:
    """All of them."""
    return [
        *_calls(namenode, facts),
        *_transactions(namenode),
        *_namespace(facts),
        *_blocks(facts),
        *_datanodes(facts),
        *_roles(namenode, facts),
        *process_families(facts.process),
    ]


def _calls(namenode: NameNode, facts: NameNodeFacts) -> Iterator[Family]:
    took = histogram(
        "cairnfs_namenode_call_seconds", "From when a call is taken up until it is answered."
    )
    for method, figures in namenode.calls.by_method.items():
        took.add_histogram(figures, protocol=_short(method.protocol), method=method.name)
    errors = counter("cairnfs_namenode_call_errors_total", "Calls answered with an error.")
    for (method, name), count in namenode.calls.errors.items():
        errors.add(count, protocol=_short(method.protocol), method=method.name, error=name)
    yield took
    yield errors
    yield gauge("cairnfs_namenode_calls_under_way", "Calls taken up, not answered yet.").add(
        facts.calls_under_way
    )
    yield gauge("cairnfs_namenode_calls_waiting", "Calls received, not taken up yet.").add(
        facts.calls_waiting
    )
    yield gauge(
        "cairnfs_namenode_loop_lag_seconds", "How long what is ready had to wait, this time."
    ).add(facts.lag_s)
    yield gauge("cairnfs_namenode_connections", "Open connections.").add(facts.connections)
    if namenode.audit is not None:
        lines = counter("cairnfs_namenode_audit_lines_total", "Lines of the audit log.")
        lines.add(namenode.audit.file.lines_written, outcome="written")
        yield lines.add(namenode.audit.file.lines_lost, outcome="lost")


def _transactions(namenode: NameNode) -> Iterator[Family]:
    statistics = namenode.statistics
    yield counter("cairnfs_namenode_operations_total", "Operations submitted.").add(
        statistics.calls
    )
    yield counter("cairnfs_namenode_commits_total", "Transactions of the store.").add(
        statistics.commits
    )
    yield counter("cairnfs_namenode_committed_total", "Operations in these transactions.").add(
        statistics.committed
    )
    yield counter("cairnfs_namenode_reads_total", "Round trips that read from the store.").add(
        statistics.reads
    )
    yield counter(
        "cairnfs_namenode_ran_alone_total", "Operations run while nobody else could commit."
    ).add(statistics.ran_alone)
    conflicts = counter(
        "cairnfs_namenode_conflicts_total", "Operations thrown out by a conflict, and run again."
    )
    for operation, count in statistics.conflicts.items():
        conflicts.add(count, operation=operation)
    yield conflicts


def _namespace(facts: NameNodeFacts) -> Iterator[Family]:
    yield gauge("cairnfs_namenode_store_up", "Whether the store answers.").add(facts.is_store_up)
    if not facts.is_store_up:
        return
    inodes = gauge("cairnfs_namenode_inodes", "What is in the namespace.")
    inodes.add(facts.counts[Count.FILES], kind="file")
    inodes.add(facts.counts[Count.DIRECTORIES] + 1, kind="directory")  # and the root
    yield inodes.add(facts.counts[Count.SYMLINKS], kind="symlink")
    yield gauge("cairnfs_namenode_file_bytes", "Length of all files.").add(
        facts.counts[Count.LENGTH_BYTES]
    )
    yield gauge("cairnfs_namenode_space_bytes", "The same with all replicas.").add(
        facts.counts[Count.SPACE_BYTES]
    )
    yield counter("cairnfs_namenode_txid_total", "The last TxID of the namespace.").add(
        facts.last_txid
    )
    if facts.rows:
        yield gauge("cairnfs_namenode_blocks", "Blocks; counted rarely.").add(
            facts.rows[Table.BLOCKS]
        )
        yield gauge("cairnfs_namenode_open_files", "Files being written; counted rarely.").add(
            facts.rows[Table.LEASES]
        )
        yield gauge(
            "cairnfs_namenode_pending_deletion_replicas",
            "Replicas that DataNodes have yet to delete; counted rarely.",
        ).add(facts.rows[Table.INVALIDATIONS])
        yield gauge(
            "cairnfs_namenode_snapshottable_directories",
            "Directories of which snapshots may be taken; counted rarely.",
        ).add(facts.rows[Table.SNAPSHOTTABLE])
        yield gauge("cairnfs_namenode_snapshots", "Snapshots; counted rarely.").add(
            facts.rows[Table.SNAPSHOTS]
        )
        reclaimed = gauge(
            "cairnfs_namenode_to_reclaim",
            "What was deleted and has still rows to be reclaimed, by kind; counted rarely.",
        )
        reclaimed.add(facts.rows[Table.REMOVALS], kind="snapshot")
        yield reclaimed.add(facts.rows[Table.ORPHANS], kind="subtree")


def _blocks(facts: NameNodeFacts) -> Iterator[Family]:
    """As far as this NameNode knows: only the one with the redundancy duty does."""
    if "redundancy" not in facts.duties:
        return
    troubled = gauge(
        "cairnfs_namenode_troubled_blocks", "Blocks that are not as they should be, by state."
    )
    for queue, state in _BLOCK_STATES.items():
        troubled.add(facts.queues[queue], state=state)
    yield troubled
    yield gauge(
        "cairnfs_namenode_pending_copies", "Blocks of which a copy is being made for redundancy."
    ).add(facts.copies_pending)


def _datanodes(facts: NameNodeFacts) -> Iterator[Family]:
    nodes = gauge("cairnfs_namenode_datanodes", "DataNodes, by state; some are counted twice.")
    nodes.add(len(facts.live), state="live")
    nodes.add(len(facts.dead), state="dead")
    nodes.add(sum(node.is_stale for node in facts.live), state="stale")
    for admin_state in AdminState:
        if admin_state is not AdminState.NORMAL:
            count = len(facts.in_state(admin_state))
            nodes.add(count, state=admin_state.name.lower())
    yield nodes
    capacity = gauge("cairnfs_namenode_capacity_bytes", "Room on live DataNodes, by use.")
    capacity.add(facts.sum(lambda node: node.capacity_bytes), use="total")
    capacity.add(facts.sum(lambda node: node.used_bytes), use="used")
    capacity.add(facts.sum(lambda node: node.remaining_bytes), use="remaining")
    yield capacity.add(facts.sum(lambda node: node.non_dfs_bytes), use="other")
    yield gauge("cairnfs_namenode_failed_volumes", "Broken volumes of live DataNodes.").add(
        facts.sum(lambda node: node.failed_volumes)
    )
    yield gauge("cairnfs_namenode_transfers", "Transfers under way on DataNodes.").add(
        facts.sum(lambda node: node.xceivers)
    )


def _roles(namenode: NameNode, facts: NameNodeFacts) -> Iterator[Family]:
    yield gauge("cairnfs_namenode_safe_mode", "Whether nothing may be changed.").add(
        facts.is_in_safe_mode
    )
    duties = gauge("cairnfs_namenode_duty", "Whether this NameNode does a duty, for all of them.")
    for name in namenode.duties.names:
        duties.add(name in facts.duties, duty=name)
    yield duties


def _short(protocol: str) -> str:
    return protocol.rpartition(".")[2]
