"""Has DataNodes recover the blocks that wait for it, or copy them: RECOVERIES says which.

This belongs to the redundancy duty, whose owner is the NameNode that gives commands.  An
attempt that was begun is known to that NameNode only.  One whose primary dies, or is not heard
of in time, is followed by another with another primary; so is one that a NameNode before us had
begun, as soon as the duty is ours.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from cairnfs.blocks.records import Block, Recovery, StorageNumber, copy_key
from cairnfs.namenode.datanodes import DataNodes, LiveDataNode
from cairnfs.namenode.safe_mode import SafeMode
from cairnfs.namesystem.block_recovery import (
    Attempt,
    Participants,
    begin_attempt,
    begin_copy_attempt,
)
from cairnfs.namesystem.inodes import InodeId
from cairnfs.store.base import Reading, Scan, Store
from cairnfs.store.schema import NUMBER, Key, Table
from cairnfs.transaction.calls import Call, Operation
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

PAGE = 100  # blocks looked at in one step
ATTEMPT_LIMIT_S = 10.0  # for a primary to answer; twice as long each time, up to
ATTEMPT_LIMIT_MAX_S = 80.0
ORDERS_MAX = 50  # blocks that a DataNode is told to recover in one heartbeat

_OPERATIONS: dict[int, Operation[Attempt | None]] = {0: begin_attempt, 1: begin_copy_attempt}
"""What begins an attempt, by the kind of row: recoveries by block, copies by inode."""


@dataclass(slots=True)
class _Tries:
    """What was tried with one block, or with the copy for one file."""

    primary: str
    number: int  # of the last attempt, among all
    stamp: int  # of that one
    began_s: float
    limit_s: float
    by: list[str] = field(default_factory=list)  # all primaries so far, by uuid


class BlockRecoveries:
    """See the module's text.  `step` is for the duty, `take` for heartbeats."""

    def __init__(
        self, runner: Runner, store: Store, datanodes: DataNodes, safe_mode: SafeMode
    ) -> None:
        self._runner = runner
        self._store = store
        self._datanodes = datanodes
        self._safe_mode = safe_mode
        self._tries: dict[Key, _Tries] = {}
        self._attempts = 0
        self._orders: dict[str, list[Attempt]] = {}  # by the uuid of the primary
        self._after = dict.fromkeys(_OPERATIONS, b"")
        self._seen: set[Key] = set()  # in this round
        self._beginning: set[Key] = set()
        self._hurried: set[asyncio.Task[None]] = set()

    async def step(self) -> int:
        """Begin what attempts are due; more than 0 if there are more blocks to look at."""
        if self._safe_mode.is_on:
            return 0
        left = [await self._take_page(kind) for kind in _OPERATIONS]
        if any(left):
            return sum(left)
        for key in self._tries.keys() - self._seen:  # done
            del self._tries[key]
        self._seen.clear()
        return 0

    def hurry(self, inode_id: InodeId) -> None:
        """Begin the copy for a file at once: somebody waits for it.

        Should that fail, the next step does it.
        """
        key = copy_key(inode_id)
        if self._safe_mode.is_on or key in self._beginning or self._is_under_way(key):
            return
        self._seen.add(key)
        task = asyncio.get_running_loop().create_task(self._attempt(key))
        self._hurried.add(task)
        task.add_done_callback(self._end_hurry)

    def note_done(self, stamp: int) -> None:
        """An attempt has come to its end: the next copy for the same file is another one."""
        for key, tries in list(self._tries.items()):
            if tries.stamp == stamp:
                del self._tries[key]

    def _end_hurry(self, task: asyncio.Task[None]) -> None:
        self._hurried.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("a copy could not be begun, and is tried again: %s", error)

    async def _take_page(self, kind: int) -> int:
        """Look at a page of what waits; more than 0 if there is another one."""
        scan = Scan(Table.RECOVERIES, kind, self._after[kind], PAGE)
        attempts = self._attempts
        rows = (await self._store.read(Reading(scans=[scan]))).scans[scan]
        for row in rows:
            self._seen.add(row.key)
            tries = self._tries.get(row.key)
            recovery: Recovery = decode(Table.RECOVERIES, row.data)
            if (
                kind
                and tries is not None
                and tries.stamp != recovery.copy_stamp
                and tries.number <= attempts  # or the row is as it was before that attempt
            ):
                del self._tries[row.key]  # that was for an earlier copy
            if not self._is_under_way(row.key):
                await self._attempt(row.key)
        has_more = len(rows) == PAGE
        self._after[kind] = rows[-1].key[2] if has_more else b""
        return len(rows) if has_more else 0

    def take(self, node: LiveDataNode) -> list[Attempt]:
        """What a DataNode is to be told now."""
        orders = self._orders.pop(node.record.uuid, [])
        if orders[ORDERS_MAX:]:
            self._orders[node.record.uuid] = orders[ORDERS_MAX:]
        return orders[:ORDERS_MAX]

    def forget(self) -> None:
        """It is not for us to give commands any more."""
        self._tries.clear()
        self._orders.clear()

    def _is_under_way(self, key: Key) -> bool:
        tries = self._tries.get(key)
        if tries is None:
            return False
        node = self._datanodes.get(tries.primary)
        return (
            node is not None
            and self._is_fresh(node)
            and node.registered_s <= tries.began_s
            and self._datanodes.now_s() - tries.began_s < tries.limit_s
        )

    async def _attempt(self, key: Key) -> None:
        def choose(block: Block) -> Participants | None:
            return self._choose(key, block)

        if key in self._beginning:
            return
        self._beginning.add(key)
        try:
            (id,) = NUMBER.unpack(key[2])
            attempt = await run(self._runner, Call(_OPERATIONS[key[1]], (id, choose)))
        finally:
            self._beginning.discard(key)
        if attempt is None:
            return
        found = self._datanodes.storage(attempt.participants.primary)
        if found is None:  # it has gone meanwhile
            return
        uuid = found[0].record.uuid
        before = self._tries.get(key)
        limit_s = ATTEMPT_LIMIT_S if before is None else before.limit_s * 2
        self._attempts += 1
        self._tries[key] = _Tries(
            uuid,
            self._attempts,
            attempt.stamp,
            self._datanodes.now_s(),
            min(limit_s, ATTEMPT_LIMIT_MAX_S),
            [*(before.by if before is not None else ()), uuid],
        )
        self._orders.setdefault(uuid, []).append(attempt)
        log.info(
            "%s is %s by %s as generation %d",
            attempt.block,
            "recovered" if attempt.copy_id is None else f"copied to blk_{attempt.copy_id}",
            found[0].record.transfer_address,
            attempt.stamp,
        )

    def _choose(self, key: Key, block: Block) -> Participants | None:
        """Those that answer; first of all one that has not tried yet."""
        storages: dict[StorageNumber, LiveDataNode] = {}
        silent = 0
        for number in block.targets:
            found = self._datanodes.storage(number)
            if found is None:
                silent += 1  # it has come since, and another NameNode knows it
            elif self._is_fresh(found[0]):
                storages[number] = found[0]
            elif not self._datanodes.is_silent(found[0]):
                silent += 1
        if not storages:
            return None
        tries = self._tries.get(key)
        by = tries.by if tries is not None else []
        primary = min(
            storages,
            key=lambda each: (by.count(storages[each].record.uuid), -storages[each].heard_s),
        )
        return Participants(primary, tuple(storages), are_all=not silent)

    def _is_fresh(self, node: LiveDataNode) -> bool:
        return self._datanodes.is_alive(node) and not self._datanodes.is_stale(node)
