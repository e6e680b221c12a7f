"""Views: a tree as it is at one moment, held for somebody who reads all of it.

A view is a TxID that is held as by a snapshot, but it has no name and nobody else sees it.  Whoever
opened it closes it again, or is not heard of for so long that it is closed for them.
"""

from __future__ import annotations

import msgspec

from cairnfs.errors import AccessControlException, FileNotFoundException
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lookup import directory_at, key_of, resolve_to_read
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.snapshot_records import Removal, removal_key
from cairnfs.namesystem.snapshots import note_latest
from cairnfs.store.base import Key
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.moments import Moment, moment_key
from cairnfs.transaction.records import register
from cairnfs.transaction.rows import Rows
from cairnfs.transaction.transaction import Transaction

VIEW_LIMIT_MS = 600_000  # a view that was not renewed for so long is closed
_PAGE = 100


class View(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A directory with everything below it, as it was after a TxID."""

    number: int
    txid: int
    path: str
    root: Inode
    user: str
    renewed_ms: int


register(Table.VIEWS, View)


def view_key(number: int) -> Key:
    return (Table.VIEWS, 0, NUMBER.pack(number))


@operation(at_most_once=True, solitary=True)
def open_view(tx: Transaction, caller: Caller, path: FsPath) -> View:
    """Hold a directory as it is now; or, of one in a snapshot, as it was then."""
    lookup = resolve_to_read(tx, caller, path)
    root = directory_at(lookup)
    check_access(caller, root, Access.READ_EXECUTE, lookup.path)
    held = next(inode for inode in reversed(lookup.inodes) if not inode.is_virtual)
    if lookup.snapshot is not None:
        txid = lookup.snapshot.txid
    else:
        txid = tx.txid
        covered = msgspec.structs.replace(held, covered_txid=txid)
        tx.put(key_of(held), covered)
        note_latest(tx)
        root = covered if held is root else root
    view = View(tx.next_inode_id(), txid, lookup.path.text, root, caller.user, tx.now_ms)
    tx.put_new(moment_key(txid, view.number), Moment(txid, held.id))
    tx.put_new(view_key(view.number), view)
    return view


@operation()
def renew_view(tx: Transaction, caller: Caller, number: int) -> View:
    """Its reader is still there."""
    view = find_view(tx, caller, number)
    renewed = msgspec.structs.replace(view, renewed_ms=tx.now_ms)
    tx.put(view_key(number), renewed)
    return renewed


@operation()
def close_view(tx: Transaction, caller: Caller, number: int) -> None:
    """What only this view needed is reclaimed; one that is closed already stays so."""
    if tx.get(view_key(number)) is not None:
        _close(tx, find_view(tx, caller, number))


@operation(mutates=False)
def list_views(tx: Transaction, caller: Caller) -> list[View]:
    """Those that are open: the caller's own, or for the superuser all."""
    return [view for view in _all(tx) if caller.is_superuser or view.user == caller.user]


@operation()
def close_forgotten_views(tx: Transaction) -> int:
    """Close some of those whose readers were not heard of; how many it were."""
    page = tx.scan(Table.VIEWS, 0, b"", _PAGE)
    forgotten = [view for _, view in page if view.renewed_ms + VIEW_LIMIT_MS < tx.now_ms]
    for view in forgotten:
        _close(tx, view)
    return len(forgotten)


def find_view(rows: Rows, caller: Caller, number: int) -> View:
    """An open view of the caller's."""
    view: View | None = rows.get(view_key(number))
    if view is None:
        raise FileNotFoundException(
            f"There is no view {number}: it was closed, or not renewed for"
            f" {VIEW_LIMIT_MS // 60_000} minutes; open another one"
        )
    if not caller.is_superuser and caller.user != view.user:
        raise AccessControlException(
            f"Permission denied: view {number} was opened by {view.user}, not by {caller.user}"
        )
    return view


def _close(tx: Transaction, view: View) -> None:
    tx.delete(view_key(view.number))
    moment = moment_key(view.txid, view.number)
    tx.get(moment)
    tx.delete(moment)
    tx.put_new(removal_key(view.txid, view.number), Removal(tx.now_ms, until=view.txid))


def _all(tx: Transaction) -> list[View]:
    views: list[View] = []
    after = b""
    while page := tx.scan(Table.VIEWS, 0, after, _PAGE):
        after = page[-1][0][2]
        views += [view for _, view in page]
    return views
