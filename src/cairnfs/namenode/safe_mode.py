"""Safe mode: nothing is changed until enough blocks are known to be readable.

When a NameNode starts, rows say where replicas are, but no DataNode has been heard of yet.
It serves reads at once, and changes from when a part (`threshold`) of all blocks has a
replica on a storage that has reported; until then nothing is copied or deleted either, so
that DataNodes that are only slow to come back are not taken for lost.

An administrator may enter and leave it at will; as in HDFS this is said to each NameNode.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable
from itertools import chain
from typing import Final

from cairnfs.blocks.records import Replica, ReplicaStatus, StorageNumber
from cairnfs.errors import HdfsError, RetriableException, SafeModeException
from cairnfs.namesystem.paths import FsPath
from cairnfs.store.base import Reading, Scan, Store
from cairnfs.store.schema import FIRST_BLOCK_ID, NUMBER, Table
from cairnfs.transaction.records import decode

log = logging.getLogger(__name__)

REPLICAS_PAGE: Final = 2_000  # rows counted while nobody else is served
LEASES_PAGE: Final = 500
COUNT_AGAIN_S = 1.0  # if the store does not answer

# What an operation does, in FSNamesystem's words; the path follows.
_WORDS: Final = {
    "abandon_block": "abandon block",
    "add_block": "add block to ",
    "allow_snapshot": "allow snapshot for ",
    "append": "append to file",
    "clone_snapshot": "clone a snapshot of ",
    "complete": "complete file ",
    "commit_output": "commit the output in ",
    "concat": "concat ",
    "create": "create file",
    "create_root_snapshot": "create the root snapshot",
    "create_snapshots": "create snapshot for ",
    "create_symlink": "create symlink ",
    "declare_xattr": "declare an XAttr",
    "delete": "delete ",
    "delete_snapshot": "delete snapshot for ",
    "disallow_snapshot": "disallow snapshot for ",
    "finalize_root_snapshot": "finalize the root snapshot",
    "fsync": "fsync file ",
    "mkdirs": "create directory ",
    "recover_lease": "recover the lease of ",
    "modify_acl_entries": "modify ACL entries on ",
    "remove_acl": "remove ACL on ",
    "remove_acl_entries": "remove ACL entries on ",
    "remove_default_acl": "remove default ACL entries on ",
    "remove_xattr": "remove XAttr entry on ",
    "rename": "rename ",
    "rename2": "rename ",
    "rename_snapshot": "rename snapshot for ",
    "remove_schedule": "remove the schedule of ",
    "renew_lease": "renew lease",
    "rollback_root_snapshot": "roll back to the root snapshot",
    "rollback_snapshot": "roll back ",
    "rollback_snapshots": "roll back ",
    "satisfy_storage_policy": "satisfy storage policy for ",
    "set_acl": "set ACL on ",
    "set_owner": "set owner for ",
    "set_permission": "set permission for ",
    "set_quota": "set quota on ",
    "set_replication": "set replication for ",
    "set_schedule": "set a schedule for ",
    "set_storage_policy": "set storage policy for ",
    "set_times": "set times ",
    "set_xattr": "set XAttr on ",
    "truncate": "truncate for ",
    "unset_storage_policy": "unset storage policy for ",
    "unset_xattr": "unset XAttr on ",
}


class BlockSet:
    """Which blocks were seen, a bit for each: their ids follow one another."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self._count = 0

    def add(self, block_id: int) -> None:
        index, bit = divmod(block_id - FIRST_BLOCK_ID, 8)
        if index >= len(self._bits):
            self._bits.extend(bytes(index + 1 - len(self._bits)))
        if not self._bits[index] & 1 << bit:
            self._bits[index] |= 1 << bit
            self._count += 1

    def __len__(self) -> int:
        return self._count


