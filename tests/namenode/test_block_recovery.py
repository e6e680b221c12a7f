"""Recovery of blocks: DataNodes agree on what a writer left, or cut what a client truncates.

The DataNodes exist only as what they say (`FakeDataNode.recover`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.namenode.datanodes import BLOCK_BYTES, FakeCluster, FakeDataNode, OnDisk, fake_cluster
from tests.namenode.rpc import RpcClient

from cairnfs.blocks.records import AdminState, Block, BlockState
from cairnfs.blocks.registration import set_admin_state
from cairnfs.config import NameNodeSettings
from cairnfs.errors import (
    AccessControlException,
    AlreadyBeingCreatedException,
    HadoopIllegalArgumentException,
    IOException,
    LeaseExpiredException,
    RecoveryInProgressException,
)
from cairnfs.namenode import client_open_files
from cairnfs.namenode.block_recoveries import ATTEMPT_LIMIT_S
from cairnfs.namenode.embedded import NameNodeThread, make_namespace
from cairnfs.namesystem import pipelines
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.paths import FsPath
from cairnfs.store.schema import Table
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import datanode_pb2

OTHER = "another client"


@pytest.fixture
def nodes(cluster: FakeCluster) -> list[FakeDataNode]:
    return cluster.add("a", "b", "c")


@pytest.fixture
def rpc(cluster: FakeCluster) -> Iterator[RpcClient]:
    with RpcClient(cluster.port) as client:
        yield client


def open_file(cluster: FakeCluster, path: str = "/f") -> Block:
    """A file with a block whose writer is about to go."""
    cluster.client.create(path, block_size_bytes=BLOCK_BYTES)
    return cluster.add_block(path)


def flush(cluster: FakeCluster, length: int = -1) -> None:
    caller, holder = cluster.client.caller, cluster.client.client_name
    cluster.call(pipelines.fsync, caller, FsPath.parse("/f"), holder, InodeId(0), length)


def is_closed(cluster: FakeCluster, path: str = "/f") -> bool:
    return cluster.client.is_file_closed(path)


def length_of(cluster: FakeCluster, path: str = "/f") -> int:
    status = cluster.client.get_file_info(path)
    assert status is not None
    return status.length_bytes


def take_commands(
    cluster: FakeCluster, *nodes: FakeDataNode
) -> list[tuple[FakeDataNode, datanode_pb2.BlockRecoveryCommandProto]]:
    """The recoveries that DataNodes are told to lead with their next heartbeats, not done yet."""
    cluster.step()
    return [
        (node, command.recoveryCmd)
        for node in nodes
        for command in node.heartbeat().cmds
        if command.HasField("recoveryCmd")
    ]


# Writers that are gone.


def test_what_all_replicas_have_is_kept(cluster: FakeCluster, nodes: list[FakeDataNode]) -> None:
    block = open_file(cluster)
    for node, length in zip(nodes, (10, 7, 12), strict=True):
        node.write(block, length)
    assert not cluster.client.recover_lease("/f")
    with pytest.raises(RecoveryInProgressException, match="another recovery is in progress by HDF"):
        cluster.client.append("/f")
    with pytest.raises(LeaseExpiredException):
        cluster.add_block("/f", block)
    cluster.live(2)
    assert is_closed(cluster)
    assert length_of(cluster) == 7
    recovered = cluster.block(block.id)
    assert recovered is not None
    assert recovered.generation_stamp > block.generation_stamp
    assert cluster.holders(recovered) == cluster.located("/f") == ["a", "b", "c"]
    assert cluster.client.recover_lease("/f")
    cluster.live(3)
    cluster.check_calm()


def test_a_block_that_was_never_written_is_removed(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    open_file(cluster)
    cluster.client.recover_lease("/f")
    cluster.live(2)
    assert is_closed(cluster)
    assert cluster.client.get_block_locations("/f").blocks == []
    assert cluster.client.get_content_summary("/").space_bytes == 0


def test_a_block_is_not_removed_while_someone_may_have_it(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    """Two have lost what they had, the third does not answer: it may have what was flushed."""
    block = open_file(cluster)
    nodes[2].write(block, 5)
    nodes[2].die()
    cluster.live(11)  # it is avoided by now, but not given up
    cluster.client.recover_lease("/f")
    cluster.live(3)
    assert not is_closed(cluster)
    assert any("may have data" in error for node in nodes for error in node.refused)
    nodes[2].come()
    cluster.live(10)
    assert is_closed(cluster)
    assert length_of(cluster) == 5


def test_a_block_is_removed_when_whoever_did_not_answer_is_given_up(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    open_file(cluster)
    cluster.client.recover_lease("/f")
    cluster.bury(nodes[2])
    cluster.live(30)
    assert is_closed(cluster)
    assert length_of(cluster) == 0


@pytest.mark.parametrize("length", [-1, 5])
def test_a_block_with_flushed_data_is_never_removed(
    cluster: FakeCluster, nodes: list[FakeDataNode], length: int
) -> None:
    block = open_file(cluster)
    flush(cluster, length)
    cluster.client.recover_lease("/f")
    cluster.live(10)
    assert not is_closed(cluster)
    nodes[0].write(block, 5)  # it was only a disk that was slow to come
    cluster.live(40)
    assert is_closed(cluster)
    assert length_of(cluster) == 5


def test_nothing_that_is_known_to_be_acknowledged_is_cut(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = open_file(cluster)
    flush(cluster, 10)
    nodes[0].write(block, 4)
    cluster.client.recover_lease("/f")
    cluster.live(3)
    assert not is_closed(cluster)
    assert any("at least 10" in error for node in nodes for error in node.refused)
    assert length_of(cluster) == 10


def test_another_primary_is_chosen_when_the_first_dies(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = open_file(cluster)
    for node in nodes:
        node.write(block, 9)
    cluster.client.recover_lease("/f")
    [(first, command)] = take_commands(cluster, *nodes)
    first.die()
    cluster.pass_time(1)
    first.come()  # it knows nothing of what it was told before
    [(second, again)] = take_commands(cluster, *nodes)
    assert second is not first
    assert again.blocks[0].newGenStamp > command.blocks[0].newGenStamp
    second.recover(again.blocks[0])
    assert is_closed(cluster)
    assert length_of(cluster) == 9


def test_a_primary_that_does_not_answer_in_time_is_overtaken(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = open_file(cluster)
    for node in nodes:
        node.write(block, 9)
    cluster.client.recover_lease("/f")
    [(first, command)] = take_commands(cluster, *nodes)
    assert take_commands(cluster, *nodes) == []
    cluster.pass_time(ATTEMPT_LIMIT_S)
    [(second, again)] = take_commands(cluster, *nodes)
    assert second is not first
    first.recover(command.blocks[0])  # late
    assert "does not match current recovery id" in first.refused[0]
    assert not is_closed(cluster)
    second.recover(again.blocks[0])
    second.recover(again.blocks[0])  # the answer was lost, so it says it again
    assert second.refused == []
    assert is_closed(cluster)


def test_a_datanode_that_hangs_is_left_out(cluster: FakeCluster, nodes: list[FakeDataNode]) -> None:
    block = open_file(cluster)
    for node in nodes:
        node.write(block, 9)
    nodes[1].is_up = False
    cluster.live(11)
    cluster.client.recover_lease("/f")
    cluster.live(2)
    assert is_closed(cluster)
    assert cluster.located("/f") == ["a", "c"]
    nodes[1].come()
    cluster.live(3)
    assert nodes[1].told == [block.id]  # what it has is outdated


def test_a_committed_block_waits_for_its_report(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = open_file(cluster)
    assert not cluster.complete("/f", block, 8)
    assert not cluster.client.recover_lease("/f")
    cluster.live(3)
    assert not is_closed(cluster)
    nodes[0].receive(block.id, block.generation_stamp, 8)
    cluster.thread.wait(cluster.namenode.lease_expiry.look_at_page())
    assert is_closed(cluster)
    assert length_of(cluster) == 8


def test_a_block_before_the_last_that_was_committed_is_waited_for(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    first = open_file(cluster)
    written = first.with_length(BLOCK_BYTES)
    second = cluster.add_block("/f", written)
    nodes[0].write(second, 3)
    assert not cluster.client.recover_lease("/f")
    cluster.live(2)
    assert not is_closed(cluster)
    nodes[0].receive(first.id, first.generation_stamp, BLOCK_BYTES)
    cluster.thread.wait(cluster.namenode.lease_expiry.look_at_page())
    assert is_closed(cluster)
    assert length_of(cluster) == BLOCK_BYTES + 3


def test_a_file_that_is_deleted_while_its_block_is_recovered(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    block = open_file(cluster)
    for node in nodes:
        node.write(block, 9)
    cluster.client.recover_lease("/f")
    [(primary, command)] = take_commands(cluster, *nodes)
    cluster.client.delete("/f")
    primary.recover(command.blocks[0])
    assert len(primary.refused) == 1
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(20)
    assert not cluster.rows(Table.RECOVERIES, 0)
    assert all(node.find(block.id) is None for node in nodes)


def test_a_namenode_that_comes_back_goes_on_with_recoveries(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as before:
        nodes = before.add("a", "b", "c")
        block = open_file(before)
        for node in nodes:
            node.write(block, 9)
        before.client.recover_lease("/f")
        assert take_commands(before, *nodes)  # it dies with the NameNode
        disks = {node.name: node.disk for node in nodes}
    with fake_cluster(tmp_path, format=False) as cluster:
        for node in cluster.add("a", "b", "c"):
            node.disk = disks[node.name]
        cluster.live(3)
        assert is_closed(cluster)
        assert length_of(cluster) == 9


def test_a_writer_goes_on_with_a_namenode_that_comes_back(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as before:
        before.add("a", "b", "c")
        block = open_file(before)
        name = before.client.client_name
    with fake_cluster(tmp_path, format=False) as cluster:
        cluster.client.client_name = name
        nodes = cluster.add("a", "b", "c")
        for node in nodes:
            node.receive(block.id, block.generation_stamp, BLOCK_BYTES)
        second = cluster.add_block("/f", block.with_length(BLOCK_BYTES))
        nodes[0].receive(second.id, second.generation_stamp, 5)
        assert cluster.complete("/f", second, 5)
        assert length_of(cluster) == BLOCK_BYTES + 5


# Append.


def append(rpc: RpcClient, path: str = "/f", holder: str = OTHER) -> pb.AppendResponseProto:
    response: pb.AppendResponseProto = rpc.call(
        "append", pb.AppendRequestProto(src=path, clientName=holder)
    )
    return response


def test_append_goes_on_where_the_replicas_are(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    block = cluster.write("/f")
    appended = append(rpc)
    assert appended.stat.length == 10
    located = appended.block
    assert (located.b.blockId, located.b.numBytes, located.offset) == (block.id, 10, 0)
    assert sorted(info.id.datanodeUuid for info in located.locs) == ["a", "b", "c"]
    assert sorted(located.storageIDs) == ["DS-a-0", "DS-b-0", "DS-c-0"]


def test_append_leaves_out_replicas_that_cannot_be_reached(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    """They are outdated when they come back, and made anew meanwhile."""
    block = cluster.write("/f")
    nodes[0].die()
    cluster.live(11)
    located = append(rpc).block
    assert sorted(info.id.datanodeUuid for info in located.locs) == ["b", "c"]
    stamped = rpc.call(
        "updateBlockForPipeline",
        pb.UpdateBlockForPipelineRequestProto(block=located.b, clientName=OTHER),
    ).block.b
    ids = [info.id for info in located.locs]
    request = pb.UpdatePipelineRequestProto(
        clientName=OTHER,
        oldBlock=located.b,
        newBlock=stamped,
        newNodes=ids,
        storageIDs=located.storageIDs,
    )
    rpc.call("updatePipeline", request)
    for node in nodes[1:]:
        node.receive(block.id, stamped.generationStamp, 25)
    stamped.numBytes = 25
    complete = pb.CompleteRequestProto(src="/f", clientName=OTHER, last=stamped)
    assert rpc.call("complete", complete).result
    assert cluster.located("/f") == ["b", "c"]
    nodes[0].come()
    cluster.live(10)
    changed = cluster.block(block.id)
    assert changed is not None
    assert (changed.length_bytes, changed.state) == (25, BlockState.COMPLETE)
    assert cluster.holders(changed) == ["a", "b", "c"]
    assert nodes[0].told == [block.id]


def test_append_needs_a_replica(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    cluster.write("/f")
    cluster.bury(*nodes)
    with pytest.raises(IOException, match=r"lastBlock=blk_\S+ of src=/f is not sufficiently repl"):
        append(rpc)
    assert is_closed(cluster)


def test_a_file_deleted_while_it_is_appended_to_leaves_nothing(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    """Its replicas have a stamp by now that no row of theirs knows."""
    block = cluster.write("/f")
    located = append(rpc).block
    stamped = rpc.call(
        "updateBlockForPipeline",
        pb.UpdateBlockForPipelineRequestProto(block=located.b, clientName=OTHER),
    ).block.b
    for node in nodes:
        node.write(block, 20, stamped.generationStamp)
    cluster.client.delete("/f")
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(3)
    assert all(node.find(block.id) is None for node in nodes)


def test_stamps_grow_whichever_namenode_gives_them(postgres_dsn: str) -> None:
    """They are taken in ranges: one NameNode's next may be less than what another has given."""
    make_namespace(postgres_dsn)
    settings = NameNodeSettings(postgres_dsn, duties=False)
    with NameNodeThread(settings) as first, NameNodeThread(settings) as second:
        client = second.client()
        early = first.client()  # whose NameNode takes the first range
        early.create("/early")
        early.add_block("/early")
        client.create("/f")
        block = client.add_block("/f").block

        def next_stamp(namenode: NameNodeThread) -> int:
            arguments = (client.caller, client.client_name, block)
            call = namenode.namenode.call(pipelines.update_block_for_pipeline, *arguments)
            return int(namenode.wait(call).block.generation_stamp)

        stamps = [block.generation_stamp, *map(next_stamp, (first, second, first, second))]
        assert stamps == sorted(set(stamps))


