"""Notes of which blocks have to be looked at, and in which order.

Invariant: a complete block that has not exactly the good replicas that its file asks for
has a row in CHECKS.  Whoever changes what such a block has puts it into the queue NEW, in
the same transaction and even if it is there: so whoever has looked at a block and found it
well can tell whether that still holds (`settle_check`).
"""

from __future__ import annotations

from collections.abc import Iterable

from cairnfs.blocks.records import BlockId, Check, CheckQueue, StorageNumber, check_key
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

CHECKS_PAGE = 500  # blocks put down by one transaction


@operation()
def put_checks(tx: Transaction, storage: StorageNumber, after: bytes) -> bytes:
    """Have a page of a storage's blocks looked at; returns where to go on, or nothing."""
    page = tx.scan(Table.REPLICAS, storage, after, CHECKS_PAGE)
    tx.need(check_key(replica.block_id) for _, replica in page)
    for _, replica in page:
        put_check(tx, replica.block_id, at_once=True)
    return page[-1][0][2] if len(page) == CHECKS_PAGE else b""


def put_check(
    tx: Transaction, block_id: BlockId, *, at_once: bool = False, delete_hint: str = ""
) -> None:
    """Leave a note that the replicas of a block have to be looked at.

    Reports that are on their way are given a moment, unless it is to be done `at_once`.
    """
    key = check_key(block_id)
    known: Check | None = tx.get(key)
    since_ms = tx.now_ms if known is None else known.since_ms
    touched = tx.now_ms if known is None else max(known.touched + 1, tx.now_ms)
    hint = delete_hint or ("" if known is None else known.delete_hint)
    tx.put(key, Check(block_id, 0 if at_once else since_ms, touched, hint))


def settle_check(
    tx: Transaction, block_id: BlockId, news: Check | None, queue: CheckQueue | None
) -> bool:
    """The block was looked at when `news` was what was new of it: to be done with, or to wait.

    False, and nothing changes, if something has happened since.
    """
    key = check_key(block_id)
    if tx.get(key) != news:
        return False
    if news is not None:
        tx.delete(key)
    waiting = None if queue is None else check_key(block_id, queue)
    found = tx.list_by_id(Table.CHECKS, block_id)
    for other, _ in found:
        if other not in (key, waiting):
            tx.delete(other)
    if waiting is not None and tx.get(waiting) is None:
        tx.put(waiting, Check(block_id, tx.now_ms))
    return True


def forget_checks(tx: Transaction, block_id: BlockId) -> None:
    """The block is gone."""
    tx.get(check_key(block_id))  # so that nothing new can happen to it unnoticed
    for key, _ in tx.list_by_id(Table.CHECKS, block_id):
        tx.delete(key)


def need_checks(tx: Transaction, block_ids: Iterable[BlockId]) -> None:
    """Have the notes about several blocks at hand with one read."""
    ids = list(block_ids)
    tx.need([check_key(id) for id in ids], ids=[(int(Table.CHECKS), id) for id in ids])
