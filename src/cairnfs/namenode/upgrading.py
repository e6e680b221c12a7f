"""What a namespace of an earlier version needs before it is served: done once, at the start.

Earlier versions kept no marks (`namesystem.marks`), and did not note for which snapshots detached
inodes are held (`namesystem.reclaim`).  Each step may be done twice, so it does not matter if a
NameNode dies in the middle, or if two begin at once.
"""

from __future__ import annotations

import logging

from cairnfs.namesystem.inodes import Inode, InodeId
from cairnfs.namesystem.marks import MARKS_KEY
from cairnfs.namesystem.upgrades import look_at_held_orphans, mark_inodes, needs_mark, note_upgraded
from cairnfs.store.base import Reading, Store
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

ROWS_PAGE = 10_000  # looked at in one step
MARKED_AT_ONCE = 100  # by one transaction
REPORTED_ROWS = 1_000_000


async def upgrade_namespace(runner: Runner, store: Store) -> None:
    """Bring a namespace of an earlier version up to date, if it is one."""
    if (await store.read(Reading(keys=[MARKS_KEY]))).rows:
        return
    log.info("the namespace is of an earlier version: it is brought up to date")
    looked = marked = 0
    after = (-1, b"")
    while rows := await store.scan_table(Table.INODES, after, ROWS_PAGE):
        after = rows[-1].key[1:]
        inodes: list[Inode] = [decode(Table.INODES, row.data) for row in rows]
        ids = [InodeId(inode.id) for inode in inodes if needs_mark(inode)]
        for start in range(0, len(ids), MARKED_AT_ONCE):
            await run(runner, Call(mark_inodes, (ids[start : start + MARKED_AT_ONCE],)))
        looked, marked = looked + len(rows), marked + len(ids)
        if looked % REPORTED_ROWS < len(rows):
            log.info("%d files and directories were looked at", looked)
    place = b""
    while place := await run(runner, Call(look_at_held_orphans, (place,))):
        pass
    await run(runner, Call(note_upgraded, ()))
    log.info("the namespace is up to date: %d of %d inodes were marked", marked, looked)
