"""What is true of every namespace, whatever was done to it.

`read_namespace` reads a store from the root down, `check_invariants` compares what it keeps
twice: totals with a walk, leases with open files, block rows with block counts, replicas
with blocks and storages.  `check_no_leftovers` looks for rows that nobody can reach.  Each
holds the store's clock while it reads, so that all of it is of one moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from cairnfs.blocks.policies import choose_storage_types, policy_by_id
from cairnfs.blocks.records import (
    Block,
    BlockState,
    CheckQueue,
    DataNode,
    Replica,
    recovery_key,
)
from cairnfs.errors import StoreUnavailableException
from cairnfs.namesystem.inodes import Inode, Kind
from cairnfs.namesystem.layers import LayeredQueue
from cairnfs.namesystem.lease_records import Lease, lease_key
from cairnfs.namesystem.lookup import ROOT_KEY, key_of
from cairnfs.namesystem.marks import BELOW, is_marked, mark_key
from cairnfs.namesystem.orphans import Orphan
from cairnfs.namesystem.quotas import charged_space, reserved_space
from cairnfs.store.base import NO_TOTALS, Count, Found, Reading, Row, Scan, Store, Totals
from cairnfs.store.schema import INDEX, NUMBER, PAIR, Key, Table
from cairnfs.transaction.records import decode

PAGE = 1000
IDS_PAGE = 500


@dataclass(frozen=True, slots=True)
class Node:
    """An inode and everything that is kept for it."""

    path: str
    inode: Inode
    since: int
    totals: Totals
    blocks: tuple[tuple[int, Block], ...]
    lease: Lease | None


@dataclass(slots=True)
class Namespace:
    """All that can be found from the root, and below what was detached."""

    nodes: dict[str, Node] = field(default_factory=dict)
    orphans: dict[int, Orphan] = field(default_factory=dict)
    detached: dict[str, Node] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)  # orphans all of whose children were looked at


async def check_invariants(store: Store) -> None:
    """Raise AssertionError, and say what is wrong, if the store contradicts itself."""
    async with standstill(store) as reader:
        await _check_invariants(reader)


async def check_no_leftovers(store: Store, ids: Iterable[int]) -> None:
    """After everything detached is reclaimed: of these inodes, only reachable ones have rows."""
    async with standstill(store) as reader:
        await _check_no_leftovers(reader, ids)


async def check_no_past(store: Store) -> None:
    """After the last snapshot is deleted and everything reclaimed: nothing tells of any."""
    tables = ((Table.MOMENTS, 0), (Table.HELD, 0), (Table.REMOVALS, 0))
    for table, a in (*tables, *((Table.LAYERED, queue) for queue in LayeredQueue)):
        rows = [row.key async for row in _scan(store, table, a)]
        assert not rows, f"rows of snapshots are left in {table.name}: {rows}"
    for holder in await store.past_holders():
        past = await store.scan_past(holder, (0, (0, 0, b"")), 2**63 - 1, PAGE)
        assert not past, f"past rows are left: {[(row.key, row.since, row.until) for row in past]}"
    assert await store.count_past() == 0, "past rows are counted, but not found"


async def read_namespace(store: Store) -> Namespace:
    """Everything, by path; comparing two of them shows whether anything changed."""
    async with standstill(store) as reader:
        return await _read_namespace(reader)


class Reader(Protocol):
    """A store, or a transaction of one."""

    async def read(self, reading: Reading) -> Found: ...


@asynccontextmanager
async def standstill(store: Store) -> AsyncIterator[Reader]:
    """Read while nobody commits, not even a NameNode that was killed in the middle of it."""
    async with store.transaction() as transaction:
        try:
            await transaction.take_clock()
        except StoreUnavailableException:  # nobody can commit to a store that is read-only
            yield store
        else:
            yield transaction


async def _check_invariants(store: Reader) -> None:
    namespace = await _read_namespace(store)
    everything = [*namespace.nodes.values(), *namespace.detached.values()]
    _check_unique((node.inode.id for node in everything), "inode")
    blocks = {(block.id, block.generation_stamp) for node in everything for _, block in node.blocks}
    # Clones share them, stamps and all; by concat with its clone a file has one twice.
    _check_unique((id for id, _ in blocks), "block")
    for node in everything:
        if node.path in namespace.nodes:
            _check_lease(node)
        _check_node(node)
        _check_attributes(node)
        indexed = await store.read(Reading(ids=[(Table.INODES, node.inode.id)]))
        keys = [row.key for row in indexed.ids[Table.INODES, node.inode.id]]
        assert keys == [key_of(node.inode)], f"{node.path} is found by its id under {keys}"
    for id, orphan in namespace.orphans.items():
        if orphan.is_content:
            continue  # of a directory that is still there
        reachable = [node.path for node in namespace.nodes.values() if node.inode.id == id]
        assert not reachable, f"inode {id} is an orphan, but also {reachable}"
    _check_totals(namespace)
    await _check_marks(store, namespace)
    await _check_replicas(store, namespace)
    await _check_recoveries(store, namespace)
    await _check_detached_blocks(store, namespace)


async def _check_no_leftovers(store: Reader, ids: Iterable[int]) -> None:
    namespace = await _read_namespace(store)
    assert not namespace.orphans, f"orphans are left: {sorted(namespace.orphans)}"
    reachable: set[int] = {node.inode.id for node in namespace.nodes.values()}
    reachable |= {node.inode.children_id for node in namespace.nodes.values()}
    gone = [id for id in ids if id not in reachable]
    for start in range(0, len(gone), IDS_PAGE):
        page = gone[start : start + IDS_PAGE]
        found = await store.read(
            Reading(
                keys=[lease_key(id) for id in page],
                ids=[(Table.INODES, id) for id in page],
                scans=[Scan(table, id, b"", 1) for id in page for table in (0, 1)],
                totals=page,
            )
        )
        assert not found.rows, f"leases of nothing: {sorted(found.rows)}"
        rows = [row.key for rows in found.ids.values() for row in rows]
        assert not rows, f"unreachable inodes: {rows}"
        rows = [row.key for rows in found.scans.values() for row in rows]
        assert not rows, f"children or blocks of nothing: {rows}"
        totals = [id for id in page if found.totals.get(id, NO_TOTALS) != NO_TOTALS]
        assert not totals, f"totals of nothing: {totals}"


async def _read_namespace(store: Reader) -> Namespace:
    namespace = Namespace()
    found = await store.read(Reading(keys=[ROOT_KEY]))
    await _read_tree(store, namespace.nodes, "", found.rows[ROOT_KEY])
    async for row in _scan(store, Table.ORPHANS, 0):
        (id,) = NUMBER.unpack(row.key[2])
        namespace.orphans[id] = decode(Table.ORPHANS, row.data)
    async for row in _scan(store, Table.HELD, 0):
        _, id = PAIR.unpack(row.key[2])
        assert id not in namespace.orphans, f"orphan {id} is held, and to be reclaimed"
        namespace.orphans[id] = decode(Table.HELD, row.data)
        namespace.held.add(f"orphan {id}")
    for id, orphan in namespace.orphans.items():
        if orphan.kind is Kind.DIRECTORY and not orphan.is_attached:
            content = id if orphan.inode is None else orphan.inode.children_id
            async for row in _scan(store, Table.INODES, content):
                await _read_tree(store, namespace.detached, f"orphan {id}", row)
    return namespace


async def _read_tree(store: Reader, nodes: dict[str, Node], parent: str, top: Row) -> None:
    stack = [(parent, top)]
    while stack:
        above, row = stack.pop()
        inode: Inode = decode(Table.INODES, row.data)
        path = f"{above}/{inode.name.decode()}" if inode.name else "/"
        assert key_of(inode) == row.key, f"{path} is kept under {row.key}"
        nodes[path] = await _read_node(store, path, inode, row.since)
        if inode.is_directory:
            below = "" if path == "/" else path
            stack += [
                (below, child) async for child in _scan(store, Table.INODES, inode.children_id)
            ]


async def _read_node(store: Reader, path: str, inode: Inode, since: int) -> Node:
    key = lease_key(inode.id)
    found = await store.read(Reading(keys=[key], totals=[inode.id]))
    blocks = [
        (INDEX.unpack(row.key[2])[0], decode(Table.BLOCKS, row.data))
        async for row in _scan(store, Table.BLOCKS, inode.id)
    ]
    lease = found.rows.get(key)
    return Node(
        path,
        inode,
        since,
        found.totals.get(inode.id, NO_TOTALS),
        tuple(blocks),
        decode(Table.LEASES, lease.data) if lease else None,
    )


async def _scan(store: Reader, table: Table, a: int) -> AsyncIterator[Row]:
    after = b""
    while True:
        scan = Scan(table, a, after, PAGE)
        rows = (await store.read(Reading(scans=[scan]))).scans[scan]
        for row in rows:
            yield row
        if len(rows) < PAGE:
            return
        last: Key = rows[-1].key
        after = last[2]


def _check_unique(ids: Iterable[Any], what: str) -> None:
    twice = [id for id, count in Counter(ids).items() if count > 1]
    assert not twice, f"{what} ids are used twice: {twice}"


def _check_lease(node: Node) -> None:
    """Of what can be reached: what only a snapshot needs is as it was, but nobody writes it."""
    is_open = node.inode.under_construction
    assert is_open == (node.lease is not None), (
        f"{node.path} is{'' if is_open else ' not'} under construction,"
        f" but its lease is {node.lease}"
    )


def _check_attributes(node: Node) -> None:
    """What decided them was not later than the row that says so."""
    inode = node.inode.stamped(node.since)
    txids = [inode.renamed, inode.restored, *(xattr.set for xattr in inode.xattrs or ())]
    wrong = [txid for txid in txids if not 0 <= txid <= node.since]
    assert not wrong, f"{node.path} of {node.since} has TxIDs {wrong}: {inode}"
    assert node.path == "/" or not inode.declared, f"{node.path} declares {inode.declared}"


def _check_node(node: Node) -> None:
    inode, path = node.inode, node.path
    assert (inode.target is not None) == inode.is_symlink, f"{path} points to {inode.target}"
    if not inode.is_file:
        assert not node.blocks, f"{path} is no file, but has blocks {node.blocks}"
        assert not inode.under_construction, f"{path} is no file, but under construction"
        return
    indices = [index for index, _ in node.blocks]
    assert indices == list(range(inode.block_count)), (
        f"{path} has {inode.block_count} blocks, but their rows are {indices}"
    )
    _check_blocks(node)


def _check_blocks(node: Node) -> None:
    inode, path = node.inode, node.path
    states = [block.state for _, block in node.blocks]
    open_ones = [n for n, state in enumerate(states) if state is BlockState.UNDER_CONSTRUCTION]
    in_open = node.blocks[-1][1].length_bytes if inode.has_open_block else 0
    assert inode.open_bytes == in_open, (
        f"{path} has {inode.open_bytes} bytes in its open block, which knows of {in_open}"
    )
    expected = [inode.block_count - 1] if inode.has_open_block else []
    assert open_ones == expected, f"{path}: blocks {open_ones} are open, not {expected}"
    assert inode.under_construction or not inode.has_open_block, f"{path} is closed, a block is not"
    finished = states[: len(states) - inode.has_open_block]
    # The last one that its writer has finished may not have been reported yet.
    known = finished[:-1] if inode.under_construction else finished
    assert all(state is BlockState.COMPLETE for state in known), f"{path}: blocks are {states}"
    length = sum(block.length_bytes for _, block in node.blocks[: len(finished)])
    assert length == inode.length_bytes, (
        f"{path} is {inode.length_bytes} bytes long, its blocks {length}"
    )


async def _check_replicas(store: Reader, namespace: Namespace) -> None:
    """What is on storages belongs to blocks that there are, and the other way round."""
    numbers: dict[int, str] = {}  # of storages, and whose they are
    async for row in _scan(store, Table.DATANODES, 0):
        datanode: DataNode = decode(Table.DATANODES, row.data)
        for storage in datanode.storages:
            assert storage.number not in numbers, f"storage {storage.number} is used twice"
            numbers[storage.number] = datanode.uuid
    for number in numbers:
        ordered = {row.key[2] async for row in _scan(store, Table.INVALIDATIONS, number)}
        async for row in _scan(store, Table.REPLICAS, number):
            replica: Replica = decode(Table.REPLICAS, row.data)
            assert row.key[2] not in ordered, f"{replica} counts, but is to be deleted"
            assert await _is_known(store, replica.block_id), f"{replica} of no block"
    queues = [queue for queue in CheckQueue if queue is not CheckQueue.NEW]
    waiting = [row.key[2] for queue in queues async for row in _scan(store, Table.CHECKS, queue)]
    _check_unique(waiting, "waiting block")
    for node in namespace.nodes.values():
        for _, block in node.blocks:
            await _check_redundancy(store, node, block, numbers)


async def _check_recoveries(store: Reader, namespace: Namespace) -> None:
    """A block waits for its recovery if and only if a row of it says so; nobody else writes it."""
    waiting = {NUMBER.unpack(row.key[2])[0] async for row in _scan(store, Table.RECOVERIES, 0)}
    recovering = set()
    for node in namespace.nodes.values():
        for _, block in node.blocks:
            if not block.is_recovering:
                continue
            recovering.add(block.id)
            assert block.id in waiting, f"{block} of {node.path} is not in RECOVERIES"
            is_released = node.lease is not None and node.lease.is_being_recovered
            assert is_released, f"{block} of {node.path} is recovered, its lease is {node.lease}"
    for id in waiting - recovering:  # of a file that was deleted, or rolled back
        rows = (await store.read(Reading(ids=[(Table.BLOCKS, id)]))).ids[Table.BLOCKS, id]
        blocks: list[Block] = [decode(Table.BLOCKS, row.data) for row in rows]
        assert not blocks or any(block.is_recovering for block in blocks), (
            f"{id} is in RECOVERIES, but its rows are {blocks}"
        )


async def _is_known(store: Reader, block_id: int) -> bool:
    """Whether there is a block; or it is gone, and that is still to be looked at."""
    pairs = [(int(Table.BLOCKS), block_id), (int(Table.CHECKS), block_id)]
    return any((await store.read(Reading(ids=pairs))).ids.values())


async def _check_redundancy(
    store: Reader, node: Node, block: Block, numbers: dict[int, str]
) -> None:
    """A block with too few good replicas is to be looked at; one without any may be nowhere."""
    pairs = [(int(table), int(block.id)) for table in (Table.REPLICAS, Table.CHECKS, Table.BLOCKS)]
    found = await store.read(Reading(ids=pairs))
    replicas, checks, rows = (found.ids[pair] for pair in pairs)
    judge = max((decode(Table.BLOCKS, row.data) for row in rows), key=_knowledge)
    good = set()
    for row in replicas:
        assert row.key[1] in numbers, f"{block} is on storage {row.key[1]}, which is nobody's"
        replica: Replica = decode(Table.REPLICAS, row.data)
        if replica.is_good_for(judge):
            good.add(numbers[row.key[1]])
    if replicas and judge.state is BlockState.COMPLETE and not checks:
        assert len(good) >= node.inode.replication, (
            f"{block} of {node.path} has {len(good)} of {node.inode.replication} replicas,"
            " and nobody is to look at it"
        )


def _knowledge(block: Block) -> tuple[int, bool, int]:
    """Of several rows of a block, the one that knows its replicas best has the most."""
    return block.last_stamp, block.state is not BlockState.COMPLETE, block.replica_bytes


async def _check_detached_blocks(store: Reader, namespace: Namespace) -> None:
    """A block that was detached while it was written is finished if anything needs it."""
    for id, orphan in namespace.orphans.items():
        if orphan.kind is Kind.FILE and not orphan.is_content:
            blocks = [
                decode(Table.BLOCKS, row.data) async for row in _scan(store, Table.BLOCKS, id)
            ]
            await _check_open_blocks_are_known(store, f"orphan {id}", blocks)
    for node in namespace.detached.values():
        above, _, _ = node.path.rpartition("/")
        if above in namespace.held:
            blocks = [block for _, block in node.blocks]
            await _check_open_blocks_are_known(store, node.path, blocks)


async def _check_open_blocks_are_known(store: Reader, where: str, blocks: Iterable[Block]) -> None:
    """Of a detached file's blocks, one that is needed, and open, waits for a recovery."""
    for block in blocks:
        if block.state is not BlockState.UNDER_CONSTRUCTION or not block.targets:
            continue
        pairs = [(int(table), int(block.id)) for table in (Table.BLOCKS, Table.CHECKS)]
        found = await store.read(Reading(keys=[recovery_key(block.id)], ids=pairs))
        rows, checks = (found.ids[pair] for pair in pairs)
        is_needed = block.held_bytes > 0 or len(rows) > 1
        assert not is_needed or checks or found.rows, (
            f"{block} of {where} was detached while it was written, and nothing has it finished"
        )