# Truncate.


def send_truncate(rpc: RpcClient, length: int, holder: str = OTHER) -> int:
    return rpc.send(
        "truncate", pb.TruncateRequestProto(src="/f", newLength=length, clientName=holder)
    )


def wait_until_cutting(cluster: FakeCluster, block: Block) -> None:
    for _ in range(500):
        found = cluster.block(block.id)
        if found is not None and found.state is BlockState.TRUNCATING:
            return
        time.sleep(0.01)
    raise AssertionError("nobody cuts it")


def test_truncate_within_a_block_waits_for_datanodes(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    block = cluster.write("/f")
    call_id = send_truncate(rpc, 4)
    wait_until_cutting(cluster, block)
    # Readers see the new end at once, and nobody writes.
    located = cluster.client.get_block_locations("/f")
    assert (located.length_bytes, located.last_is_complete) == (4, True)
    assert located.under_construction
    assert cluster.located("/f") == ["a", "b", "c"]
    assert length_of(cluster) == cluster.client.get_content_summary("/").length_bytes == 4
    assert cluster.client.get_content_summary("/").space_bytes == 12
    with pytest.raises(AlreadyBeingCreatedException, match="/f is being truncated"):
        cluster.client.truncate("/f", 3)
    with pytest.raises(RecoveryInProgressException):
        cluster.client.append("/f")
    with pytest.raises(LeaseExpiredException):
        cluster.add_block("/f", block)
    cluster.live(2)
    assert rpc.wait(call_id).result
    assert is_closed(cluster)
    cut = cluster.block(block.id)
    assert cut is not None
    assert cut.length_bytes == 4
    assert cut.generation_stamp > block.generation_stamp
    assert cluster.holders(cut) == cluster.located("/f") == ["a", "b", "c"]


def test_whoever_waits_for_a_cut_does_not_cut_again(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_open_files, "RECOVERY_POLL_S", 1.0)
    block = cluster.write("/f")
    call_id = send_truncate(rpc, 4)
    wait_until_cutting(cluster, block)
    cluster.live(2)
    with RpcClient(cluster.port) as other:  # gets to it before the first one looks again
        monkeypatch.setattr(client_open_files, "RECOVERY_POLL_S", 0.05)
        shorter = send_truncate(other, 2, "a third one")
        wait_until_cutting(cluster, block)
        cluster.live(2)
        assert other.wait(shorter).result
    assert rpc.wait(call_id).result
    assert length_of(cluster) == 2


def test_truncate_is_answered_even_if_nobody_cuts(
    cluster: FakeCluster,
    nodes: list[FakeDataNode],
    rpc: RpcClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_open_files, "RECOVERY_WAIT_S", 0.3)
    cluster.write("/f")
    assert not rpc.wait(send_truncate(rpc, 4)).result
    assert not rpc.wait(send_truncate(rpc, 4)).result  # as a client that goes on asking
    cluster.live(2)
    assert rpc.wait(send_truncate(rpc, 4)).result


def test_truncate_to_the_end_of_a_block_is_done_at_once(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    cluster.client.create("/f", block_size_bytes=BLOCK_BYTES)
    first = cluster.add_block("/f")
    for storage in first.targets:
        cluster.finish(storage, first, BLOCK_BYTES)
    second = cluster.add_block("/f", first.with_length(BLOCK_BYTES))
    for storage in second.targets:
        cluster.finish(storage, second, 10)
    assert cluster.complete("/f", second, 10)
    assert rpc.wait(send_truncate(rpc, BLOCK_BYTES)).result
    cluster.thread.wait(cluster.namenode.duties.reclaim_everything())
    cluster.live(3)
    assert all(node.find(second.id) is None for node in nodes)
    assert all(node.find(first.id) is not None for node in nodes)
    with pytest.raises(HadoopIllegalArgumentException, match="Cannot truncate to a larger"):
        rpc.wait(send_truncate(rpc, BLOCK_BYTES + 1))


def test_a_block_that_is_cut_is_neither_removed_nor_of_another_length(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    block = cluster.write("/f")
    send_truncate(rpc, 4)
    wait_until_cutting(cluster, block)
    [(primary, command)] = take_commands(cluster, *nodes)
    cut = command.blocks[0]
    assert (cut.truncateBlock.numBytes, cut.truncateBlock.blockId) == (4, block.id)
    result = datanode_pb2.CommitBlockSynchronizationRequestProto(
        block=cut.block.b,
        newGenStamp=cut.newGenStamp,
        newLength=3,
        closeFile=True,
        deleteBlock=False,
    )
    primary.commit(result)
    result.newLength, result.deleteBlock = 0, True
    primary.commit(result)
    assert [text.split(" ")[2] for text in primary.refused] == ["/f", "not"]
    primary.recover(cut)
    assert is_closed(cluster)


def test_cutting_goes_on_after_a_namenode_has_died(tmp_path: Path) -> None:
    with fake_cluster(tmp_path) as before, RpcClient(before.port) as rpc:
        nodes = before.add("a", "b")
        block = before.write("/f", replication=2)
        send_truncate(rpc, 4)
        wait_until_cutting(before, block)
        disks = {node.name: node.disk for node in nodes}
    with fake_cluster(tmp_path, format=False) as cluster:
        for node in cluster.add("a", "b"):
            node.disk = disks[node.name]
        for node in cluster.nodes.values():
            node.report()
        for _ in range(500):  # safe mode ends
            if not cluster.namenode.safe_mode.is_on:
                break
            time.sleep(0.01)
        cluster.live(3)
        assert is_closed(cluster)
        assert length_of(cluster) == 4


# Which files are open.


def list_open_files(rpc: RpcClient, **more: object) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    after = 0
    while True:
        request = pb.ListOpenFilesRequestProto(id=after, **more)
        response = rpc.call("listOpenFiles", request)
        found += [(entry.path, entry.clientName) for entry in response.entries]
        if not response.hasMore:
            return found
        after = response.entries[-1].id


def test_open_files_are_listed_to_the_superuser(
    cluster: FakeCluster, nodes: list[FakeDataNode], rpc: RpcClient
) -> None:
    me = cluster.client.client_name
    cluster.client.mkdirs("/d")
    for path in ("/d/f", "/e", "/dd"):
        open_file(cluster, path)
    assert list_open_files(rpc) == [("/d/f", me), ("/e", me), ("/dd", me)]
    assert list_open_files(rpc, path="/d") == [("/d/f", me)]
    assert list_open_files(rpc, path="/d/f") == [("/d/f", me)]
    assert list_open_files(rpc, types=[pb.BLOCKING_DECOMMISSION]) == []
    leaving = cluster.call(set_admin_state, "b", AdminState.DECOMMISSION_INPROGRESS)
    cluster.namenode.datanodes.put(leaving)
    assert len(list_open_files(rpc, types=[pb.BLOCKING_DECOMMISSION])) == 3
    with RpcClient(cluster.port, "ada") as other, pytest.raises(AccessControlException):
        list_open_files(other)


def test_replicas_of_another_generation_are_not_read(
    cluster: FakeCluster, nodes: list[FakeDataNode]
) -> None:
    """Of DataNodes that were away: one has an older generation, one what was there long ago."""
    block = cluster.write("/f")
    nodes[0].die()
    with RpcClient(cluster.port) as rpc:
        call_id = send_truncate(rpc, 4)
        wait_until_cutting(cluster, block)
        cluster.live(11)
        rpc.wait(call_id)
    cluster.live(20)
    assert is_closed(cluster)
    prehistoric = block.id + 1
    nodes[0].disk["DS-a-0"][prehistoric] = OnDisk(5, 10)
    nodes[0].come()
    assert "a" not in cluster.located("/f")
    cluster.live(5)
    assert {block.id, prehistoric} <= set(nodes[0].told)
