"""DataNodes over RPC: who may speak, what is believed, what is refused, in which order."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.namenode.datanodes import FakeCluster, FakeDataNode, OnDisk, encode_blocks

from cairnfs.blocks.records import CheckQueue, DataNode, ReplicaStatus, StorageType
from cairnfs.blocks.reports import replicas_of
from cairnfs.errors import (
    DisallowedDatanodeException,
    IOException,
    UnregisteredNodeException,
)
from cairnfs.store.schema import Table
from cairnfs.transaction.calls import operation
from cairnfs.transaction.records import decode
from cairnfs.transaction.transaction import Transaction
from cairnfs.wire.framing import encode_varint
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2, hdfs_server_pb2

Change = pb.ReceivedDeletedBlockInfoProto
RBW, RWR = 1, 2
FUTURE = 1 << 40


@operation(mutates=False)
def list_replicas(tx: Transaction, block_id: int) -> list[Any]:
    return [replica for _, replica in replicas_of(tx, block_id)]  # type: ignore[arg-type]


@pytest.fixture
def node(sqlite_cluster: FakeCluster) -> FakeDataNode:
    """For what has nothing to do with the store."""
    return sqlite_cluster.add("a")[0]


def replicas(cluster: FakeCluster, block_id: int) -> list[Any]:
    found: list[Any] = cluster.call(list_replicas, block_id)
    return found


class TestRegistration:
    def test_the_namespace_is_told(self, node: FakeDataNode) -> None:
        request = hdfs_server_pb2.VersionRequestProto()
        info = node.client.call("versionRequest", request).info
        assert info.blockPoolID == node.cluster.namenode.block_pool_id
        assert info.capabilities == 1  # STORAGE_BLOCK_REPORT_BUFFERS, of Hadoop's NamespaceInfo
        assert node.registration.datanodeID.ipAddr == "127.0.0.1"

    def test_the_data_of_another_cluster(self, node: FakeDataNode) -> None:
        for name, value in (("clusterID", "CID-other"), ("namespceID", 1)):
            registration = pb.DatanodeRegistrationProto()
            registration.CopyFrom(node.registration)
            setattr(registration.storageInfo, name, value)
            request = pb.RegisterDatanodeRequestProto(registration=registration)
            with pytest.raises(UnregisteredNodeException, match="belongs to cluster"):
                node.client.call("registerDatanode", request)
            report = node.make_report()
            report.registration.CopyFrom(registration)
            with pytest.raises(UnregisteredNodeException):
                node.send_report(report)
        report = node.make_report()
        report.blockPoolId = "BP-of-another"
        with pytest.raises(IOException, match="BP-of-another is not here"):
            node.send_report(report)

    @pytest.mark.parametrize(
        ("field", "value"),
        [("datanodeUuid", ""), ("datanodeUuid", "x" * 300), ("xferPort", 70000), ("hostName", "")],
    )
    def test_what_cannot_be(self, node: FakeDataNode, field: str, value: object) -> None:
        registration = pb.DatanodeRegistrationProto()
        registration.CopyFrom(node.registration)
        setattr(registration.datanodeID, field, value)
        request = pb.RegisterDatanodeRequestProto(registration=registration)
        with pytest.raises(DisallowedDatanodeException):
            node.client.call("registerDatanode", request)

    def test_of_two_with_one_identity_the_last_one_stays(self, sqlite_cluster: FakeCluster) -> None:
        cluster = sqlite_cluster
        [first] = cluster.add("a")
        second = FakeDataNode(cluster, "a", port=9999)
        second.come()
        with pytest.raises(UnregisteredNodeException, match="cannot have the same identity"):
            first.heartbeat()
        with pytest.raises(UnregisteredNodeException):
            first.report()
        assert not second.heartbeat().cmds
        assert [place.transfer_port for place in records(cluster)] == [9999]
        second.close()

    def test_and_also_at_the_same_port_of_another_machine(
        self, sqlite_cluster: FakeCluster
    ) -> None:
        cluster = sqlite_cluster
        [first] = cluster.add("a")
        live = cluster.namenode.datanodes.get("a")
        assert live is not None
        live.registered_at = ("10.9.8.7", first.port, first.port + 1000)
        with pytest.raises(UnregisteredNodeException, match="cannot have the same identity"):
            first.heartbeat()

    def test_one_that_comes_back_at_another_port(self, sqlite_cluster: FakeCluster) -> None:
        cluster = sqlite_cluster
        [node] = cluster.add("a")
        block = cluster.write("/f", replication=1)
        node.port = 9777
        node.come()
        assert cluster.located("/f") == ["a"]
        assert [place.transfer_port for place in records(cluster)] == [9777]
        assert cluster.namenode.datanodes.get("a").record.transfer_port == 9777  # type: ignore[union-attr]
        cluster.live(2)
        assert cluster.holders(block) == ["a"]

    def test_who_is_not_known_is_told_to_register(self, sqlite_cluster: FakeCluster) -> None:
        cluster = sqlite_cluster
        [node] = cluster.add("a")
        stranger = FakeDataNode(cluster, "b")
        stranger.registration.CopyFrom(node.registration)
        stranger.registration.datanodeID.datanodeUuid = "b"
        [command] = stranger.heartbeat(wants_lease=True).cmds
        assert command.cmdType == pb.DatanodeCommandProto.RegisterCommand
        # Not the error for which DataNodes give up.
        with pytest.raises(IOException, match="has not registered") as caught:
            stranger.send_change("DS-b-0", Change.RECEIVED, 1, 1, 1)
        assert type(caught.value) is IOException
        stranger.close()


def records(cluster: FakeCluster) -> list[DataNode]:
    return [decode(Table.DATANODES, row.data) for row in cluster.rows(Table.DATANODES, 0)]


class TestStorages:
    def test_a_message_without_a_type_leaves_it(self, sqlite_cluster: FakeCluster) -> None:
        cluster = sqlite_cluster
        [node] = cluster.add("a")
        request = pb.HeartbeatRequestProto(registration=node.registration)
        report = request.reports.add(storageUuid="DS-a-0")
        report.storage.storageUuid = "DS-a-0"
        report.storage.storageType = hdfs_pb2.SSD
        node.client.call("sendHeartbeat", request)
        changes = pb.BlockReceivedAndDeletedRequestProto(
            registration=node.registration, blockPoolId=cluster.namenode.block_pool_id
        )
        changes.blocks.add(storageUuid="DS-a-0")
        node.client.call("blockReceivedAndDeleted", changes)
        live = cluster.namenode.datanodes.get("a")
        assert live is not None
        assert [storage.type for storage in live.record.storages] == [StorageType.SSD]

    @pytest.mark.parametrize("id", ["", "x" * 300])
    def test_a_storage_that_cannot_be(self, node: FakeDataNode, id: str) -> None:
        with pytest.raises(DisallowedDatanodeException):
            node.send_change(id, Change.RECEIVED, 1, 1, 1)

    def test_storages_without_end(self, node: FakeDataNode) -> None:
        node.disk |= {f"more-{n}": {} for n in range(300)}
        with pytest.raises(IOException, match="more than 256 storages"):
            node.heartbeat()


class TestFullReports:
    def test_one_that_was_made_before_a_newer_replica(self, cluster: FakeCluster) -> None:
        """It is processed after the incremental report of it: the replica stays."""
        [node] = cluster.add("a")
        kept = cluster.write("/old", replication=1)
        report = node.make_report()
        newer = cluster.write("/new", replication=1)
        lost = node.disk["DS-a-0"].pop(kept.id)
        node.send_report(report)
        assert cluster.located("/old") == ["a"]
        assert cluster.located("/new") == ["a"]
        assert not cluster.checks()
        # The next one knows both.
        node.report()
        assert cluster.located("/old") == []
        assert cluster.located("/new") == ["a"]
        assert cluster.checks() == {CheckQueue.NEW: 1}
        node.disk["DS-a-0"][kept.id] = lost
        node.report()
        assert cluster.located("/old") == ["a"]
        assert newer.id in node.disk["DS-a-0"]

    def test_one_that_was_made_while_a_block_was_written(self, cluster: FakeCluster) -> None:
        """It says RBW of a block that is complete by now: the replica is not corrupt."""
        [node] = cluster.add("a")
        cluster.client.create("/f", replication=1)
        block = cluster.add_block("/f")
        node.disk["DS-a-0"][block.id] = OnDisk(block.generation_stamp, 5, RBW)
        report = node.make_report()
        cluster.finish(block.targets[0], block, 10)
        assert cluster.complete("/f", block, 10)
        node.send_report(report)
        assert cluster.located("/f") == ["a"]
        [replica] = replicas(cluster, block.id)
        assert (replica.length_bytes, replica.status) == (10, ReplicaStatus.GOOD)

    def test_one_that_was_made_before_a_deletion(self, cluster: FakeCluster) -> None:
        """A replica that was ordered to be deleted does not come back by an old report."""
        a, b = cluster.add("a", "b")
        block = cluster.write("/f", replication=2)
        cluster.live(1)
        reports = {node.name: node.make_report() for node in (a, b)}
        cluster.client.set_replication("/f", 1)
        cluster.live(3)
        [holder] = cluster.holders(block)
        loser = a if holder == "b" else b
        loser.send_report(reports[loser.name])
        assert cluster.located("/f") == [holder]
        cluster.live(3)
        assert cluster.holders(block) == [holder]
        cluster.check_calm()
        # In the end nothing is left of it.
        cluster.live(rounds=60, seconds=20)
        assert not cluster.count(Table.DELETIONS)

    def test_what_has_to_be_deleted_does_not_count_again(self, cluster: FakeCluster) -> None:
        a, b = cluster.add("a", "b")
        block = cluster.write("/f", replication=2)
        cluster.client.set_replication("/f", 1)
        cluster.pass_time(5)
        cluster.step()
        assert cluster.count(Table.INVALIDATIONS) == 1
        for node in (a, b):
            node.report()  # neither has deleted anything yet
        assert cluster.count(Table.INVALIDATIONS) == 1
        assert len(replicas(cluster, block.id)) == 1
        cluster.live(3)
        assert len(cluster.holders(block)) == 1
        cluster.check_calm()

    def test_one_without_permission_or_with_an_old_one(self, sqlite_cluster: FakeCluster) -> None:
        cluster = sqlite_cluster
        [node] = cluster.add("a")
        old = cluster.write("/old", replication=1)
        unasked = node.make_report(with_lease=False)
        newer = cluster.write("/new", replication=1)
        node.send_report(unasked)  # what has come since it registered is not touched
        assert cluster.located("/old") == cluster.located("/new") == ["a"]
        report = node.make_report()
        report.context.leaseId += 2
        with pytest.raises(IOException, match="no permission"):
            node.send_report(report)
        report = node.make_report()
        cluster.pass_time(301)
        with pytest.raises(IOException, match="too old a one"):
            node.send_report(report)
        assert {old.id, newer.id} <= set(node.disk["DS-a-0"])

    def test_a_writer_that_was_gone_before_the_block_was_finished(
        self, sqlite_cluster: FakeCluster
    ) -> None:
        cluster = sqlite_cluster
        a, b = cluster.add("a", "b")
        cluster.client.create("/f", replication=1)
        block = cluster.add_block("/f")
        target, other = (
            (a, b)
            if cluster.namenode.datanodes.storage(block.targets[0])[0].record.uuid == "a"
            else (b, a)
        )  # type: ignore[index]
        other.disk[f"DS-{other.name}-0"][block.id] = OnDisk(block.generation_stamp, 5, RWR)
        other.report()
        assert not replicas(cluster, block.id)
        target.receive(block.id, block.generation_stamp, 10)
        assert cluster.complete("/f", block, 10)
        other.report()
        assert cluster.located("/f") == [target.name]
        cluster.live(3)
        assert other.told == [block.id]
        assert other.find(block.id) is None
        cluster.check_calm()

    def test_a_length_that_is_wrong_is_right_later(self, sqlite_cluster: FakeCluster) -> None:
        cluster = sqlite_cluster
        [node] = cluster.add("a")
        block = cluster.write("/f", replication=1)
        right = node.disk["DS-a-0"][block.id]
        node.disk["DS-a-0"][block.id] = OnDisk(block.generation_stamp, 9)
        node.report()
        assert cluster.client.get_block_locations("/f").blocks[0].is_corrupt
        cluster.live(3)
        assert cluster.checks() == {CheckQueue.CORRUPT: 1}
        assert node.told == []
        node.disk["DS-a-0"][block.id] = right
        node.report()
        assert not cluster.client.get_block_locations("/f").blocks[0].is_corrupt
        cluster.live(2)
        cluster.check_calm()

    def test_blocks_that_nobody_has_made(self, cluster: FakeCluster) -> None:
        """Deleted ones are deleted; those of the future, as after a restore, are left alone."""
        [node] = cluster.add("a")
        gone = cluster.write("/f", replication=1)
        cluster.client.delete("/f")
        cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
        blocks = node.disk["DS-a-0"]
        blocks.update({id: OnDisk(1, 1) for id in (1, 2, FUTURE, (1 << 63) - 1, -5, -(1 << 62))})
        node.report()
        cluster.live(2)
        assert sorted(node.told) == [1, 2, gone.id]
        assert set(blocks) == {FUTURE, (1 << 63) - 1, -5, -(1 << 62)}
        cluster.check_calm()

    def test_absurd_lengths_and_stamps(self, sqlite_cluster: FakeCluster) -> None:
        cluster = sqlite_cluster
        [node] = cluster.add("a")
        block = cluster.write("/f", replication=1)
        node.disk["DS-a-0"][block.id] = OnDisk((1 << 64) - 1, (1 << 64) - 1)
        node.report()
        node.disk["DS-a-0"][block.id] = OnDisk(block.generation_stamp, block.length_bytes, 99)
        node.report()
        node.disk["DS-a-0"][block.id] = OnDisk((1 << 63) - 1, (1 << 63) - 1)
        node.report()
        cluster.live(3)
        assert node.told == []
        assert cluster.client.get_block_locations("/f").blocks[0].is_corrupt
        for id in (1 << 63, (1 << 64) - 1):
            node.send_change("DS-a-0", Change.RECEIVED, id, 1, 1)
            node.send_change("DS-a-0", Change.DELETED, id, 1, 1)
        node.disk["DS-a-0"][block.id] = OnDisk(block.generation_stamp, block.length_bytes)

    @pytest.mark.parametrize("count", [3, 1 << 40, (1 << 64) - 1])
    def test_more_blocks_than_there_are(self, node: FakeDataNode, count: int) -> None:
        report = node.make_report()
        report.reports[0].numberOfBlocks = count
        with pytest.raises(IOException, match="cut short"):
            node.send_report(report)

    @pytest.mark.parametrize("longs", [[1], [1, 0], [1, 0, 5, 6], [1 << 63, 1], [0, 2, 1, 1, 1]])
    def test_the_older_form_cut_short(self, node: FakeDataNode, longs: list[int]) -> None:
        report = node.make_report()
        report.reports[0].ClearField("numberOfBlocks")
        report.reports[0].blocks.extend(longs)
        with pytest.raises(IOException, match="cut short"):
            node.send_report(report)

    def test_the_older_form(self, sqlite_cluster: FakeCluster) -> None:
        cluster = sqlite_cluster
        [node] = cluster.add("a")
        block = cluster.write("/f", replication=1)
        cluster.client.create("/open")
        being_written = cluster.add_block("/open")
        report = node.make_report()
        report.reports[0].ClearField("numberOfBlocks")
        longs = [1, 1, block.id, block.length_bytes, block.generation_stamp]
        longs += [(1 << 64) - 1] * 3
        longs += [being_written.id, 3, being_written.generation_stamp, RBW]
        report.reports[0].blocks.extend(longs)
        node.send_report(report)
        assert cluster.located("/f") == ["a"]
        assert not cluster.count(Table.INVALIDATIONS)

    def test_a_varint_that_does_not_end(self, node: FakeDataNode) -> None:
        report = node.make_report()
        report.reports[0].numberOfBlocks = 1
        report.reports[0].blocksBuffers[:] = [b"\xff" * 100]
        with pytest.raises(IOException, match="cut short"):
            node.send_report(report)

    def test_unchanged_rows_are_not_written(self, cluster: FakeCluster) -> None:
        [node] = cluster.add("a")
        for n in range(5):
            cluster.write(f"/f{n}", replication=1)
        report = node.make_report()
        before = cluster.thread.wait(cluster.namenode.store.last_txid())
        node.send_report(report)
        assert cluster.thread.wait(cluster.namenode.store.last_txid()) == before


class TestIncrementalReports:
    def test_a_deletion_of_an_older_generation_says_nothing(self, cluster: FakeCluster) -> None:
        [node] = cluster.add("a")
        block = cluster.write("/f", replication=1)
        node.send_change("DS-a-0", Change.DELETED, block.id, block.generation_stamp - 1, 10)
        assert cluster.located("/f") == ["a"]

    def test_the_same_again_changes_nothing(self, cluster: FakeCluster) -> None:
        [node] = cluster.add("a")
        block = cluster.write("/f", replication=1)
        for _ in range(3):
            node.receive(block.id, block.generation_stamp, 10)
        assert not cluster.checks()

    def test_one_block_costs_one_transaction(self, cluster: FakeCluster) -> None:
        [node] = cluster.add("a")
        cluster.client.create("/f", replication=1)
        block = cluster.add_block("/f")
        statistics = cluster.namenode.statistics
        before = statistics.committed, statistics.reads
        node.receive(block.id, block.generation_stamp, 10)
        assert statistics.committed == before[0] + 1
        assert statistics.reads <= before[1] + 1

    def test_what_is_being_received_is_not_there_yet(self, sqlite_cluster: FakeCluster) -> None:
        cluster = sqlite_cluster
        [node] = cluster.add("a")
        cluster.client.create("/f", replication=1)
        block = cluster.add_block("/f")
        node.send_change("DS-a-0", Change.RECEIVING, block.id, block.generation_stamp, 0)
        assert not replicas(cluster, block.id)
        assert not cluster.complete("/f", block, 10)
        node.receive(block.id, block.generation_stamp, 10)
        assert cluster.complete("/f", block, 10)

    def test_a_file_that_is_deleted_while_it_is_written(self, cluster: FakeCluster) -> None:
        [node] = cluster.add("a")
        cluster.client.create("/f", replication=1)
        block = cluster.add_block("/f")
        cluster.client.delete("/f")
        node.receive(block.id, block.generation_stamp, 10)
        cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
        cluster.live(3)
        assert node.find(block.id) is None
        cluster.check_calm()

    def test_a_block_that_is_given_back(self, cluster: FakeCluster) -> None:
        [node] = cluster.add("a")
        cluster.client.create("/f", replication=1)
        block = cluster.add_block("/f")
        node.receive(block.id, block.generation_stamp, 10)
        cluster.client.abandon_block("/f", block)
        node.receive(block.id, block.generation_stamp, 10)  # once more
        cluster.live(3)
        assert node.find(block.id) is None
        cluster.check_calm()

    def test_a_hint_of_a_balancer_is_followed(self, sqlite_cluster: FakeCluster) -> None:
        cluster = sqlite_cluster
        nodes = cluster.add("a", "b", "c", "d", "e", "f")
        block = cluster.write("/f", replication=3)
        source = cluster.nodes[cluster.holders(block)[1]]
        target = next(node for node in nodes if node.find(block.id) is None)
        target.disk[f"DS-{target.name}-0"][block.id] = OnDisk(block.generation_stamp, 10)
        request = pb.BlockReceivedAndDeletedRequestProto(
            registration=target.registration, blockPoolId=cluster.namenode.block_pool_id
        )
        changes = request.blocks.add(storageUuid=f"DS-{target.name}-0")
        moved = hdfs_pb2.BlockProto(blockId=block.id, genStamp=block.generation_stamp, numBytes=10)
        changes.blocks.add(block=moved, status=Change.RECEIVED, deleteHint=source.name)
        target.client.call("blockReceivedAndDeleted", request)
        cluster.live(3)
        assert source.told == [block.id]
        cluster.check_calm()


def test_a_heartbeat_with_absurd_figures(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    [node] = cluster.add("a")
    request = pb.HeartbeatRequestProto(registration=node.registration, xceiverCount=(1 << 32) - 1)
    report = request.reports.add(storageUuid="DS-a-0")
    report.storage.storageUuid = "DS-a-0"
    for field in ("capacity", "dfsUsed", "remaining", "blockPoolUsed", "nonDfsUsed"):
        setattr(report, field, (1 << 64) - 1)
    node.client.call("sendHeartbeat", request)
    live = cluster.namenode.datanodes.get("a")
    assert live is not None
    assert live.sum(lambda usage: usage.capacity_bytes) == 1 << 60


def test_only_the_one_with_the_duty_gives_commands(sqlite_cluster: FakeCluster) -> None:
    cluster = sqlite_cluster
    [node] = cluster.add("a")
    cluster.write("/f", replication=1)
    cluster.client.delete("/f")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.namenode.safe_mode.enter()
    assert not node.heartbeat().cmds
    cluster.namenode.safe_mode.leave()
    assert node.heartbeat().cmds


def test_a_long_report_keeps_nobody_waiting(sqlite_cluster: FakeCluster) -> None:
    """Other calls are served between its pages."""
    cluster = sqlite_cluster
    [node] = cluster.add("a")
    report = node.make_report()
    count = 8_000
    blocks = {id: OnDisk(1, 1) for id in range(1, count + 1)}
    report.reports[0].numberOfBlocks = count
    report.reports[0].blocksBuffers[:] = [encode_blocks(blocks)]
    longest = cluster.thread.wait(longest_pause(cluster, node, report))
    assert cluster.count(Table.INVALIDATIONS) == count
    assert longest < 0.5  # 10 to 20 ms on an idle machine


async def longest_pause(
    cluster: FakeCluster, node: FakeDataNode, report: pb.BlockReportRequestProto
) -> float:
    """For how long the event loop does nothing else while a report is taken up."""
    sending = asyncio.get_running_loop().run_in_executor(None, node.send_report, report)
    longest = 0.0
    while not sending.done():
        before = time.perf_counter()
        await asyncio.sleep(0)
        longest = max(longest, time.perf_counter() - before)
    await sending
    return longest


def test_garbage_is_refused_in_so_many_words(node: FakeDataNode) -> None:
    for junk in (b"", b"\x00", encode_varint(1 << 63) * 4, b"\x80" * 9, b"\xff" * 256):
        report = node.make_report()
        report.reports[0].numberOfBlocks = 5
        report.reports[0].blocksBuffers[:] = [junk]
        with pytest.raises(IOException, match="cut short"):
            node.send_report(report)
