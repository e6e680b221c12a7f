"""Which files are being written, by whom."""

from __future__ import annotations

import msgspec

from cairnfs.blocks.records import StorageNumber
from cairnfs.namesystem.file_blocks import last_block
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.leases import Lease
from cairnfs.namesystem.lookup import path_of
from cairnfs.namesystem.paths import FsPath
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


@operation(mutates=False)
def get_open_files(tx: Transaction, after: InodeId) -> OpenFiles:
    """The files that are being written, of a page of leases behind the inode `after`."""
    page: list[tuple[object, Lease]] = []
    ids: list[InodeId] = []
    for key, lease in tx.scan(Table.LEASES, 0, NUMBER.pack(after), OPEN_FILES_PAGE):
        ids.append(InodeId(NUMBER.unpack(key[2])[0]))
        page.append((key, lease))
    tx.need(ids=[(int(Table.INODES), id) for id in ids])
    files = []
    for id, (_, lease) in zip(ids, page, strict=True):
        path = path_of(tx, id)
        file: Inode | None = tx.get_by_id(Table.INODES, id)
        if path is None or file is None:  # deleted, and to be reclaimed
            continue
        last = last_block(tx, file)
        storages = last.targets if last is not None else ()
        files.append(OpenFile(id, path, lease.holder, lease.client_machine, storages))
    return OpenFiles(files, ids[-1] if len(ids) == OPEN_FILES_PAGE else InodeId(0))
