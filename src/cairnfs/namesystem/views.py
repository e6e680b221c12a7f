"""Views: a tree as it is at one moment, held for somebody who reads all of it.

A view is a TxID that is held as by a snapshot, but it has no name and nobody else sees it.  Whoever
opened it closes it again, or is not heard of for so long that it is closed for them.
"""

from __future__ import annotations

import msgspec

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    IllegalArgumentException,
    SnapshotException,
)
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.layers import parent_of
from cairnfs.namesystem.lookup import Lookup, directory_at, key_of, resolve_to_read
from cairnfs.namesystem.paths import FsPath, check_text
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.snapshot_records import Removal, removal_key
from cairnfs.namesystem.snapshots import note_latest
from cairnfs.namesystem.tree_attributes import Inherited, entering
from cairnfs.store.schema import NUMBER, PAIR, Key, Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.moments import Moment, add_moment, remove_moment
from cairnfs.transaction.records import register
from cairnfs.transaction.rows import Rows
from cairnfs.transaction.transaction import Transaction

VIEW_LIMIT_MS = 600_000  # a view that was not renewed for so long is closed,
VIEW_LIMIT_MAX_MS = 30 * 24 * 3_600_000  # unless who opened it has asked for longer, up to this
_PAGE = 100


class View(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A directory with everything below it, as it was after a TxID."""

    number: int
    txid: int
    path: str
    root: Inode
    user: str
    renewed_ms: int
    limit_ms: int = VIEW_LIMIT_MS  # it is closed if it was not renewed for so long
    entering: tuple[Inherited, ...] = ()  # what the directory inherits from above
    label: str = ""  # by which whoever opened it finds it among others


register(Table.VIEWS, View)

_NUMBERS_END = 2**64


def view_key(number: int) -> Key:
    return (Table.VIEWS, 0, NUMBER.pack(number))


@operation(stored_reply=View, solitary=True)
def open_view(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    txid: int = 0,
    limit_ms: int = VIEW_LIMIT_MS,
    label: str = "",
) -> View:
    """Hold a directory as it is now; or, of one in a snapshot, as it was then.

    With a TxID, as it was after that, if a snapshot or a view still has that moment.
    """
    if not 0 < limit_ms <= VIEW_LIMIT_MAX_MS:
        raise IllegalArgumentException(
            f"A view of {path} is held for 1 to {VIEW_LIMIT_MAX_MS} ms, not for {limit_ms}"
        )
    check_text(label, "label of a view")
    lookup = resolve_to_read(tx, caller, path)
    root = directory_at(lookup)
    check_access(caller, root, Access.READ_EXECUTE, lookup.path)
    held = next(inode for inode in reversed(lookup.inodes) if not inode.is_virtual)
    if lookup.snapshot is not None:
        held_txid = lookup.snapshot.txid
        _check_same_moment(lookup, txid, held_txid)
    elif txid:
        held_txid = txid
        root = held = _as_it_was(tx, lookup, root, txid)
    else:
        held_txid = tx.txid
        covered = msgspec.structs.replace(held, covered_txid=held_txid)
        tx.put(key_of(held), covered)
        note_latest(tx, tx.txid)
        root = covered if held is root else root
    view = View(
        tx.next_inode_id(),
        held_txid,
        lookup.path.text,
        root,
        caller.user,
        tx.now_ms,
        limit_ms,
        entering(lookup),
        label,
    )
    is_new = tx.known_txid == held_txid
    add_moment(tx, view.number, Moment(held_txid, held.id), is_new=is_new)
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
    if _find(tx, number) is not None:
        _close(tx, find_view(tx, caller, number))


@operation(mutates=False)
def list_views(tx: Transaction, caller: Caller) -> list[View]:
    """Those that are open: the caller's own, or for the superuser all."""
    return [view for view in _all(tx) if caller.is_superuser or view.user == caller.user]


@operation()
def close_forgotten_views(tx: Transaction) -> int:
    """Close some of those whose readers were not heard of; how many it were."""
    page = tx.scan(Table.VIEWS, 0, b"", _PAGE)
    forgotten = [view for _, view in page if view.renewed_ms + view.limit_ms < tx.now_ms]
    for view in forgotten:
        _close(tx, view)
    return len(forgotten)


def find_view(rows: Rows, caller: Caller, number: int) -> View:
    """An open view of the caller's."""
    view = _find(rows, number)
    if view is None:
        raise FileNotFoundException(
            f"There is no view {number}: it was closed, or not renewed for as long as it is held"
            f" ({VIEW_LIMIT_MS // 60_000} minutes, unless asked for); open another one"
        )
    if not caller.is_superuser and caller.user != view.user:
        raise AccessControlException(
            f"Permission denied: view {number} was opened by {view.user}, not by {caller.user}"
        )
    return view


def _find(rows: Rows, number: int) -> View | None:
    view: View | None = rows.get(view_key(number)) if 0 <= number < _NUMBERS_END else None
    return view


def _as_it_was(tx: Transaction, lookup: Lookup, now: Inode, txid: int) -> Inode:
    """A directory after a TxID of which everything below it is still there."""
    if not 0 < txid < tx.txid:
        raise IllegalArgumentException(
            f"{lookup.path} cannot be read as it was after transaction {txid}: the last one is"
            f" {tx.txid - 1}"
        )
    rows = tx.at(txid)
    held = {moment.inode_id for moment in _moments_at(tx, txid)}
    then: Inode | None = None if now.is_virtual else rows.get_by_id(Table.INODES, now.id)
    above = then
    while above is not None:
        if above.id in held:
            assert then is not None
            return then
        above = parent_of(rows, above)
    raise SnapshotException(
        f"{lookup.path} cannot be read as it was after transaction {txid}: no snapshot of that"
        " moment is there, nor a view, so what has changed since was reclaimed; choose the TxID"
        " of a snapshot, and have one taken to keep more"
    )


def _moments_at(tx: Transaction, txid: int) -> list[Moment]:
    """The snapshots and views of exactly that moment."""
    moments: list[Moment] = []
    after = PAIR.pack(txid, 0)
    while page := tx.scan(Table.MOMENTS, 0, after, _PAGE):
        moments += [moment for _, moment in page if moment.txid == txid]
        if page[-1][1].txid != txid:
            break
        after = page[-1][0][2]
    return moments


def _check_same_moment(lookup: Lookup, txid: int, held_txid: int) -> None:
    if txid not in (0, held_txid):
        raise IllegalArgumentException(
            f"{lookup.path} is as it was after transaction {held_txid}, not {txid}"
        )


def _close(tx: Transaction, view: View) -> None:
    tx.delete(view_key(view.number))
    remove_moment(tx, view.txid, view.number)
    tx.put_new(removal_key(view.txid, view.number), Removal(tx.now_ms, until=view.txid))


def _all(tx: Transaction) -> list[View]:
    views: list[View] = []
    after = b""
    while page := tx.scan(Table.VIEWS, 0, after, _PAGE):
        after = page[-1][0][2]
        views += [view for _, view in page]
    return views
