"""Where the blocks of files are, as they are now or as they were at a snapshot.

Also statuses with the places of their blocks, and the listings of several directories at once.
Who lists in order to read (Spark's planning, distcp) asks for both in one call.  As in HDFS the
places need no permission but that to list; a page ends early when it has told enough of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.blocks.records import Block, block_key
from cairnfs.blocks.reports import need_replicas
from cairnfs.errors import FileNotFoundException, HdfsError, IllegalArgumentException
from cairnfs.namesystem.answers import FileStatus, LocatedBlock, LocatedBlocks
from cairnfs.namesystem.attributes import access_time_is_stale
from cairnfs.namesystem.directories import get_file_info
from cairnfs.namesystem.file_blocks import find_replicas
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.layers import child_of, rows_of_blocks
from cairnfs.namesystem.listings import LISTING_LIMIT, Listing, get_listing
from cairnfs.namesystem.lookup import Lookup, file_at, resolve, resolve_to_read
from cairnfs.namesystem.past_blocks import blocks_now, need_blocks
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.xattrs import check_readable_by_superuser
from cairnfs.transaction.calls import operation
from cairnfs.transaction.rows import ask_all
from cairnfs.transaction.transaction import Transaction

LOCATIONS_LIMIT = LISTING_LIMIT  # of replicas in one page of a listing, near enough


class LocatedStatus(msgspec.Struct, frozen=True, gc=False):
    """A status; of a file, with its blocks."""

    status: FileStatus
    blocks: LocatedBlocks | None


class LocatedListing(msgspec.Struct, frozen=True, gc=False):
    """A page of a directory, with the blocks of each file."""

    entries: list[LocatedStatus]
    remaining: int


class BatchedListing(msgspec.Struct, frozen=True, gc=False):
    """The pages of some of the paths that were asked about, and where to go on."""

    listings: list[tuple[int, LocatedListing | HdfsError]]  # by the index of the path
    next_index: int  # of the path to go on with; past the last, that was all
    next_start_after: bytes


@operation(mutates=False)
def get_block_locations(
    tx: Transaction, caller: Caller, path: FsPath, offset_bytes: int, length_bytes: int
) -> LocatedBlocks:
    """The blocks that hold a range of a file, with one more if it ends at a block's end."""
    if offset_bytes < 0:
        raise IllegalArgumentException(f"Negative offset is not supported. File: {path}")
    if length_bytes < 0:
        raise IllegalArgumentException(f"Negative length is not supported. File: {path}")
    # HDFS says that a file does not exist before it asks whether the caller may know; we ask.
    lookup = resolve_to_read(tx, caller, path)
    file = file_at(lookup)
    check_access(caller, file, Access.READ, lookup.path)
    check_readable_by_superuser(caller, file, lookup.path)

    is_past = _is_past(lookup, file)
    (blocks,) = _read_blocks(tx, lookup, [file])
    located = _in_order(blocks)
    chosen = _choose_blocks(located, offset_bytes, offset_bytes + length_bytes)
    last = located[-1:]
    _need_places(tx, [each.block for each in chosen + last])
    return LocatedBlocks(
        file.id,
        file.visible_bytes if is_past else file.length_bytes,
        file.under_construction and not is_past,
        [find_replicas(tx, each) for each in chosen],
        find_replicas(tx, last[0]) if last else None,
        bool(located) and (is_past or not file.has_open_block),
        not is_past and access_time_is_stale(file, tx.now_ms),
    )


@operation(mutates=False)
def get_located_file_info(tx: Transaction, caller: Caller, path: FsPath) -> LocatedStatus | None:
    """The status of a path with its blocks, or None if there is nothing."""
    status: FileStatus | None = get_file_info.function(tx, caller, path)
    if status is None:
        return None
    return LocatedStatus(status, _locate_target(tx, resolve(tx, path)))


@operation(mutates=False)
def get_located_listing(
    tx: Transaction, caller: Caller, path: FsPath, start_after: bytes
) -> LocatedListing | None:
    """A page of a directory behind `start_after`, with blocks; of a file, the file itself."""
    return _list(tx, caller, path, start_after, with_blocks=True)


@operation(mutates=False)
def get_batched_listing(
    tx: Transaction,
    caller: Caller,
    index: int,
    start_after: bytes,
    with_blocks: bool,
    *paths: FsPath,
) -> BatchedListing:
    """Pages of directory after directory from the path `index` on, as many as make one page.

    An error concerns the one path that has it.
    """
    listings: list[tuple[int, LocatedListing | HdfsError]] = []
    count = 0
    while index < len(paths) and count < LISTING_LIMIT:
        try:
            listing = _list(tx, caller, paths[index], start_after, with_blocks=with_blocks)
            if listing is None:
                raise FileNotFoundException(f"Path {paths[index]} does not exist")
        except HdfsError as error:
            listings.append((index, error))
        else:
            listings.append((index, listing))
            count += len(listing.entries)
            if listing.remaining:
                return BatchedListing(listings, index, listing.entries[-1].status.name)
        start_after = b""
        index += 1
    return BatchedListing(listings, index, b"")


