"""Which files are being written, by whom."""

from __future__ import annotations

import msgspec

from cairnfs.blocks.records import StorageNumber
from cairnfs.namesystem.file_blocks import last_block
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lease_records import Holder, Lease, holder_key
from cairnfs.namesystem.lookup import paths_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller, check_superuser
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

OPEN_FILES_PAGE = 100  # leases looked at by one transaction


class OpenFile(msgspec.Struct, frozen=True, gc=False):
    """A file that is being written."""

    id: InodeId
    path: FsPath
    holder: str
    client_machine: str
    storages: tuple[StorageNumber, ...]  # of the block that is being written


class OpenFiles(msgspec.Struct, frozen=True, gc=False):
    """Some of the files that are being written, and where to go on: 0, that was all."""

    files: list[OpenFile]
    next_after: InodeId


class LeaseInfo(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A lease with all that is known of it, and the file it is of."""

    id: InodeId
    path: str
    length_bytes: int
    block_count: int
    lease: Lease
    renewed_ms: int  # when its holder was last heard of


class LeasePage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of the leases, and where to go on: 0, that was all."""

    leases: list[LeaseInfo]
    next_after: InodeId


@operation(mutates=False)
def get_open_files(tx: Transaction, after: InodeId) -> OpenFiles:
    """The files that are being written, of a page of leases behind the inode `after`."""
    found, next_after = _read_leases(tx, after)
    files = []
    for file, path, lease in found:
        last = last_block(tx, file)
        storages = last.targets if last is not None else ()
        files.append(OpenFile(file.id, path, lease.holder, lease.client_machine, storages))
    return OpenFiles(files, next_after)


@operation(mutates=False)
def list_leases(tx: Transaction, caller: Caller, after: InodeId) -> LeasePage:
    """The same with all that is known of the leases."""
    check_superuser(caller, "list leases")
    found, next_after = _read_leases(tx, after)
    tx.need(holder_key(lease.holder) for _, _, lease in found)
    leases = []
    for file, path, lease in found:
        holder: Holder | None = tx.get(holder_key(lease.holder))
        heard_ms = lease.granted_ms if holder is None else max(lease.granted_ms, holder.renewed_ms)
        leases.append(
            LeaseInfo(file.id, path.text, file.visible_bytes, file.block_count, lease, heard_ms)
        )
    return LeasePage(leases, next_after)


def _read_leases(
    tx: Transaction, after: InodeId
) -> tuple[list[tuple[Inode, FsPath, Lease]], InodeId]:
    """A page of leases with their files, and where to go on."""
    leases: dict[InodeId, Lease] = {}
    for key, lease in tx.scan(Table.LEASES, 0, NUMBER.pack(after), OPEN_FILES_PAGE):
        leases[InodeId(NUMBER.unpack(key[2])[0])] = lease
    found = []
    for (id, lease), path in zip(leases.items(), paths_of(tx, leases), strict=True):
        file: Inode | None = tx.get_by_id(Table.INODES, id)
        if path is not None and file is not None:  # else deleted, and to be reclaimed
            found.append((file, path, lease))
    is_last = len(leases) < OPEN_FILES_PAGE
    return found, InodeId(0) if is_last else max(leases)
