"""What happened to a directory from one view of it to another.

Both moments are held, so it can be read in pages, and again: by whoever failed in the middle.
"""

from __future__ import annotations

from cairnfs.errors import SnapshotException
from cairnfs.namesystem.counterparts import Names, Side
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lookup import key_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.snapshot_changes import (
    CHANGES_LIMIT,
    ChangePage,
    Position,
    page_of_changes,
)
from cairnfs.namesystem.snapshot_comparison import Comparison
from cairnfs.namesystem.views import View, find_view
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


@operation(mutates=False, walks=True)
def view_changes(
    tx: Transaction,
    caller: Caller,
    old: int,
    new: int,
    resume: Position | None = None,
    limit: int = CHANGES_LIMIT,
) -> ChangePage:
    """A page of the changes from one view to another, in the order in which to apply them.

    The caller must be allowed to list every directory in which something has changed.
    """
    before, after = find_view(tx, caller, old), find_view(tx, caller, new)
    if before.root.identity != after.root.identity:
        raise SnapshotException(
            f"{after.path} after transaction {after.txid} is not the directory that {before.path}"
            f" was after transaction {before.txid}: it was replaced by another one since"
        )
    top = FsPath.parse(after.path)

    def check(directory: Inode, names: Names) -> None:
        if not caller.is_superuser:
            where = top
            for name in names:
                where = where.child(name)
            check_access(caller, directory, Access.READ_EXECUTE, where)

    states = Comparison(_side(tx, before), _side(tx, after), check)
    return page_of_changes(states, resume, limit)


@operation(mutates=False)
def is_view_current(tx: Transaction, caller: Caller, number: int) -> bool:
    """Whether nothing has changed since a view was opened; if in doubt, it is not said to be."""
    view = find_view(tx, caller, number)
    now: Inode | None = tx.get_by_id(Table.INODES, view.root.id)
    if now is None or view.root.is_virtual:
        return False
    is_changed = tx.since(key_of(now)) > view.txid or tx.totals(now.id).changed > view.txid
    return not is_changed


def _side(tx: Transaction, view: View) -> Side:
    """A view as a state; one in a snapshot has the name of that, its row has its own."""
    rows = tx.at(view.txid)
    stored = None if view.root.is_virtual else rows.get_by_id(Table.INODES, view.root.id)
    return Side(rows, stored or view.root, view.txid)