class SafeMode:
    """Whether this NameNode may change anything, and if not, why."""

    def __init__(self, store: Store, threshold: float) -> None:
        self._store = store
        self._threshold = threshold
        self._needed = 0
        self._total = 0
        self._is_starting = False
        self._is_manual = False
        self._safe_blocks = BlockSet()
        self._to_count: set[StorageNumber] = set()
        self._counting: asyncio.Task[None] | None = None

    @property
    def is_on(self) -> bool:
        return self._is_starting or self._is_manual

    async def begin(self) -> None:
        """The NameNode starts: find out how many blocks there are."""
        blocks = await self._store.count_ids(Table.BLOCKS)
        # The last block of an open file may have no replica yet.
        self._total = blocks - await self._count_open_files()
        self._needed = math.floor(self._total * self._threshold)
        self._is_starting = self._needed > 0
        if self._is_starting:
            log.info("safe mode is on until %d of %d blocks are there", self._needed, self._total)

    def note_storages(self, storages: Iterable[StorageNumber]) -> None:
        """These storages have reported: what rows say of them holds."""
        if not self._is_starting:
            return
        self._to_count.update(storages)
        if self._counting is None:
            self._counting = asyncio.get_running_loop().create_task(self._count())

    async def stop(self) -> None:
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.gather(self._counting, return_exceptions=True)

    def enter(self) -> None:
        """An administrator wants it on."""
        self._is_manual = True
        log.info("safe mode is on, as an administrator wants it")

    def leave(self) -> None:
        """An administrator wants it off, whatever blocks are there."""
        if self.is_on:
            log.info("safe mode is off, as an administrator wants it")
        self._is_manual = False
        self._end_start()

    def check_off(self, operation: str, arguments: Iterable[object]) -> None:
        """Raise SafeModeException if nothing may be changed now.

        Where there are others, one that is just starting says that the call may be repeated,
        as HDFS's NameNodes do: their clients try again, here or there.
        """
        if self.is_on:
            what = _WORDS.get(operation, f"{operation} ")
            paths = chain.from_iterable(
                each if isinstance(each, tuple) else (each,) for each in arguments
            )
            where = next((str(each) for each in paths if isinstance(each, FsPath)), "")
            text = f"Cannot {what}{where}. Name node is in safe mode.\n{self.describe()}"
            if self._store.local is None and not self._is_manual:
                raise RetriableException(f"{SafeModeException.java_class}: {text}")
            raise SafeModeException(text)

    def describe(self) -> str:
        """Why it is on, and what ends it: Hadoop's turn-off tip."""
        if self._is_manual:
            return (
                'It was turned on manually. Use "hdfs dfsadmin -safemode leave" to turn safe'
                " mode off."
            )
        if not self._is_starting:
            return "Safe mode is OFF."
        return (
            f"The reported blocks {len(self._safe_blocks)} needs additional"
            f" {max(0, self._needed - len(self._safe_blocks))} blocks to reach the threshold"
            f" {self._threshold:.4f} of total blocks {self._total}. Safe mode will be turned off"
            " automatically once the thresholds have been reached."
        )

    async def _count_open_files(self) -> int:
        """How many files that are being written have a block."""
        count, after = 0, b""
        while True:
            leases = Scan(Table.LEASES, 0, after, LEASES_PAGE)
            rows = (await self._store.read(Reading(scans=[leases]))).scans[leases]
            files = [NUMBER.unpack(row.key[2])[0] for row in rows]
            first_blocks = [Scan(Table.BLOCKS, id, b"", 1) for id in files]
            found = await self._store.read(Reading(scans=first_blocks))
            count += sum(bool(found.scans[scan]) for scan in first_blocks)
            if len(rows) < LEASES_PAGE:
                return count
            after = rows[-1].key[2]

    async def _count(self) -> None:
        try:
            while self._to_count and self._is_starting:
                storage = min(self._to_count)
                is_counted = False
                try:
                    await self._count_storage(storage)
                    is_counted = True
                except HdfsError as error:
                    log.warning("blocks could not be counted: %s; it is tried again", error)
                if is_counted:
                    self._to_count.discard(storage)
                else:
                    await asyncio.sleep(COUNT_AGAIN_S)
        except Exception:
            log.exception("blocks could not be counted; `dfsadmin -safemode leave` ends it")
        finally:
            self._counting = None

    async def _count_storage(self, storage: StorageNumber) -> None:
        after = b""
        while self._is_starting:
            scan = Scan(Table.REPLICAS, storage, after, REPLICAS_PAGE)
            rows = (await self._store.read(Reading(scans=[scan]))).scans[scan]
            for row in rows:
                replica: Replica = decode(Table.REPLICAS, row.data)
                if replica.status is ReplicaStatus.GOOD:
                    self._safe_blocks.add(replica.block_id)
            if len(self._safe_blocks) >= self._needed:
                log.info("safe mode is off: %d blocks are there", len(self._safe_blocks))
                self._end_start()
            if len(rows) < REPLICAS_PAGE:
                return
            after = rows[-1].key[2]
            await asyncio.sleep(0)

    def _end_start(self) -> None:
        self._is_starting = False
        self._safe_blocks = BlockSet()
        self._to_count.clear()
