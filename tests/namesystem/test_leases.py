"""Clients that write are known as long as they are heard of, and no longer."""

from __future__ import annotations

from cairnfs.namesystem.leases import HARD_LIMIT_MS, HOLDERS_PAGE
from cairnfs.store.base import Reading, Scan
from cairnfs.store.schema import Table
from cairnfs.testing.scratch import ScratchClient


def holders(fs: ScratchClient) -> int:
    scan = Scan(Table.HOLDERS, 0, b"", 10_000)
    found = fs.namenode.wait(fs.namenode.namenode.store.read(Reading(scans=[scan])))
    return len(found.scans[scan])


def test_clients_that_fell_silent_are_forgotten(fs: ScratchClient) -> None:
    clients = [fs.user(f"writer {number}") for number in range(HOLDERS_PAGE + 20)]
    for client in clients:
        client.renew_lease()
    fs.clock.advance(HARD_LIMIT_MS + 1)
    clients[3].renew_lease()
    assert holders(fs) == len(clients)
    duties = fs.namenode.namenode.duties
    while fs.namenode.wait(duties.forget_holders()):
        pass
    assert holders(fs) == 1
