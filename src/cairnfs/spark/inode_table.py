"""The table `inodes`: a row for each file, directory and link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from cairnfs.blocks.policies import DEFAULT, UNSPECIFIED_ID, policy_by_id
from cairnfs.namesystem.inheritance import STORAGE_POLICY
from cairnfs.namesystem.inodes import Inode, Kind
from cairnfs.namesystem.tree_attributes import Inherited, descend
from cairnfs.namesystem.tree_parts import Detail
from cairnfs.spark.tables import TIME, Column, Needs
from cairnfs.spark.view_tables import Directory, name_of, view_table
from cairnfs.store.base import Count

KINDS = {Kind.DIRECTORY: "directory", Kind.FILE: "file", Kind.SYMLINK: "symlink"}
_FILE = Kind.FILE


def _of_inode(type: pa.DataType, take: Callable[[Inode], Any]) -> Column[Directory]:
    return Column(type, lambda group: [take(inode) for inode in group.inodes])


def _of_file(type: pa.DataType, take: Callable[[Inode], Any]) -> Column[Directory]:
    return Column(
        type,
        lambda group: [take(inode) if inode.kind is _FILE else None for inode in group.inodes],
    )


def _below(count: Count) -> Column[Directory]:
    """What a directory has below it."""

    def make(group: Directory) -> list[int | None]:
        totals = group.listed.totals
        return [totals[n].counts[count] if n in totals else None for n in range(len(group.inodes))]

    return Column(pa.int64(), make, Needs.ROWS)


def _modified_us(group: Directory) -> list[int]:
    """When each was modified: of a directory, when one of its entries was."""
    times = [1000 * inode.mtime_ms for inode in group.inodes]
    for n, totals in group.listed.totals.items():
        if totals.touched:
            times[n] = 1000 * totals.mtime_ms
    return times


def _storage_policies(group: Directory) -> list[str | None]:
    """The name of the policy that holds for each, its own or one from above."""
    above = tuple(each for each in group.listed.inherited if each.attribute == STORAGE_POLICY)
    if not above:  # nobody ever chose one
        return [None if inode.kind is Kind.SYMLINK else DEFAULT.name for inode in group.inodes]
    return [_storage_policy(above, inode) for inode in group.listed.stamped]


def _storage_policy(above: tuple[Inherited, ...], inode: Inode) -> str | None:
    if inode.kind is Kind.SYMLINK:
        return None
    (decided,) = descend(above, inode, "")
    policy = policy_by_id(decided.value[0] if decided.value else UNSPECIFIED_ID)
    return None if policy is None else policy.name


INODES = view_table(
    "inodes",
    {
        "path": Column(pa.string(), lambda group: group.paths),
        "parent": Column(pa.string(), lambda group: [group.path] * group.count, Needs.COUNTS),
        "name": _of_inode(pa.string(), name_of),
        "id": _of_inode(pa.int64(), lambda inode: inode.id),
        "kind": _of_inode(pa.string(), lambda inode: KINDS[inode.kind]),
        "length": _of_file(pa.int64(), lambda inode: inode.visible_bytes),
        "owner": _of_inode(pa.string(), lambda inode: inode.owner),
        "group": _of_inode(pa.string(), lambda inode: inode.group),
        "mode": _of_inode(pa.int32(), lambda inode: inode.mode),
        "modified": Column(TIME, _modified_us),
        "accessed": _of_file(TIME, lambda inode: 1000 * inode.atime_ms),
        "replication": _of_file(pa.int32(), lambda inode: inode.replication),
        "block_size": _of_file(pa.int64(), lambda inode: inode.block_size_bytes),
        "blocks": _of_file(pa.int32(), lambda inode: inode.block_count),
        "storage_policy": Column(pa.string(), _storage_policies),
        "is_open": _of_file(pa.bool_(), lambda inode: inode.under_construction),
        "target": _of_inode(pa.string(), lambda inode: inode.target),
        "has_acl": _of_inode(pa.bool_(), lambda inode: bool(inode.acl)),
        "is_snapshottable": _of_inode(pa.bool_(), lambda inode: inode.is_snapshottable),
        "files_below": _below(Count.FILES),
        "directories_below": _below(Count.DIRECTORIES),
        "length_below": _below(Count.LENGTH_BYTES),
        "space_below": _below(Count.SPACE_BYTES),
        "txid": Column(
            pa.int64(),
            lambda group: [txid or None for txid in group.listed.since],
            Needs.ROWS,
        ),
    },
    lambda directory, _: directory,
    details_of={"storage_policy": Detail.ATTRIBUTES},
)
"""Columns of directories or files alone are null for others."""
