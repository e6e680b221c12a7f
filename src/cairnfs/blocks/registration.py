"""DataNodes as rows: registering, new volumes, what an operator wants of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cairnfs.blocks.records import (
    AdminState,
    DataNode,
    Storage,
    StorageNumber,
    StorageType,
    datanode_key,
)
from cairnfs.errors import FileNotFoundException, IOException
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

DATANODES_PAGE = 1000
STORAGES_MAX = 256  # of one DataNode


class ReportedStorage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A volume as its DataNode names it; an old message does not say of which type."""

    id: str
    type: StorageType | None = None


@operation()
def register_datanode(tx: Transaction, registered: DataNode) -> DataNode:
    """A DataNode says where it is.  What was known of it before stays: storages, admin state."""
    known: DataNode | None = tx.get(datanode_key(registered.uuid))
    if known is None:
        tx.put(datanode_key(registered.uuid), registered)
        return registered
    datanode = msgspec.structs.replace(
        registered, storages=known.storages, admin_state=known.admin_state
    )
    if datanode != known:
        tx.put(datanode_key(registered.uuid), datanode)
    return datanode


@operation()
def add_storages(tx: Transaction, uuid: str, reported: Sequence[ReportedStorage]) -> DataNode:
    """Give numbers to the volumes of a DataNode that have none; a type may have changed.

    A volume is that of one DataNode: one that was moved to another gets another number, and
    what is on it is found there by a full report.
    """
    datanode = _get(tx, uuid)
    storages = {storage.id: storage for storage in datanode.storages}
    for each in reported:
        known = storages.get(each.id)
        if known is None:
            number = StorageNumber(tx.next_number("storage"))
            storages[each.id] = Storage(number, each.id, each.type or StorageType.DISK)
        elif each.type is not None and known.type is not each.type:
            storages[each.id] = msgspec.structs.replace(known, type=each.type)
    if len(storages) > STORAGES_MAX:
        raise IOException(f"DataNode {uuid} has more than {STORAGES_MAX} storages")
    return _put(tx, datanode, storages=tuple(storages.values()))


@operation()
def remove_storage(tx: Transaction, uuid: str, number: StorageNumber) -> DataNode:
    """Forget a volume that its DataNode has no more, if nothing is known to be on it."""
    datanode = _get(tx, uuid)
    for table in (Table.REPLICAS, Table.INVALIDATIONS, Table.DELETIONS):
        if tx.scan(table, number, b"", 1):
            return datanode
        tx.expect_empty(table, number)
    left = tuple(storage for storage in datanode.storages if storage.number != number)
    return _put(tx, datanode, storages=left)


@operation()
def set_admin_state(tx: Transaction, uuid: str, state: AdminState) -> DataNode:
    """What an operator wants of a DataNode, or how far it has come."""
    return _put(tx, _get(tx, uuid), admin_state=state)


@operation(mutates=False)
def list_datanodes(tx: Transaction, after: bytes) -> list[DataNode]:
    """A page of all DataNodes that ever registered, in the order of their uuids."""
    return [datanode for _, datanode in tx.scan(Table.DATANODES, 0, after, DATANODES_PAGE)]


def _get(tx: Transaction, uuid: str) -> DataNode:
    datanode: DataNode | None = tx.get(datanode_key(uuid))
    if datanode is None:
        raise FileNotFoundException(f"DataNode {uuid} is not registered")
    return datanode


def _put(tx: Transaction, datanode: DataNode, **changes: object) -> DataNode:
    changed = msgspec.structs.replace(datanode, **changes)
    if changed != datanode:
        tx.put(datanode_key(datanode.uuid), changed)
    return changed
