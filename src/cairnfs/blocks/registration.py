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
from cairnfs.errors import FileNotFoundException
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

DATANODES_PAGE = 1000


class ReportedStorage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A volume as its DataNode names it."""

    id: str
    type: StorageType


@operation()
def register_datanode(tx: Transaction, registered: DataNode) -> DataNode:
    """A DataNode says where it is.  What was known of it before stays: storages, admin state.

    Another one that was at the same address is there no more: as in HDFS, a node whose
    disks were replaced comes with a new identity.
    """
    known: DataNode | None = tx.get(datanode_key(registered.uuid))
    datanode = registered
    if known is not None:
        datanode = msgspec.structs.replace(
            registered,
            storages=known.storages,
            admin_state=known.admin_state,
            is_dead=known.is_dead,
        )
    if datanode != known:
        tx.put(datanode_key(registered.uuid), datanode)
    return datanode


@operation()
def add_storages(tx: Transaction, uuid: str, reported: Sequence[ReportedStorage]) -> DataNode:
    """Give numbers to the volumes of a DataNode that have none; a type may have changed."""
    datanode = _get(tx, uuid)
    storages = {storage.id: storage for storage in datanode.storages}
    for each in reported:
        known = storages.get(each.id)
        if known is None:
            number = StorageNumber(tx.next_number("storage"))
            storages[each.id] = Storage(number, each.id, each.type)
        elif known.type is not each.type:
            storages[each.id] = msgspec.structs.replace(known, type=each.type)
    return _put(tx, datanode, storages=tuple(storages.values()))


@operation()
def set_admin_state(tx: Transaction, uuid: str, state: AdminState) -> DataNode:
    """What an operator wants of a DataNode, or how far it has come."""
    return _put(tx, _get(tx, uuid), admin_state=state)


@operation()
def set_dead(tx: Transaction, uuid: str, is_dead: bool) -> DataNode:
    """A DataNode was given up, or has reported all that it has."""
    return _put(tx, _get(tx, uuid), is_dead=is_dead)


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
