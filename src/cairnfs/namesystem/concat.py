"""Concat: the blocks of several files become the end of another one.

No data moves.  Each source's inode goes away and its block rows are kept under
the target, so nothing is left to be reclaimed.
"""

from __future__ import annotations

from functools import partial
from types import NoneType

import msgspec

from cairnfs.blocks.checks import need_checks, put_check
from cairnfs.blocks.holding import needed_bytes
from cairnfs.blocks.records import block_key
from cairnfs.errors import (
    HadoopIllegalArgumentException,
    IllegalArgumentException,
    IOException,
)
from cairnfs.namesystem.file_blocks import blocks_of
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.layers import forget_identity, hide
from cairnfs.namesystem.lookup import Lookup, file_at, key_of, resolve_to_write
from cairnfs.namesystem.marks import forget_mark
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access, check_sticky
from cairnfs.namesystem.policy_changes import is_same, policy_id_of, request_scan
from cairnfs.namesystem.quotas import ONE_FILE, change_data, data_of, difference, remove_entry
from cairnfs.namesystem.snapshots import check_without_snapshots, forget_snapshottable
from cairnfs.transaction.calls import operation
from cairnfs.transaction.rows import ask_all
from cairnfs.transaction.transaction import Transaction


@operation(stored_reply=NoneType)
def concat(tx: Transaction, caller: Caller, target: FsPath, *sources: FsPath) -> None:
    """Move the blocks of `sources`, in their order, to the end of `target`."""
    if not sources:
        raise IllegalArgumentException("No sources given")
    for path in (target, *sources):
        if path.is_raw or path.is_inodes:
            raise IOException(f"Concat operation doesn't support /.reserved relative path : {path}")
    lookup = resolve_to_write(tx, caller, target)
    if lookup.target is not None:
        check_access(caller, lookup.target, Access.WRITE, lookup.path)
    file = file_at(lookup)
    if file.under_construction:
        raise HadoopIllegalArgumentException(f"concat: target file {target} is under construction")
    checked = [_check_source(tx, caller, source, lookup, file) for source in sources]
    found = [source for source, _ in checked]
    own_policy = policy_id_of(lookup)
    has_others = any(not is_same(policy, own_policy) for _, policy in checked)
    if len({source.id for source in found}) < len(found):
        raise HadoopIllegalArgumentException(
            "concat: at least two of the source files are the same"
        )

    for source in found:
        remove_entry(tx, lookup.ancestors, ONE_FILE)
        tx.delete(key_of(source))
        forget_mark(tx, source)
        forget_identity(tx, source)
        hide(tx, lookup.ancestors[-1], source.name)
        if source.is_snapshottable:
            forget_snapshottable(tx, source)
    blocks = ask_all(partial(blocks_of, tx), found)  # so that all are read together
    if any(source.replication != file.replication for source in found):
        need_checks(tx, [block.id for of_source in blocks for block in of_source])
    block_count = file.block_count
    for source in found:
        block_count = _move_blocks(tx, source, file, block_count)
    changed = msgspec.structs.replace(
        file,
        block_count=block_count,
        length_bytes=file.length_bytes + sum(source.length_bytes for source in found),
        reserved_bytes=0,
        mtime_ms=tx.now_ms,
    )
    counts = data_of(changed)
    for each in (file, *found):
        counts = difference(counts, data_of(each))
    change_data(tx, lookup.path, lookup.ancestors, counts)
    tx.put(key_of(file), changed)
    if has_others:
        request_scan(tx, changed)


def _check_source(
    tx: Transaction, caller: Caller, path: FsPath, target: Lookup, file: Inode
) -> tuple[Inode, int]:
    """The file, and the storage policy that its blocks are kept by."""
    lookup = resolve_to_write(tx, caller, path)
    parent = lookup.parent
    if lookup.target is not None:
        check_access(caller, lookup.target, Access.READ, lookup.path)
        if parent is not None:
            check_sticky(caller, parent, lookup.target, lookup.path)
    if parent is not None:
        check_access(caller, parent, Access.WRITE, lookup.path, len(lookup.ancestors) - 1)
    source = file_at(lookup)
    check_without_snapshots(tx, lookup, source)
    if source.parent_id != file.parent_id:
        raise HadoopIllegalArgumentException(
            f"Source file {path} is not in the same directory with the target {target.path}"
        )
    if source.id == file.id:
        raise HadoopIllegalArgumentException(
            f"concat: the src file {path} is the same with the target file {target.path}"
        )
    if source.under_construction or not source.block_count:
        raise HadoopIllegalArgumentException(
            f"concat: source file {path} is invalid or empty or underConstruction"
        )
    if source.block_size_bytes > file.block_size_bytes:
        raise HadoopIllegalArgumentException(
            f"concat: source file {path} has preferred block size {source.block_size_bytes}"
            " which is greater than the target file's preferred block size"
            f" {file.block_size_bytes}"
        )
    return source, policy_id_of(lookup)


def _move_blocks(tx: Transaction, source: Inode, file: Inode, block_count: int) -> int:
    """Key a source's block rows to the target, after the `block_count` there are."""
    for index, block in enumerate(blocks_of(tx, source)):
        key = block_key(source.id, index)
        moved = msgspec.structs.replace(block, held_bytes=needed_bytes(tx, key, block))
        tx.delete(key)
        tx.put_new(block_key(file.id, block_count + index), moved)
        if source.replication != file.replication:
            put_check(tx, block.id, at_once=True)
    return block_count + source.block_count
