"""Statuses with the places of their blocks, and the listings of several directories at once.

Who lists in order to read (Spark's planning, distcp) asks for both in one call.  As in HDFS the
places need no permission but that to list; a page ends early when it has told enough of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.blocks.records import Block, block_key
from cairnfs.blocks.reports import need_replicas
from cairnfs.errors import FileNotFoundException, HdfsError
from cairnfs.namesystem.directories import LISTING_LIMIT, Listing, get_file_info, get_listing
from cairnfs.namesystem.file_blocks import LocatedBlock, LocatedBlocks, find_replicas
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lookup import inode_key, resolve
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.status import FileStatus
from cairnfs.transaction.calls import operation
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
def get_located_file_info(tx: Transaction, caller: Caller, path: FsPath) -> LocatedStatus | None:
    """The status of a path with its blocks, or None if there is nothing."""
    status: FileStatus | None = get_file_info.function(tx, caller, path)
    if status is None:
        return None
    target = resolve(tx, path).target
    is_file = target is not None and target.is_file
    return LocatedStatus(status, _locate(tx, [target])[0] if target and is_file else None)


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
    listed = resolve(tx, path).inodes[-1]
    if listed.is_directory:
        keys = [inode_key(listed.id, status.name) for status in listing.entries]
        inodes: list[Inode] = [tx.get(key) for key in keys]
    else:
        inodes = [listed]

    inodes = _within_limit(inodes)
    files = [inode for inode in inodes if inode.is_file]
    blocks = dict(zip([file.id for file in files], _locate(tx, files), strict=True))
    entries = [
        LocatedStatus(status, blocks.get(status.id)) for status in listing.entries[: len(inodes)]
    ]
    return LocatedListing(entries, listing.remaining + len(listing.entries) - len(inodes))


def _within_limit(inodes: list[Inode]) -> list[Inode]:
    """As many of the inodes as a page may have, by the places of their blocks."""
    places = 0
    for count, inode in enumerate(inodes):
        if places >= LOCATIONS_LIMIT:
            return inodes[:count]
        places += inode.block_count * inode.replication
    return inodes


def _locate(tx: Transaction, files: Sequence[Inode]) -> list[LocatedBlocks]:
    """The blocks of each file; what is needed for that is read at once."""
    keys = [[block_key(file.id, index) for index in range(file.block_count)] for file in files]
    tx.need(key for keys_of_file in keys for key in keys_of_file)
    blocks: list[list[Block]] = [[tx.get(key) for key in keys_of_file] for keys_of_file in keys]
    need_replicas(tx, [block.id for blocks_of_file in blocks for block in blocks_of_file])
    return [
        _locate_file(tx, file, blocks_of_file)
        for file, blocks_of_file in zip(files, blocks, strict=True)
    ]


def _locate_file(tx: Transaction, file: Inode, blocks: list[Block]) -> LocatedBlocks:
    located = []
    offset_bytes = 0
    for block in blocks:
        located.append(find_replicas(tx, LocatedBlock(block, offset_bytes)))
        offset_bytes += block.length_bytes
    return LocatedBlocks(
        file.id,
        file.length_bytes,
        file.under_construction,
        located,
        located[-1] if located else None,
        bool(located) and not file.has_open_block,
        access_time_is_stale=False,  # to list is not to read
    )
