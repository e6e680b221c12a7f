"""Files that are open for writing: who holds them, since when, and why each is open."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, NamedTuple

from cairnfs.cli.output import Output, format_bytes
from cairnfs.errors import HdfsError

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.records import BlockLocation, OpenFile

RECOVERING = "HDFS_NameNode"  # who holds a file whose writer is gone, until it is closed


class Lease(NamedTuple):
    """A file that somebody writes."""

    path: str
    holder: str
    machine: str
    changed_ms: int  # when it was made, or last closed: it is open since then at the longest
    length_bytes: int
    reason: str


def leases(fs: FileSystem, given: argparse.Namespace) -> int:
    found = [_look_at(fs, file) for file in fs.list_open_files(given.path)]
    out = Output()
    if given.json:
        out.print_json([lease._asdict() for lease in found])
    elif not found:
        out.print(f"No file at or below {given.path} is open for writing.")
    else:
        rows = [["PATH", "HOLDER", "MACHINE", "SINCE (at most)", "LENGTH", "WHY"]]
        for lease in found:
            since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(lease.changed_ms / 1000))
            length = format_bytes(lease.length_bytes)
            rows.append([lease.path, lease.holder, lease.machine, since, length, lease.reason])
        out.print_table(rows, right=frozenset((4,)))
    out.flush()
    return 0


def _look_at(fs: FileSystem, file: OpenFile) -> Lease:
    try:
        status = fs.get_file_info(file.path)
        blocks = fs.get_block_locations(file.path)
    except HdfsError:  # closed or deleted since
        status, blocks = None, []
    if status is None:
        return Lease(file.path, file.client_name, file.client_machine, 0, 0, "gone since")
    written = sum(block.length_bytes for block in blocks)
    reason = explain(file.client_name, blocks)
    return Lease(file.path, file.client_name, file.client_machine, status.mtime_ms, written, reason)


def explain(holder: str, blocks: list[BlockLocation]) -> str:
    """Why a file is open, from what the NameNode says of its blocks."""
    if holder.startswith(RECOVERING):
        return "its writer is gone; the last block is being recovered"
    if not blocks:
        return "made, nothing written yet"
    last = blocks[-1]
    if last.is_complete:
        return "the last block is complete; its writer has not closed it"
    where = ", ".join(node.address for node in last.datanodes) or "no DataNode yet"
    return f"blk_{last.block_id} is being written to {where}"