def _list(
    tx: Transaction, caller: Caller, path: FsPath, start_after: bytes, *, with_blocks: bool
) -> LocatedListing | None:
    listing: Listing | None = get_listing.function(tx, caller, path, start_after)
    if listing is None:
        return None
    if not with_blocks or path.is_exactly_reserved:
        return LocatedListing(
            [LocatedStatus(status, None) for status in listing.entries], listing.remaining
        )
    lookup = resolve(tx, path)
    if lookup.is_dot_snapshot:
        return _list_snapshots(tx, lookup, listing)
    listed = lookup.inodes[-1]
    if listed.is_directory:
        found = ask_all(lambda status: child_of(lookup.rows, listed, status.name), listing.entries)
        inodes = [inode for inode in found if inode is not None]
    else:
        inodes = [listed]

    inodes = _within_limit(inodes)
    files = [inode for inode in inodes if inode.is_file]
    blocks = dict(zip([file.id for file in files], _locate(tx, lookup, files), strict=True))
    entries = [
        LocatedStatus(status, blocks.get(status.id)) for status in listing.entries[: len(inodes)]
    ]
    return LocatedListing(entries, listing.remaining + len(listing.entries) - len(inodes))


def _list_snapshots(tx: Transaction, lookup: Lookup, listing: Listing) -> LocatedListing:
    """The snapshots of a directory, or of a file, each of which has blocks of its own."""
    entries = []
    for status in listing.entries:
        snapshot = resolve(tx, lookup.path.child(status.name))
        entries.append(LocatedStatus(status, _locate_target(tx, snapshot)))
    return LocatedListing(entries, listing.remaining)


def _within_limit(inodes: list[Inode]) -> list[Inode]:
    """As many of the inodes as a page may have, by the places of their blocks."""
    places = 0
    for count, inode in enumerate(inodes):
        if places >= LOCATIONS_LIMIT:
            return inodes[:count]
        places += inode.block_count * inode.replication
    return inodes


def _locate_target(tx: Transaction, lookup: Lookup) -> LocatedBlocks | None:
    target = lookup.target
    return _locate(tx, lookup, [target])[0] if target is not None and target.is_file else None


def _locate(tx: Transaction, lookup: Lookup, files: Sequence[Inode]) -> list[LocatedBlocks]:
    """The blocks of each file; what is needed for that is read at once."""
    blocks = _read_blocks(tx, lookup, files)
    _need_places(tx, [block for blocks_of_file in blocks for block in blocks_of_file])
    return [
        _locate_file(tx, file, blocks_of_file, is_past=_is_past(lookup, file))
        for file, blocks_of_file in zip(files, blocks, strict=True)
    ]


def _need_places(tx: Transaction, blocks: Sequence[Block]) -> None:
    """Have at hand where blocks are; of one that is shared, another row may know its stamp."""
    need_blocks(tx, [block for block in blocks if block.stored_bytes])
    need_replicas(tx, [block.id for block in blocks])


def _is_past(lookup: Lookup, file: Inode) -> bool:
    """Whether a file is as it was at a snapshot: by its path, or because it is shared."""
    return lookup.snapshot is not None or file.is_virtual


def _read_blocks(tx: Transaction, lookup: Lookup, files: Sequence[Inode]) -> list[list[Block]]:
    """The blocks of each file, by which replicas are found."""
    found: list[list[Block]] = ask_all(lambda file: _rows_of(lookup, file), files)
    past = [_is_past(lookup, file) for file in files]
    need_blocks(tx, [block for n, each in enumerate(found) if past[n] for block in each])
    return [blocks_now(tx, each) if past[n] else each for n, each in enumerate(found)]


def _rows_of(lookup: Lookup, file: Inode) -> list[Block]:
    rows, id = rows_of_blocks(lookup.rows, file)
    keys = [block_key(id, index) for index in range(file.block_count)]
    rows.need(keys)
    return [rows.get(key) for key in keys]


def _locate_file(
    tx: Transaction, file: Inode, blocks: list[Block], *, is_past: bool
) -> LocatedBlocks:
    """A whole file; one of the past is being written by nobody, whoever wrote it then."""
    located = [find_replicas(tx, each) for each in _in_order(blocks)]
    return LocatedBlocks(
        file.id,
        file.visible_bytes if is_past else file.length_bytes,
        file.under_construction and not is_past,
        located,
        located[-1] if located else None,
        bool(located) and (is_past or not file.has_open_block),
        access_time_is_stale=False,  # to list is not to read
    )


def _in_order(blocks: list[Block]) -> list[LocatedBlock]:
    located = []
    offset_bytes = 0
    for block in blocks:
        located.append(LocatedBlock(block, offset_bytes))
        offset_bytes += block.length_bytes
    return located


def _choose_blocks(located: list[LocatedBlock], start: int, end: int) -> list[LocatedBlock]:
    """The block that holds `start`, and those after it that begin before `end`."""
    index = 0
    if located and located[0].block.length_bytes:  # HDFS begins with an empty first block
        while index < len(located) and located[index].end_bytes <= start:
            index += 1
    rest = located[index + 1 :]
    return located[index : index + 1] + [block for block in rest if block.offset_bytes < end]
