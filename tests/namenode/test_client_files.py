"""Writing and reading files over RPC, with DataNodes that exist only as what they say."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.namenode.datanodes import FakeCluster
from tests.namenode.rpc import RpcClient

from cairnfs.errors import (
    FileNotFoundException,
    IOException,
    LeaseExpiredException,
    UnsupportedOperationException,
)
from cairnfs.namenode import client_files
from cairnfs.wire.proto import acl_pb2, hdfs_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb

WRITER = "DFSClient_test"


class Writer:
    """One file that is being written."""

    def __init__(self, cluster: FakeCluster, client: RpcClient, path: str) -> None:
        self.cluster = cluster
        self.client = client
        self.path = path
        request = pb.CreateRequestProto(
            src=path,
            masked=acl_pb2.FsPermissionProto(perm=0o644),
            clientName=WRITER,
            createFlag=pb.CREATE,
            createParent=True,
            replication=3,
            blockSize=128 << 20,
        )
        self.file_id: int = client.call("create", request).fs.fileId
        self.last: hdfs_pb2.ExtendedBlockProto | None = None

    def add_block(self, **more: object) -> hdfs_pb2.LocatedBlockProto:
        request = pb.AddBlockRequestProto(
            src=self.path, clientName=WRITER, fileId=self.file_id, previous=self.last, **more
        )
        located: hdfs_pb2.LocatedBlockProto = self.client.call("addBlock", request).block
        self.last = located.b
        return located

    def report(self, located: hdfs_pb2.LocatedBlockProto, length: int) -> None:
        """The DataNodes of the pipeline have the block."""
        assert self.last is not None
        self.last.numBytes = length
        for info in located.locs:
            node = self.cluster.nodes[info.id.datanodeUuid]
            node.receive(located.b.blockId, located.b.generationStamp, length)

    def send_complete(self) -> int:
        request = pb.CompleteRequestProto(
            src=self.path, clientName=WRITER, last=self.last, fileId=self.file_id
        )
        return self.client.send("complete", request)

    def complete(self) -> bool:
        response: pb.CompleteResponseProto = self.client.wait(self.send_complete())
        return response.result


@pytest.fixture
def client(sqlite_cluster: FakeCluster) -> Iterator[RpcClient]:
    sqlite_cluster.add("a", "b", "c", "d")
    with RpcClient(sqlite_cluster.port) as connected:
        yield connected


@pytest.fixture
def writer(sqlite_cluster: FakeCluster, client: RpcClient) -> Writer:
    return Writer(sqlite_cluster, client, "/dir/file")


def locations(client: RpcClient, path: str) -> hdfs_pb2.LocatedBlocksProto:
    request = pb.GetBlockLocationsRequestProto(src=path, offset=0, length=1 << 40)
    response: pb.GetBlockLocationsResponseProto = client.call("getBlockLocations", request)
    return response.locations


def test_a_file_of_two_blocks(writer: Writer, client: RpcClient) -> None:
    first = writer.add_block()
    assert first.b.poolId == writer.cluster.namenode.block_pool_id
    assert len({info.id.datanodeUuid for info in first.locs}) == 3
    assert len(first.storageIDs) == len(first.storageTypes) == len(first.isCached) == 3
    writer.report(first, 128 << 20)
    second = writer.add_block()
    writer.report(second, 10)
    assert writer.complete()

    found = locations(client, "/dir/file")
    assert found.fileLength == (128 << 20) + 10
    assert [block.offset for block in found.blocks] == [0, 128 << 20]
    assert {info.id.datanodeUuid for info in found.blocks[1].locs} == {
        info.id.datanodeUuid for info in second.locs
    }
    assert not found.underConstruction
    assert found.isLastBlockComplete


def test_locations_come_with_listings_and_statuses(writer: Writer, client: RpcClient) -> None:
    writer.report(writer.add_block(), 10)
    assert writer.complete()
    listing = pb.GetListingRequestProto(src="/dir", startAfter=b"", needLocation=True)
    (entry,) = client.call("getListing", listing).dirList.partialListing
    assert entry.path == b"file"
    status = client.call("getLocatedFileInfo", pb.GetLocatedFileInfoRequestProto(src="/dir/file"))
    for located in (entry.locations, status.fs.locations):
        assert located.fileLength == 10
        assert len(located.blocks[0].locs) == 3


def test_complete_waits_for_the_datanodes_to_report(writer: Writer) -> None:
    located = writer.add_block()
    assert writer.last is not None
    writer.last.numBytes = 10
    call_id = writer.send_complete()
    time.sleep(0.05)
    assert writer.client.machine.unanswered == {call_id}
    writer.report(located, 10)
    began_s = time.monotonic()
    assert writer.client.wait(call_id).result
    assert time.monotonic() - began_s < client_files.COMPLETE_WAIT_S


def test_complete_does_not_wait_for_ever(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_files, "COMPLETE_WAIT_S", 0.2)
    located = writer.add_block()
    assert writer.last is not None
    writer.last.numBytes = 10
    assert not writer.complete()
    writer.report(located, 10)
    assert writer.complete()


def test_excluded_datanodes_are_not_chosen(writer: Writer, client: RpcClient) -> None:
    first = writer.add_block()
    writer.client.call(
        "abandonBlock",
        pb.AbandonBlockRequestProto(
            b=first.b, src=writer.path, holder=WRITER, fileId=writer.file_id
        ),
    )
    writer.last = None
    bad = first.locs[0]
    again = writer.add_block(excludeNodes=[bad])
    assert bad.id.datanodeUuid not in {info.id.datanodeUuid for info in again.locs}
    assert len(again.locs) == 3


@pytest.mark.parametrize("knows_its_id", [True, False])
def test_a_writer_whose_directory_was_rolled_back_is_told(
    sqlite_cluster: FakeCluster, knows_its_id: bool
) -> None:
    """What is there now is shared with a snapshot, and nobody has opened it."""
    with RpcClient(sqlite_cluster.port) as client:
        sqlite_cluster.client.mkdirs("/d/sub")
        writer = Writer(sqlite_cluster, client, "/d/sub/file")
        sqlite_cluster.client.allow_snapshot("/d")
        sqlite_cluster.client.create_snapshot("/d", "s")
        sqlite_cluster.client.mkdirs("/d/sub/later")
        sqlite_cluster.client.rollback_snapshot("/d", "s")
        request = pb.GetAdditionalDatanodeRequestProto(
            src=writer.path,
            blk=hdfs_pb2.ExtendedBlockProto(poolId="", blockId=1, generationStamp=1),
            numAdditionalNodes=1,
            clientName=WRITER,
            fileId=writer.file_id if knows_its_id else 0,
        )
        refusal = FileNotFoundException if knows_its_id else LeaseExpiredException
        with pytest.raises(refusal, match=r"Holder .* does not have any open files"):
            client.call("getAdditionalDatanode", request)


def test_without_datanodes_there_is_nowhere_to_write(sqlite_cluster: FakeCluster) -> None:
    with RpcClient(sqlite_cluster.port) as client:
        writer = Writer(sqlite_cluster, client, "/file")
        with pytest.raises(IOException, match="could only be written to 0 of the 1 minReplication"):
            writer.add_block()
        assert writer.complete()  # as an empty file


def test_a_pipeline_is_mended(writer: Writer, client: RpcClient) -> None:
    located = writer.add_block()
    left = located.locs[1:]
    more = client.call(
        "getAdditionalDatanode",
        pb.GetAdditionalDatanodeRequestProto(
            src=writer.path,
            blk=located.b,
            existings=left,
            excludes=located.locs[:1],
            numAdditionalNodes=1,
            clientName=WRITER,
            existingStorageUuids=located.storageIDs[1:],
            fileId=writer.file_id,
        ),
    ).block
    uuids = [info.id.datanodeUuid for info in more.locs]
    assert uuids[:2] == [info.id.datanodeUuid for info in left]
    assert len(set(uuids)) == 3
    assert located.locs[0].id.datanodeUuid not in uuids

    stamped = client.call(
        "updateBlockForPipeline",
        pb.UpdateBlockForPipelineRequestProto(block=located.b, clientName=WRITER),
    ).block
    assert stamped.b.generationStamp > located.b.generationStamp
    client.call(
        "updatePipeline",
        pb.UpdatePipelineRequestProto(
            clientName=WRITER,
            oldBlock=located.b,
            newBlock=stamped.b,
            newNodes=[info.id for info in more.locs],
            storageIDs=more.storageIDs,
        ),
    )
    writer.last = stamped.b
    more.b.CopyFrom(stamped.b)
    writer.report(more, 7)
    assert writer.complete()
    assert {info.id.datanodeUuid for info in locations(client, writer.path).blocks[0].locs} == set(
        uuids
    )


def test_readers_report_bad_replicas(writer: Writer, client: RpcClient) -> None:
    writer.report(writer.add_block(), 10)
    assert writer.complete()
    block = locations(client, writer.path).blocks[0]
    bad = hdfs_pb2.LocatedBlockProto()
    bad.CopyFrom(block)
    del bad.locs[1:], bad.storageIDs[1:], bad.storageTypes[1:]
    client.call("reportBadBlocks", pb.ReportBadBlocksRequestProto(blocks=[bad]))
    good = locations(client, writer.path).blocks[0].locs
    assert bad.locs[0].id.datanodeUuid not in {info.id.datanodeUuid for info in good}


def test_only_the_holder_of_the_lease_writes(writer: Writer, client: RpcClient) -> None:
    request = pb.AddBlockRequestProto(src=writer.path, clientName="another")
    with pytest.raises(LeaseExpiredException):
        client.call("addBlock", request)


def test_an_erasure_coding_policy_is_refused(client: RpcClient) -> None:
    request = pb.CreateRequestProto(
        src="/file",
        masked=acl_pb2.FsPermissionProto(perm=0o644),
        clientName=WRITER,
        createFlag=pb.CREATE,
        createParent=True,
        replication=3,
        blockSize=128 << 20,
        ecPolicyName="RS-6-3-1024k",
    )
    with pytest.raises(UnsupportedOperationException, match="erasure coding"):
        client.call("create", request)


def test_the_cluster_is_described(client: RpcClient) -> None:
    report = client.call("getDatanodeReport", pb.GetDatanodeReportRequestProto(type=pb.LIVE))
    assert {info.id.datanodeUuid for info in report.di} == {"a", "b", "c", "d"}
    stats = client.call("getFsStats", pb.GetFsStatusRequestProto())
    assert stats.capacity == sum(info.capacity for info in report.di) > 0
    storages = client.call(
        "getDatanodeStorageReport", pb.GetDatanodeStorageReportRequestProto(type=pb.ALL)
    )
    assert len(storages.datanodeStorageReports) == 4
