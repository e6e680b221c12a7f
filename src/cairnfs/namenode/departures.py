"""DataNodes and storages that go: those that died, those that broke, those that are to leave.

Their blocks are put into CHECKS, and the redundancy duty does the rest.  Whether a DataNode
is alive is what the NameNode with that duty hears; it is in no row.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from cairnfs.blocks.checks import put_checks
from cairnfs.blocks.invalidations import forget_deletions, void_orders
from cairnfs.blocks.records import AdminState, CheckQueue, DataNode, Storage, StorageNumber
from cairnfs.blocks.registration import remove_storage, set_admin_state
from cairnfs.errors import IOException
from cairnfs.namenode.datanodes import DataNodes, LiveDataNode
from cairnfs.store.base import Reading, Scan, Store
from cairnfs.store.schema import NUMBER, Table
from cairnfs.transaction.calls import Call
from cairnfs.transaction.runner import Runner, run

log = logging.getLogger(__name__)

REPLICAS_PAGE = 500  # rows looked at at once
ORDERS_KEPT_S = 60.0  # so long, we assume, a DataNode takes for what it was told (`_void_orders`)

_LEAVING = (AdminState.DECOMMISSION_INPROGRESS, AdminState.DECOMMISSIONED)


class Departures:
    """Part of the redundancy duty."""

    def __init__(
        self, runner: Runner, store: Store, datanodes: DataNodes, excluded_hosts_file: str = ""
    ) -> None:
        self._runner = runner
        self._store = store
        self._datanodes = datanodes
        self._excluded_hosts_file = excluded_hosts_file
        self._excluded: frozenset[str] = frozenset()
        self._looked_twice: set[str] = set()  # DataNodes whose blocks were, before they leave
        self._deletions_seen: tuple[int, bytes] = (0, b"")

    def read_excluded_hosts(self) -> None:
        """Read the list of DataNodes that are to leave; it is acted on in the next steps."""
        if not self._excluded_hosts_file:
            return
        try:
            lines = Path(self._excluded_hosts_file).read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise IOException(
                f"The list of excluded hosts, {self._excluded_hosts_file}, cannot be read:"
                f" {error}; it is as it was"
            ) from None
        entries = (line.partition("#")[0].strip() for line in lines)
        self._excluded = frozenset(entry for entry in entries if entry)

    async def step(self) -> None:
        """See who has gone, and who may go."""
        await self._give_up_the_dead()
        await self._give_up_the_broken()
        await self._void_orders()
        await self._decommission()
        await self._forget_deletions()

    # Those that died or broke.

    async def _give_up_the_dead(self) -> None:
        for node in self._datanodes.find_dead():
            log.warning(
                "DataNode %s was not heard of for %.0f s: its replicas are made anew elsewhere",
                node.record.transfer_address,
                self._datanodes.dead_after_s,
            )
            node.registered_at = None  # should it come back, it has to report everything
            node.transfers.clear()
            await self._check_all_of(node.record.storages)
            node.is_given_up = self._datanodes.is_silent(node)

    async def _give_up_the_broken(self) -> None:
        """Volumes that failed, or were taken out of a DataNode that lives."""
        for node in list(self._datanodes):
            if not self._datanodes.is_alive(node):
                continue
            for storage in node.record.storages:
                if not node.has_failed(storage):
                    await self._take_back(node, storage)
                elif storage.number not in node.given_up:
                    log.warning(
                        "DataNode %s has no storage %s any more: what was on it is made anew",
                        node.record.transfer_address,
                        storage.id,
                    )
                    await self._check_all_of([storage])
                    node.given_up[storage.number] = self._datanodes.now_s()
                elif storage.id not in node.usage:
                    await self._forget_storage(node, storage.number)

    async def _take_back(self, node: LiveDataNode, storage: Storage) -> None:
        """A volume that is there again may have what was found to be bad before."""
        if storage.number in node.given_up:
            await self._check_all_of([storage])
            node.given_up.pop(storage.number, None)

    async def _void_orders(self) -> None:
        """Withdraw what was to be deleted on volumes that DataNodes have lost, and live.

        Else a block would wait for that as long as they are away, and a storage that never comes
        back could not be forgotten.  Orders for the dead stay, whatever the time: one that was
        only cut off may come back with the order in its queue, and report the replica before
        it gets there.  Were that to count, the last other one could be deleted for it.

        An HDFS DataNode that is told to delete a block deletes it from whichever volume has it
        when its turn comes, by its id and stamp.  (Ours where it is when it is told.)  So an order
        is kept for ORDERS_KEPT_S after the volume was lost, which keeps new copies away from that
        DataNode.  That it is done by then is an assumption: nobody says so.  If a DataNode's queue
        is longer, or it is held up for so long without being taken for dead, it deletes a copy
        that was made there since, or what it has on the volume that is mounted again; and that may
        have been counted on when another one was told to delete its own, the last.
        """
        began_s = self._datanodes.now_s() - ORDERS_KEPT_S
        scans = [
            Scan(Table.INVALIDATIONS, number, b"", 1)
            for node in self._datanodes
            for number, since_s in node.given_up.items()
            if since_s <= began_s and self._is_lost(number)
        ]
        if not scans:
            return
        found = (await self._store.read(Reading(scans=scans))).scans
        for scan in scans:
            number, after = StorageNumber(scan.a), b""
            while found[scan] and self._is_lost(number):
                after = await run(self._runner, Call(void_orders, (number, after)))
                if not after:
                    break

    def _is_lost(self, number: StorageNumber) -> bool:
        """Whether a volume is given up, and its DataNode lives."""
        found = self._datanodes.storage(number)
        return (
            found is not None
            and self._datanodes.is_alive(found[0])
            and self._datanodes.is_given_up(number)
        )

    async def _forget_storage(self, node: LiveDataNode, number: StorageNumber) -> None:
        scan = Scan(Table.REPLICAS, number, b"", 1)
        if (await self._store.read(Reading(scans=[scan]))).scans[scan]:
            return  # what was on it has not been made anew
        record = await run(self._runner, Call(remove_storage, (node.record.uuid, number)))
        self._datanodes.put(record)

    async def _check_all_of(self, storages: Iterable[Storage]) -> None:
        """Have all blocks on some storages looked at."""
        for storage in storages:
            after = b""
            while True:
                after = await run(self._runner, Call(put_checks, (storage.number, after)))
                if not after:
                    break

    async def _forget_deletions(self) -> None:
        """Look at a page of one storage, then of the next."""
        number, after = self._deletions_seen
        numbers = sorted(
            storage.number for node in self._datanodes for storage in node.record.storages
        )
        if not after:
            number = next((each for each in numbers if each > number), numbers[0] if numbers else 0)
        if number:
            call = Call(forget_deletions, (StorageNumber(number), after))
            self._deletions_seen = (number, await run(self._runner, call))

    # Those that are to leave.

    async def _decommission(self) -> None:
        """Let DataNodes leave that are excluded, and stay that are not any more."""
        for node in list(self._datanodes):
            state = node.record.admin_state
            if not self._is_excluded(node.record):
                if state in _LEAVING:
                    await self._set_admin_state(node, AdminState.NORMAL)
                    await self._check_all_of(node.record.storages)
            elif state is AdminState.NORMAL:
                self._looked_twice.discard(node.record.uuid)
                await self._set_admin_state(node, AdminState.DECOMMISSION_INPROGRESS)
                await self._check_all_of(node.record.storages)
            elif state is AdminState.DECOMMISSION_INPROGRESS and await self._is_drained(node):
                if node.record.uuid not in self._looked_twice:
                    # Another NameNode may have had blocks written there meanwhile.
                    self._looked_twice.add(node.record.uuid)
                    await self._check_all_of(node.record.storages)
                else:
                    await self._set_admin_state(node, AdminState.DECOMMISSIONED)

    def _is_excluded(self, record: DataNode) -> bool:
        if not self._excluded:
            return False
        names = (record.host_name, record.ip_address)
        ports = (f"{name}:{record.transfer_port}" for name in names)
        return not self._excluded.isdisjoint((*names, *ports))

    async def _set_admin_state(self, node: LiveDataNode, state: AdminState) -> None:
        record: DataNode = await run(self._runner, Call(set_admin_state, (node.record.uuid, state)))
        self._datanodes.put(record)
        log.info("DataNode %s is %s", record.transfer_address, state.name)

    async def _is_drained(self, node: LiveDataNode) -> bool:
        """Whether no block of a DataNode that leaves is still to be looked at.

        Of one that is dead nobody knows what it had: then no block at all may be.
        """
        if not self._datanodes.is_alive(node):
            scans = [Scan(Table.CHECKS, queue, b"", 1) for queue in CheckQueue]
            found = await self._store.read(Reading(scans=scans))
            return not any(found.scans.values())
        for storage in node.record.storages:
            after = b""
            while True:
                scan = Scan(Table.REPLICAS, storage.number, after, REPLICAS_PAGE)
                rows = (await self._store.read(Reading(scans=[scan]))).scans[scan]
                ids = [(int(Table.CHECKS), NUMBER.unpack(row.key[2])[0]) for row in rows]
                if any((await self._store.read(Reading(ids=ids))).ids.values()):
                    return False
                if len(rows) < REPLICAS_PAGE:
                    break
                after = rows[-1].key[2]
        return True
