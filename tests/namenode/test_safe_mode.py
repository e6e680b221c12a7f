"""Safe mode: from the start until enough blocks are there, neither longer nor shorter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.namenode.datanodes import FakeCluster, FakeDataNode, OnDisk, fake_cluster
from tests.namenode.rpc import RpcClient, running_server

from cairnfs.clock import ManualClock
from cairnfs.config import NameNodeSettings
from cairnfs.errors import RetriableException, SafeModeException, StoreUnavailableException
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namenode.safe_mode import BlockSet
from cairnfs.store.base import Found, Reading
from cairnfs.store.schema import FIRST_BLOCK_ID, Table
from cairnfs.testing.scratch import ScratchClient, scratch_namespace
from cairnfs.wire.proto import client_namenode_pb2 as pb

WAIT_S = 20.0


@contextmanager
def restarted(folder: Path, threshold: float = 1.0) -> Iterator[FakeCluster]:
    """Another NameNode on the same store; nobody has come to it yet."""
    with fake_cluster(folder, format=False, safe_mode_threshold=threshold) as cluster:
        yield cluster


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, "it does not happen"
        time.sleep(0.01)


def is_over(cluster: FakeCluster) -> Callable[[], bool]:
    return lambda: not cluster.namenode.safe_mode.is_on


def counted(cluster: FakeCluster, count: int) -> Callable[[], bool]:
    text = f"The reported blocks {count} needs"
    return lambda: text in cluster.namenode.safe_mode.describe()


def back(cluster: FakeCluster, node: FakeDataNode) -> FakeDataNode:
    """The same DataNode, talking to the NameNode that was restarted."""
    again = FakeDataNode(cluster, node.name, storages=0, port=node.port)
    again.disk = node.disk
    cluster.nodes[node.name] = again
    again.come()
    return again


@pytest.fixture
def nodes(tmp_path: Path) -> list[FakeDataNode]:
    """Two DataNodes that have ten blocks each, of one replica."""
    with fake_cluster(tmp_path) as cluster:
        a, b = cluster.add("a", "b")
        while min(len(each.disk[f"DS-{each.name}-0"]) for each in (a, b)) < 10:
            cluster.write(f"/f{time.monotonic_ns()}", replication=1)
    for each in (a, b):
        for block_id in sorted(each.disk[f"DS-{each.name}-0"])[10:]:
            del each.disk[f"DS-{each.name}-0"][block_id]
    return [a, b]


def test_an_empty_namespace_needs_none(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as cluster:
        assert not cluster.namenode.safe_mode.is_on


def test_until_the_blocks_are_there(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as cluster:
        nodes = cluster.add("a", "b", "c")
        for n in range(4):
            cluster.write(f"/f{n}", replication=1)
    holders = [node for node in nodes if node.disk[f"DS-{node.name}-0"]]
    with restarted(tmp_path) as cluster:
        assert cluster.namenode.safe_mode.is_on
        with RpcClient(cluster.port, "hdfs") as client:
            request = pb.MkdirsRequestProto(src="/d", createParent=True)
            request.masked.perm = 0o755
            with pytest.raises(SafeModeException, match="Cannot create directory /d"):
                client.call("mkdirs", request)
            for node in holders[:-1]:
                back(cluster, node)
            assert cluster.namenode.safe_mode.is_on
            back(cluster, holders[-1])
            wait_until(is_over(cluster))
            assert client.call("mkdirs", request).result


def test_a_part_of_them_will_do(tmp_path: Path, nodes: list[FakeDataNode]) -> None:
    with restarted(tmp_path, threshold=0.25) as cluster:
        assert cluster.namenode.safe_mode.is_on
        back(cluster, nodes[0])
        wait_until(is_over(cluster))
    with restarted(tmp_path, threshold=0.0) as cluster:
        assert not cluster.namenode.safe_mode.is_on


def test_blocks_that_are_reported_lost_do_not_count(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as cluster:
        [node] = cluster.add("a")
        blocks = [cluster.write(f"/f{n}", replication=1) for n in range(3)]
    lost = node.disk["DS-a-0"].pop(blocks[0].id)
    with restarted(tmp_path) as cluster:
        again = back(cluster, node)
        wait_until(counted(cluster, 2))
        assert cluster.namenode.safe_mode.is_on
        again.disk["DS-a-0"][blocks[0].id] = lost  # a disk was not there yet
        again.report()
        wait_until(is_over(cluster))


def test_only_storages_that_have_reported_count(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as cluster:
        [node] = cluster.add("a", storages=2)
        for n in range(12):
            cluster.write(f"/f{n}", replication=1)
    first, second = node.disk.values()
    assert first
    assert second
    with restarted(tmp_path) as cluster:
        again = FakeDataNode(cluster, "a", storages=0, port=node.port)
        again.disk = node.disk
        again.register()
        report = again.make_report()
        later = report.reports.pop()
        again.send_report(report)
        wait_until(counted(cluster, len(first)))
        del report.reports[:]
        report.reports.append(later)
        again.send_report(report)
        wait_until(is_over(cluster))
        again.close()


def test_open_files_are_not_waited_for_and_hide_nothing(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as cluster:
        [node] = cluster.add("a")
        cluster.write("/f", replication=1)
        for n in range(5):
            cluster.client.create(f"/empty{n}", replication=1)
        cluster.client.create("/open", replication=1)
        cluster.add_block("/open")
    with restarted(tmp_path) as cluster:
        assert cluster.namenode.safe_mode.is_on  # for the one block that is finished
        back(cluster, node)
        wait_until(is_over(cluster))


def test_nothing_is_copied_or_deleted_meanwhile(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as cluster:
        a, b = cluster.add("a", "b")
        cluster.write("/f", replication=1)
        cluster.write("/g", replication=2)
        cluster.client.set_replication("/g", 1)
    with restarted(tmp_path) as cluster:
        cluster.namenode.safe_mode.enter()
        again = [back(cluster, node) for node in (a, b)]
        cluster.live(5)
        assert cluster.count(Table.INVALIDATIONS) == 0
        cluster.namenode.safe_mode.leave()
        cluster.live(5)
        assert sorted(map(len, (each.told for each in again))) == [0, 1]
        cluster.check_calm()


def test_an_administrator_decides(tmp_path: Path, nodes: list[FakeDataNode]) -> None:
    with restarted(tmp_path) as cluster:
        safe_mode = cluster.namenode.safe_mode
        assert "needs additional" in safe_mode.describe()
        safe_mode.leave()
        assert not safe_mode.is_on
        assert safe_mode.describe() == "Safe mode is OFF."
        safe_mode.enter()
        assert "turned on manually" in safe_mode.describe()
        back(cluster, nodes[0])
        assert safe_mode.is_on
        safe_mode.leave()
        assert not safe_mode.is_on


def test_where_there_are_other_namenodes_a_call_may_be_repeated(
    tmp_path: Path, postgres_dsn: str
) -> None:
    """Hadoop's clients try again when told so, and give up when it is SafeModeException."""
    with scratch_namespace(tmp_path, url=postgres_dsn) as fs:
        fs.write("/f", 5)
    settings = NameNodeSettings(postgres_dsn, duties=False, safe_mode_threshold=1.0)
    with NameNodeThread(settings) as namenode:
        safe_mode = namenode.namenode.safe_mode
        assert safe_mode.is_on
        started = ScratchClient(namenode, namenode.client().caller, ManualClock())
        with running_server(started) as server, server.connect() as client:
            request = pb.DeleteRequestProto(src="/f", recursive=False)
            words = "hdfs.server.namenode.SafeModeException: Cannot delete /f"
            with pytest.raises(RetriableException, match=words):
                client.call("delete", request)
            safe_mode.enter()  # as an administrator wants it: to repeat it would be no use
            with pytest.raises(SafeModeException, match="Cannot delete /f"):
                client.call("delete", request)
            safe_mode.leave()
            assert client.call("delete", request).result


def test_a_store_that_does_not_answer_for_a_moment(
    tmp_path: Path, nodes: list[FakeDataNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cairnfs.namenode.safe_mode.COUNT_AGAIN_S", 0.01)
    with restarted(tmp_path, threshold=0.25) as cluster:
        store = cluster.namenode.store
        read, failures = store.read, []

        async def fail_twice(reading: Reading) -> Found:
            if reading.scans and len(failures) < 2:
                failures.append(reading)
                raise StoreUnavailableException("away")
            return await read(reading)

        monkeypatch.setattr(cluster.namenode.safe_mode._store, "read", fail_twice)
        back(cluster, nodes[0])
        wait_until(is_over(cluster))
        assert len(failures) == 2


def test_a_set_of_blocks() -> None:
    blocks = BlockSet()
    for id in (FIRST_BLOCK_ID, FIRST_BLOCK_ID + 7, FIRST_BLOCK_ID + 8, FIRST_BLOCK_ID + 10_000):
        for _ in range(2):
            blocks.add(id)
    assert len(blocks) == 4
    assert OnDisk(1, 1).state == 0
