"""A NameNode with DataNodes that exist only as what they say, and remember what they have.

`FakeDataNode.disk` is the truth; what the NameNode knows of it, it was told over RPC.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.namenode.rpc import RpcClient

from cairnfs.blocks.records import Block, CheckQueue, StorageNumber
from cairnfs.clock import ManualClock
from cairnfs.config import Control, FormatSettings, NameNodeSettings
from cairnfs.errors import HdfsError, IOException
from cairnfs.namenode.__main__ import SERVICES
from cairnfs.namenode.embedded import ClientProtocol, NameNodeThread
from cairnfs.namenode.moves import MOVES_PER_NODE_MAX
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import format_namespace, sqlite_url
from cairnfs.namenode.redundancy import REDUNDANCY
from cairnfs.namenode.server import RpcServer
from cairnfs.namesystem import file_blocks, files
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.redundancy import drop_replicas
from cairnfs.store.base import Reading, Row, Scan
from cairnfs.store.schema import Table
from cairnfs.testing.invariants import check_invariants
from cairnfs.wire.framing import encode_varint
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2, hdfs_server_pb2
from cairnfs.wire.protocols import DATANODE_PROTOCOL

SUPERUSER = "hdfs"
BLOCK_BYTES = 1 << 20
DEAD_AFTER_S = 630.0
RBW = 1  # a replica that is being written

Commands = list[pb.DatanodeCommandProto]
Change = pb.ReceivedDeletedBlockInfoProto


class OnDisk(msgspec.Struct, frozen=True):
    """A replica as it really is."""

    stamp: int
    length: int
    state: int = 0
    is_rotten: bool = False


class FakeDataNode:
    """What a DataNode says to one NameNode."""

    def __init__(
        self,
        cluster: FakeCluster,
        name: str,
        *,
        storages: int = 1,
        rack: str = "",
        port: int = 0,
        types: Sequence[str] = (),
    ) -> None:
        """With `types`, it has a storage of each of them."""
        self.cluster = cluster
        self.name = name
        self.rack = rack
        self.port = port or 9000 + len(cluster.nodes)
        numbers = range(len(types) or storages)
        self.disk: dict[str, dict[int, OnDisk]] = {f"DS-{name}-{n}": {} for n in numbers}
        self.types = dict(zip(self.disk, types or ["DISK"] * storages, strict=True))
        self.aside: dict[str, dict[int, OnDisk]] = {}  # volumes that broke, with what they have
        self.registration = pb.DatanodeRegistrationProto()
        self.capacity = 1 << 40  # of each storage
        self.is_up = True
        self.told: list[int] = []  # blocks that it was told to delete
        self.queued: Commands = []  # what it was told, and has not done yet
        self.refused: list[str] = []  # recoveries that a NameNode did not accept, and why
        self._client: RpcClient | None = None

    @property
    def client(self) -> RpcClient:
        if self._client is None:
            self._client = RpcClient(self.cluster.port, SUPERUSER, protocol=DATANODE_PROTOCOL)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def register(self) -> None:
        namenode = self.cluster.namenode
        registration = pb.DatanodeRegistrationProto(softwareVersion="3.5.0", rack=self.rack)
        id = registration.datanodeID
        id.ipAddr, id.hostName, id.datanodeUuid = "10.0.0.1", "a-host", self.name
        id.xferPort, id.infoPort, id.ipcPort = self.port, 1, self.port + 1000
        info = registration.storageInfo
        info.layoutVersion, info.cTime = 1, 0
        info.namespceID, info.clusterID = namenode.namespace_id, namenode.cluster_id
        keys = registration.keys
        keys.isBlockTokenEnabled, keys.keyUpdateInterval, keys.tokenLifeTime = False, 0, 0
        keys.currentKey.keyId = keys.currentKey.expiryDate = 0
        request = pb.RegisterDatanodeRequestProto(registration=registration)
        self.registration = self.client.call("registerDatanode", request).registration

    def come(self) -> None:
        """All that a DataNode does when it starts."""
        self.is_up = True
        self.register()
        self.beat()
        self.report()

    def die(self) -> None:
        self.is_up = False
        self.queued.clear()
        self.close()

    def cut_off(self) -> None:
        """It hears and is heard no more, but goes on, and knows what it was told."""
        self.is_up = False
        self.close()

    def come_back(self) -> None:
        """It was cut off: what it was told before, it has yet to do."""
        self.is_up = True
        response = self.heartbeat()
        if any(each.cmdType == pb.DatanodeCommandProto.RegisterCommand for each in response.cmds):
            self.register()
            response = self.heartbeat()
        self.queued += response.cmds
        self.report()

    def heartbeat(
        self, *, wants_lease: bool = False, failed: tuple[str, ...] = ()
    ) -> pb.HeartbeatResponseProto:
        request = pb.HeartbeatRequestProto(
            registration=self.registration, requestFullBlockReportLease=wants_lease
        )
        for id in self.disk:
            report = request.reports.add(storageUuid=id, failed=id in failed)
            report.storage.CopyFrom(self._storage(id))
            report.capacity = self.capacity
            report.dfsUsed = sum(each.length for each in self.disk[id].values())
            report.remaining = max(0, report.capacity - report.dfsUsed)
        response: pb.HeartbeatResponseProto = self.client.call("sendHeartbeat", request)
        for command in response.cmds:
            if command.blkCmd.action == pb.BlockCommandProto.INVALIDATE:
                for block in command.blkCmd.blocks:
                    self.told.append(block.blockId)
                    self.cluster.check_order(self, block)
        return response

    def beat(self) -> None:
        """A heartbeat, and what it is answered with is done at once."""
        self.queued += self.heartbeat().cmds
        self.work()

    def work(self) -> None:
        """Do what was told."""
        while self.queued:
            command = self.queued.pop(0)
            if command.cmdType == pb.DatanodeCommandProto.RegisterCommand:
                self.register()
                self.heartbeat()
                self.report()
            elif command.cmdType == pb.DatanodeCommandProto.BlockRecoveryCommand:
                for block in command.recoveryCmd.blocks:
                    self.recover(block)
            else:
                self.obey(command.blkCmd)

    def write(self, block: Block, length: int, stamp: int = 0) -> None:
        """A client has written so much of a block, and goes on."""
        storage = next(iter(self.disk))
        self.disk[storage][block.id] = OnDisk(stamp or block.generation_stamp, length, RBW)

    def recover(self, command: hdfs_server_pb2.RecoveringBlockProto) -> None:
        """Lead a recovery, as `datanode.recovery` does."""
        block = command.block.b
        nodes = [self.cluster.nodes[info.id.datanodeUuid] for info in command.block.locs]
        found = {
            node: replica
            for node in nodes
            if node.is_up
            and (replica := node.find(block.blockId)) is not None
            and replica.stamp >= block.generationStamp
            and replica.length
        }
        if not found and not all(node.is_up for node in nodes):
            return
        result = pb.CommitBlockSynchronizationRequestProto(
            block=block,
            newGenStamp=command.newGenStamp,
            newLength=0,
            closeFile=True,
            deleteBlock=not found,
        )
        if found:
            result.newLength = min(replica.length for replica in found.values())
        id = block.blockId
        if command.HasField("truncateBlock"):  # or to be copied, if it has another id
            id, result.newLength = command.truncateBlock.blockId, command.truncateBlock.numBytes
        for node in found:
            node.receive(id, command.newGenStamp, result.newLength)
            result.newTaragets.add().CopyFrom(node.registration.datanodeID)
            result.newTargetStorages.append(next(iter(node.disk)))
        self.commit(result)

    def commit(self, result: pb.CommitBlockSynchronizationRequestProto) -> None:
        """Say how a recovery has ended; a NameNode that does not like it will have it again."""
        try:
            self.client.call("commitBlockSynchronization", result)
        except HdfsError as error:
            self.refused.append(str(error))

    def obey(self, command: pb.BlockCommandProto) -> None:
        if command.action == pb.BlockCommandProto.INVALIDATE:
            for block in command.blocks:
                self.delete(block.blockId, block.genStamp)
            return
        if command.isMove:
            self._move(command)
            return
        for block, infos, ids in zip(
            command.blocks, command.targets, command.targetStorageUuids, strict=True
        ):
            source = self.find(block.blockId)
            if source is None or source.is_rotten:
                continue
            for info, id in zip(infos.datanodes, ids.storageUuids, strict=True):
                target = self.cluster.nodes[info.id.datanodeUuid]
                if target.is_up and id in target.disk and target.find(block.blockId) is None:
                    storage = list(target.disk).index(id)
                    target.receive(block.blockId, block.genStamp, block.numBytes, storage)

    def _move(self, command: pb.BlockCommandProto) -> None:
        """Have replicas go elsewhere, as `datanode.moving` does."""
        for block, infos, ids in zip(
            command.blocks, command.targets, command.targetStorageUuids, strict=True
        ):
            found, target = self.find(block.blockId), infos.datanodes[0].id.datanodeUuid
            taker = self.cluster.nodes[target]
            if found is None or found.is_rotten or not taker.is_up:
                continue
            self.cluster.moves += 1
            if taker is self:
                for blocks in self.disk.values():
                    blocks.pop(block.blockId, None)
            elif taker.find(block.blockId) is not None:
                continue
            storage_id = ids.storageUuids[0]
            taker.disk[storage_id][block.blockId] = OnDisk(block.genStamp, block.numBytes)
            taker.send_change(
                storage_id,
                Change.RECEIVED,
                block.blockId,
                block.genStamp,
                block.numBytes,
                self.name,
            )

    def is_about_to_delete(self, block_id: int) -> bool:
        return any(
            block.blockId == block_id
            for command in self.queued
            if command.blkCmd.action == pb.BlockCommandProto.INVALIDATE
            for block in command.blkCmd.blocks
        )

    # Volumes.

    def take_out(self, id: str) -> None:
        """A volume breaks: what is on it is not there for now."""
        self.aside[id] = self.disk.pop(id)

    def put_in(self, id: str) -> None:
        """A volume is mounted again, or a new one is; a DataNode has one replica of a block."""
        have = set[int]().union(*self.disk.values())
        found = self.aside.pop(id, {})
        self.disk[id] = {block_id: each for block_id, each in found.items() if block_id not in have}

    def storage_of(self, block_id: int) -> str:
        """The volume that has a replica."""
        return next(id for id, blocks in self.disk.items() if block_id in blocks)

    def find(self, block_id: int) -> OnDisk | None:
        for blocks in self.disk.values():
            if block_id in blocks:
                return blocks[block_id]
        return None

    # Reports.

    def receive(self, block_id: int, stamp: int, length: int, storage: int = 0) -> None:
        """A replica is finished, and reported."""
        id = list(self.disk)[storage]
        self.disk[id][block_id] = OnDisk(stamp, length)
        self.send_change(id, Change.RECEIVED, block_id, stamp, length)

    def delete(self, block_id: int, stamp: int = 1 << 62) -> None:
        """A replica is gone, unless it is of a younger generation, and that is reported."""
        for id, blocks in self.disk.items():
            found = blocks.get(block_id)
            if found is not None and found.stamp <= stamp:
                del blocks[block_id]
                self.send_change(id, Change.DELETED, block_id, found.stamp, found.length)

    def _storage(self, id: str) -> hdfs_pb2.DatanodeStorageProto:
        type = hdfs_pb2.StorageTypeProto.Value(self.types.get(id, "DISK"))
        return hdfs_pb2.DatanodeStorageProto(storageUuid=id, storageType=type)

    def send_change(
        self, storage_id: str, status: Any, id: int, stamp: int, length: int, hint: str = ""
    ) -> None:
        request = pb.BlockReceivedAndDeletedRequestProto(
            registration=self.registration, blockPoolId=self.cluster.namenode.block_pool_id
        )
        blocks = request.blocks.add(storageUuid=storage_id)
        blocks.storage.CopyFrom(self._storage(storage_id))
        block = hdfs_pb2.BlockProto(blockId=id, genStamp=stamp, numBytes=length)
        blocks.blocks.add(block=block, status=status, deleteHint=hint)
        self.client.call("blockReceivedAndDeleted", request)

    def make_report(self, *, with_lease: bool = True) -> pb.BlockReportRequestProto:
        """A full report of what there is now, to be sent now or later."""
        lease = 0
        if with_lease:
            response = self.heartbeat(wants_lease=True)
            lease = response.fullBlockReportLeaseId
            self.queued += response.cmds
        request = pb.BlockReportRequestProto(
            registration=self.registration, blockPoolId=self.cluster.namenode.block_pool_id
        )
        request.context.totalRpcs, request.context.curRpc, request.context.id = 1, 0, 1
        request.context.leaseId = lease
        for id, blocks in self.disk.items():
            report = request.reports.add(numberOfBlocks=len(blocks))
            report.storage.CopyFrom(self._storage(id))
            report.blocksBuffers.append(encode_blocks(blocks))
        return request

    def send_report(self, request: pb.BlockReportRequestProto) -> None:
        self.client.call("blockReport", request)

    def report(self) -> None:
        self.send_report(self.make_report())


def encode_blocks(blocks: dict[int, OnDisk]) -> bytes:
    return b"".join(
        encode_varint(number)
        for id, each in blocks.items()
        for number in (id << 1 if id >= 0 else (-id << 1) - 1, each.length, each.stamp, each.state)
    )


class FakeCluster:
    """A NameNode on a real port, its clocks, and DataNodes."""

    def __init__(self, thread: NameNodeThread, port: int, clock: ManualClock) -> None:
        self.thread = thread
        self.port = port
        self.clock = clock
        self.now_s = 0.0
        self.nodes: dict[str, FakeDataNode] = {}
        self.moves = 0  # of replicas, that were ordered and done
        self.client: ClientProtocol = thread.client()
        self.namenode.datanodes.random.seed(1)
        self.namenode.datanodes.now_s = lambda: self.now_s
        for node in self.namenode.datanodes:  # read from rows before there was this clock
            node.heard_s = 0.0

    @property
    def namenode(self) -> NameNode:
        return self.thread.namenode

    def add(
        self, *names: str, storages: int = 1, rack: str = "", types: Sequence[str] = ()
    ) -> list[FakeDataNode]:
        added = [
            FakeDataNode(self, name, storages=storages, rack=rack, types=types) for name in names
        ]
        for node in added:
            self.nodes[node.name] = node
            node.port = 9000 + len(self.nodes)
            node.come()
        return added

    def check_order(self, node: FakeDataNode, block: hdfs_pb2.BlockProto) -> None:
        """A block that there is, is never told to be deleted by the last that has it."""
        facts = self.block(block.blockId)
        if facts is None:
            return
        others = [
            other.name
            for other in self.nodes.values()
            if other is not node
            and self.has_good(other, facts)
            and not other.is_about_to_delete(block.blockId)
        ]
        assert others, f"{node.name} was told to delete the last replica of {facts}"

    @staticmethod
    def has_good(node: FakeDataNode, block: Block) -> bool:
        """Whether a DataNode really has the block, as it should be."""
        found = node.find(block.id)
        return (
            found is not None
            and (found.stamp, found.length) == (block.generation_stamp, block.replica_bytes)
            and not found.is_rotten
        )

    # Files.

    def write(self, path: str, replication: int = 3, length: int = 10) -> Block:
        """A file of one block, written to the DataNodes that were chosen, and closed."""
        self.client.create(path, replication=replication, block_size_bytes=BLOCK_BYTES)
        block = self.add_block(path)
        for storage in block.targets:
            self.finish(storage, block, length)
        assert self.complete(path, block, length)
        return msgspec.structs.replace(block, length_bytes=length)

    def add_block(self, path: str, previous: Block | None = None) -> Block:
        choose = self.namenode.datanodes.chooser("1.2.3.4", FsPath.parse(path))
        located = self.call(
            file_blocks.add_block,
            self.client.caller,
            FsPath.parse(path),
            self.client.client_name,
            previous,
            InodeId(0),
            choose,
        )
        block: Block = located.block
        return block

    def finish(self, storage: int, block: Block, length: int) -> None:
        """The DataNode with this storage has the replica, and says so."""
        found = self.namenode.datanodes.storage(storage)
        assert found is not None
        node = self.nodes[found[0].record.uuid]
        index = list(node.disk).index(found[1].id)
        node.receive(block.id, block.generation_stamp, length, index)

    def complete(self, path: str, block: Block, length: int) -> bool:
        last = msgspec.structs.replace(block, length_bytes=length)
        return bool(
            self.call(
                files.complete,
                self.client.caller,
                FsPath.parse(path),
                self.client.client_name,
                last,
                InodeId(0),
            )
        )

    # Time and background work.

    def call(self, operation: Any, *arguments: Any) -> Any:
        return self.thread.wait(self.namenode.call(operation, *arguments))

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        self.clock.advance(int(seconds * 1000))

    def step(self) -> None:
        """The redundancy duty, until it has nothing to do at once."""
        for _ in range(1000):
            if not self.thread.wait(self.namenode.care_for_blocks()):
                return
        raise AssertionError("the duty never rests")

    def beat(self) -> None:
        for node in list(self.nodes.values()):
            if node.is_up:
                node.beat()

    def live(self, rounds: int = 1, seconds: float = 3.0) -> None:
        """Let so many heartbeats pass, with everything that follows from them."""
        for _ in range(rounds):
            self.pass_time(seconds)
            self.beat()
            self.step()

    def bury(self, *nodes: FakeDataNode) -> None:
        """So much time passes that these are taken for dead."""
        for node in nodes:
            node.die()
        for _ in range(int(DEAD_AFTER_S / 25) + 1):
            self.pass_time(25)
            self.beat()
        self.step()

    # What there is.

    def block(self, block_id: int) -> Block | None:
        reading = Reading(ids=[(int(Table.BLOCKS), block_id)])
        rows = self.thread.wait(self.namenode.store.read(reading)).ids[Table.BLOCKS, block_id]
        return msgspec.msgpack.decode(rows[0].data, type=Block) if rows else None

    def rows(self, table: Table, a: int) -> list[Row]:
        scan = Scan(table, a, b"", 100_000)
        return list(self.thread.wait(self.namenode.store.read(Reading(scans=[scan]))).scans[scan])

    def checks(self) -> Counter[CheckQueue]:
        counts = {queue: len(self.rows(Table.CHECKS, queue)) for queue in CheckQueue}
        return Counter({queue: count for queue, count in counts.items() if count})

    def count(self, table: Table) -> int:
        """Rows of a table of storages."""
        return sum(len(self.rows(table, number)) for number in self.numbers())

    def numbers(self) -> list[StorageNumber]:
        return [
            storage.number for node in self.namenode.datanodes for storage in node.record.storages
        ]

    def types(self, block: Block) -> Counter[str]:
        """On what types of storage the replicas really are."""
        return Counter(
            node.types[id]
            for node in self.nodes.values()
            for id, blocks in node.disk.items()
            if block.id in blocks
        )

    def holders(self, block: Block) -> list[str]:
        """Who really has the block, as it should be."""
        return sorted(
            node.name for node in self.nodes.values() if node.is_up and self.has_good(node, block)
        )

    def located(self, path: str) -> list[str]:
        """Who has the block, as a reader is told."""
        located = self.client.get_block_locations(path).blocks[0]
        return sorted(each.uuid for each in self.namenode.datanodes.locate(located.storages))

    def check_calm(self) -> None:
        """There is nothing left to do."""
        assert not self.checks()
        assert not self.count(Table.INVALIDATIONS)
        if not len(self.namenode.moves):
            free = {self.namenode.moves.free(node.record.uuid) for node in self.namenode.datanodes}
            assert free <= {MOVES_PER_NODE_MAX}
        self.check_invariants()

    def check_invariants(self) -> None:
        self.thread.wait(check_invariants(self.namenode.store))


def others(cluster: FakeCluster, *names: str) -> list[FakeDataNode]:
    return [node for node in cluster.nodes.values() if node.name not in names]


def numbers_of(cluster: FakeCluster, node: FakeDataNode) -> list[int]:
    live = cluster.namenode.datanodes.get(node.name)
    assert live is not None
    return [storage.number for storage in live.record.storages]


def drop(cluster: FakeCluster, block: Block, node: FakeDataNode, keeping: FakeDataNode) -> None:
    known = cluster.block(block.id)
    dropped, kept = numbers_of(cluster, node), numbers_of(cluster, keeping)
    assert cluster.call(drop_replicas, known, dropped, kept)


def rot(node: FakeDataNode, block: Block) -> None:
    """A replica goes bad, and somebody notices."""
    node.disk[node.storage_of(block.id)][block.id] = OnDisk(
        block.generation_stamp, block.length_bytes, is_rotten=True
    )
    report_bad(node, block)


def report_bad(
    node: FakeDataNode, block: Block, stamp: int | None = None, storage_id: str = ""
) -> None:
    """Somebody has found that a replica is bad; Hadoop's client does not say on which volume."""
    request = pb.ReportBadBlocksRequestProto()
    located = request.blocks.add(offset=0, corrupt=False)
    located.b.poolId = node.cluster.namenode.block_pool_id
    located.b.blockId, located.b.numBytes = block.id, block.length_bytes
    located.b.generationStamp = block.generation_stamp if stamp is None else stamp
    token = located.blockToken
    token.identifier = token.password = b""
    token.kind = token.service = ""
    located.locs.add().id.CopyFrom(node.registration.datanodeID)
    if storage_id:
        located.storageIDs.append(storage_id)
    node.client.call("reportBadBlocks", request)


@contextmanager
def fake_cluster(
    url: str | Path, control: Control = Control.OPTIMISTIC, *, format: bool = True, **settings: Any
) -> Iterator[FakeCluster]:
    """A NameNode with a server on a store; it has the duty, but does it only when told."""
    clock = ManualClock()
    if isinstance(url, Path):
        url = sqlite_url(url / "namespace")
    if format:
        asyncio.run(format_namespace(url, FormatSettings(SUPERUSER), clock))
    chosen = NameNodeSettings(
        url, control, duties=False, datanode_dead_after_s=DEAD_AFTER_S, **settings
    )
    with ExitStack() as stack:
        thread = stack.enter_context(NameNodeThread(chosen, clock))
        server = RpcServer(thread.namenode, SERVICES)
        port = thread.wait(server.start("127.0.0.1", 0))
        stack.callback(lambda: thread.wait(server.stop()))
        if not thread.wait(thread.namenode.membership.try_acquire(REDUNDANCY, 10_000)):
            raise IOException("somebody else has the duty")
        cluster = FakeCluster(thread, port, clock)
        yield cluster
        for node in cluster.nodes.values():
            node.close()
