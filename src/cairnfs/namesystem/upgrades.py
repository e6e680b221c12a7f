"""Transactions that bring rows of earlier versions up to date; each may be run twice."""

from __future__ import annotations

from collections.abc import Sequence

from cairnfs.namesystem.inheritance import name_of
from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.lookup import way_to
from cairnfs.namesystem.marks import GUARDED, MARKS_KEY, Mark, mark
from cairnfs.namesystem.orphans import look_again
from cairnfs.namesystem.xattrs import is_guarded
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.rows import ask_all
from cairnfs.transaction.transaction import Transaction

HELD_PAGE = 500  # orphans looked at by one transaction


def needs_mark(inode: Inode) -> bool:
    """Whether a roll-back of a directory above has to find this inode."""
    return inode.is_snapshottable or _has_guarded(inode)


def _has_guarded(inode: Inode) -> bool:
    guarded = any(is_guarded(name_of(xattr)) for xattr in inode.xattrs or ())
    return guarded or inode.quota is not None


@operation()
def mark_inodes(tx: Transaction, ids: Sequence[InodeId]) -> None:
    """Mark some inodes, as far as they can be reached."""
    tx.need(ids=[(int(Table.INODES), id) for id in ids])
    inodes: list[Inode | None] = ask_all(lambda id: tx.get_by_id(Table.INODES, id), ids)
    found = [inode for inode in inodes if inode is not None]
    for way in ask_all(lambda inode: way_to(tx, inode), found):
        if way is not None:
            mark(tx, way, GUARDED if _has_guarded(way[-1]) else 0)


@operation()
def look_at_held_orphans(tx: Transaction, after: bytes) -> bytes:
    """Have a page of held orphans looked at again, so that it is noted for what each is held.

    Returns where to go on, or nothing.
    """
    page = tx.scan(Table.HELD, 0, after, HELD_PAGE)
    for key, orphan in page:
        look_again(tx, key, orphan)
    return page[-1][0][2] if len(page) == HELD_PAGE else b""


@operation()
def note_upgraded(tx: Transaction) -> None:
    """Everything is up to date."""
    if tx.get(MARKS_KEY) is None:
        tx.put(MARKS_KEY, Mark())
