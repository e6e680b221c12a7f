"""Append: a writer goes on where the replicas of the last block are."""

from __future__ import annotations

import pytest
from tests.namenode.datanodes import FakeCluster, FakeDataNode
from tests.namenode.open_files import OTHER, is_closed
from tests.namenode.rpc import RpcClient

from cairnfs.blocks.records import BlockState
from cairnfs.config import NameNodeSettings
from cairnfs.errors import IOException
from cairnfs.namenode.embedded import NameNodeThread, make_namespace
from cairnfs.namesystem import pipelines
from cairnfs.wire.proto import client_namenode_pb2 as pb


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