async def _check_marks(store: Reader, namespace: Namespace) -> None:
    """Marks lead from the root to every inode that is marked."""
    for path, node in namespace.nodes.items():
        if path == "/" or not is_marked(node.inode):
            continue
        key = mark_key(node.inode.parent_id, node.inode.id)
        found = await store.read(Reading(keys=[key]))
        assert found.rows, f"{path} is marked, but its directory does not know"
        parent = namespace.nodes[path.rpartition("/")[0] or "/"]
        assert parent.inode.marks & BELOW, f"{path} is marked, but {parent.path} does not say so"


def _check_totals(namespace: Namespace) -> None:
    """The totals of every directory are what a walk counts."""
    expected: dict[str, list[int]] = {}
    for path in sorted(namespace.nodes, key=lambda path: path.count("/") - (path == "/")):
        inode = namespace.nodes[path].inode
        if inode.is_directory:
            expected[path] = [0] * len(Count)
        own = _own_counts(inode)
        above = path
        while above != "/":
            above = above.rpartition("/")[0] or "/"
            for count, number in own.items():
                expected[above][count] += number
        if path != "/":
            expected[path.rpartition("/")[0] or "/"][Count.CHILDREN] += 1
    shared = {path for path, node in namespace.nodes.items() if node.inode.origin is not None}
    for path, counts in expected.items():
        if any(each == path or each.startswith(path.rstrip("/") + "/") for each in shared):
            continue  # what it has from an origin has no rows of its own
        totals = namespace.nodes[path].totals.counts
        wrong = {
            count.name: f"{totals[count]}, counted {counts[count]}"
            for count in Count
            if totals[count] != counts[count]
        }
        assert not wrong, f"totals of {path}: {wrong}"


def _own_counts(inode: Inode) -> dict[Count, int]:
    kinds = {
        Kind.FILE: Count.FILES,
        Kind.DIRECTORY: Count.DIRECTORIES,
        Kind.SYMLINK: Count.SYMLINKS,
    }
    counts = {kinds[inode.kind]: 1, Count.INODES: 1, Count.SNAPSHOTS: inode.snapshots}
    if inode.is_file:
        space = charged_space(inode)
        counts[Count.LENGTH_BYTES] = inode.visible_bytes
        if not inode.charged_policy:
            counts[Count.RESERVED_BYTES] = reserved_space(inode)
        elif not inode.has_open_block:
            space += inode.reserved_bytes  # a copy of a file that was being written
        counts[Count.SPACE_BYTES] = space
        policy = policy_by_id(inode.charged_policy)
        assert policy is not None
        for type in choose_storage_types(policy, inode.replication, is_new_block=True):
            count = Count[f"{type.name}_BYTES"]
            counts[count] = counts.get(count, 0) + space // inode.replication
    return counts
