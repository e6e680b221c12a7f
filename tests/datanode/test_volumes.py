"""Directories: whose they are, how much room they have, what happens when they fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.datanode.client import BlockWriter, read_block, write_block
from tests.datanode.conftest import StartNode
from tests.datanode.faults import FaultyDisk
from tests.datanode.namenode import FakeNameNode, reported_blocks

from cairnfs.datanode.errors import (
    DiskErrorException,
    DiskOutOfSpaceException,
    InconsistentFSStateException,
)
from cairnfs.datanode.replica import Block
from cairnfs.datanode.storage import LAYOUT_VERSION, Namespace, StorageLocation, StorageType
from cairnfs.datanode.volumes import Volume, Volumes

BLOCK = Block(1_073_741_825, 1001)
SPACE = Namespace(7, "CID-1", "BP-1", 1)


@pytest.mark.parametrize(
    ("text", "path", "storage_type"),
    [
        ("/a/b", "/a/b", StorageType.DISK),
        ("[SSD]/a", "/a", StorageType.SSD),
        ("[ssd]file:///a", "/a", StorageType.SSD),
        (" [ARCHIVE]/a/ ", "/a", StorageType.ARCHIVE),
        ("[RAM_DISK]/a", "/a", StorageType.RAM_DISK),
    ],
)
def test_locations(text: str, path: str, storage_type: StorageType) -> None:
    assert StorageLocation.parse(text) == StorageLocation(Path(path), storage_type)


def test_a_storage_type_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="no storage type 'TAPE'; there are DISK, SSD"):
        StorageLocation.parse("[TAPE]/a")


def test_one_directory_twice(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(ValueError, match="are the same directory"):
        Volumes(StorageLocation.parse_list(f"{tmp_path}/a,[SSD]{tmp_path}/b"))


def test_a_directory_in_use(tmp_path: Path) -> None:
    locations = StorageLocation.parse_list(str(tmp_path))
    first = Volumes(locations)
    with pytest.raises(InconsistentFSStateException, match=f"in use by .* \\({os.getpid()}@"):
        Volumes(locations)
    first.close()
    Volumes(locations).close()


def test_identity_is_kept(tmp_path: Path) -> None:
    locations = StorageLocation.parse_list(f"{tmp_path}/a,{tmp_path}/b")
    found = []
    for _ in range(2):
        volumes = Volumes(locations)
        found.append((volumes.attach(SPACE), [each.storage_id for each in volumes.good]))
        volumes.close()
    assert found[0] == found[1]
    version = (tmp_path / "a/current/VERSION").read_text()
    for line in ("storageType=DATA_NODE", "clusterID=CID-1", f"layoutVersion={LAYOUT_VERSION}"):
        assert line in version.splitlines()


def test_directories_of_two_datanodes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        volumes = Volumes(StorageLocation.parse_list(str(tmp_path / name)))
        volumes.attach(SPACE)
        volumes.close()
    volumes = Volumes(StorageLocation.parse_list(f"{tmp_path}/a,{tmp_path}/b"))
    with pytest.raises(InconsistentFSStateException, match="different DataNodes"):
        volumes.attach(SPACE)
    volumes.close()


def test_blocks_are_where_hadoop_puts_them(tmp_path: Path) -> None:
    volume = Volume(StorageLocation(tmp_path))
    volume.attach(SPACE, "u")
    expected = tmp_path / "current/BP-1/current/finalized/subdir1/subdir2"
    assert volume.finalized_directory(0x40010203) == expected
    volume.close()


def test_volumes_take_turns_by_type(tmp_path: Path) -> None:
    volumes = Volumes(
        StorageLocation.parse_list(f"{tmp_path}/a,{tmp_path}/b,[SSD]{tmp_path}/c"),
        disk=FaultyDisk(),
    )
    volumes.attach(SPACE)
    disks = {volumes.choose(StorageType.DISK, "", 1).location.path.name for _ in range(4)}
    assert disks == {"a", "b"}
    ssd = volumes.choose(StorageType.SSD, "", 1)
    assert ssd.location.path.name == "c"
    wanted = volumes.good[0]
    assert all(volumes.choose(StorageType.DISK, wanted.storage_id, 1) is wanted for _ in range(3))
    with pytest.raises(DiskOutOfSpaceException, match="No more available volumes"):
        volumes.choose(StorageType.ARCHIVE, "", 1)
    volumes.close()


def test_a_full_volume_is_passed_over(tmp_path: Path) -> None:
    disk = FaultyDisk()
    volumes = Volumes(
        StorageLocation.parse_list(f"{tmp_path}/a,{tmp_path}/b"), reserved_bytes=1000, disk=disk
    )
    volumes.attach(SPACE)
    disk.free = {tmp_path / "a": 1500, tmp_path / "b": 5000}
    for _ in range(4):
        assert volumes.choose(StorageType.DISK, "", 1000).location.path.name == "b"
    volumes.good[1].promise(3500)
    with pytest.raises(DiskOutOfSpaceException, match=r"most available space \(=500 B\)"):
        volumes.choose(StorageType.DISK, "", 1000)
    volumes.close()


def test_a_volume_takes_no_more_than_its_share_of_the_disk(tmp_path: Path) -> None:
    disk = FaultyDisk()
    volumes = Volumes(StorageLocation.parse_list(f"{tmp_path}/a"), limit_bytes=4000, disk=disk)
    volumes.attach(SPACE)
    (volume,) = volumes.good
    disk.free = {tmp_path / "a": 100_000}
    assert volume.capacity_bytes == volume.available_bytes() == 4000
    volume.add_used(3000)
    volume.promise(500)
    assert volume.available_bytes() == 500
    disk.free = {tmp_path / "a": 600}
    assert volume.available_bytes() == 100
    volume.add_used(2000)
    assert volume.available_bytes() == 0
    volumes.close()


def test_no_room_for_a_block_is_told_before_it_is_sent(
    start_node: StartNode, tmp_path: Path
) -> None:
    disk = FaultyDisk()
    node = start_node(disk=disk)
    disk.free = {tmp_path / "dn": 1 << 20}
    with pytest.raises(OSError, match=r"closed|reset"):
        BlockWriter([node], BLOCK).setup()
    assert node.replicas.find(BLOCK.id) is None
    assert not node.volumes.failed


def test_a_disk_that_fills_up_while_writing(start_node: StartNode, tmp_path: Path) -> None:
    """The writer loses this DataNode; what was acknowledged stays, the volume too."""
    disk = FaultyDisk()
    node = start_node(disk=disk)
    writer = BlockWriter([node], BLOCK).setup()
    writer.write(b"x" * 1024)
    disk.full = {tmp_path / "dn"}
    writer.send(b"y" * 1024)
    with pytest.raises(OSError, match=r"closed|reset"):
        writer.ack()
    assert not node.volumes.failed
    assert read_block(node, BLOCK, 0, 1024) == b"x" * 1024


def test_a_volume_that_fails_while_writing(
    start_node: StartNode, namenode: FakeNameNode, tmp_path: Path
) -> None:
    disk = FaultyDisk()
    node = start_node(data=f"{tmp_path}/a,[SSD]{tmp_path}/b", disk=disk, failed_volumes_tolerated=1)
    write_block([node], BLOCK, b"x" * 1000)
    writer = BlockWriter([node], Block(BLOCK.id + 1, 1002)).setup()
    disk.failed = {tmp_path / "a"}
    writer.send(b"y" * 1000)
    with pytest.raises(OSError, match=r"closed|reset"):
        writer.ack()
    namenode.wait_for(lambda: namenode.heartbeats[-1].failedVolumes == 1)
    heartbeat = namenode.heartbeats[-1]
    assert heartbeat.volumeFailureSummary.failedStorageLocations == [str(tmp_path / "a")]
    assert len(heartbeat.reports) == 1
    namenode.wait_for(lambda: len(namenode.reports[-1].reports) == 1)
    assert reported_blocks(namenode.reports[-1]) == {}
    assert node.replicas.find(BLOCK.id) is None
    assert not node.stopped.is_set()


def test_a_volume_that_cannot_be_used_from_the_beginning(
    start_node: StartNode, namenode: FakeNameNode, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("not a directory")
    both = f"{tmp_path}/a,{tmp_path}/b"
    with pytest.raises(DiskErrorException, match="cannot be used"):
        start_node(data=both)
    node = start_node(data=both, failed_volumes_tolerated=1)
    namenode.wait_for(lambda: namenode.heartbeats and namenode.heartbeats[-1].failedVolumes == 1)
    write_block([node], BLOCK, b"x")


def test_too_many_failed_volumes_end_the_datanode(start_node: StartNode, tmp_path: Path) -> None:
    disk = FaultyDisk()
    node = start_node(disk=disk)
    disk.failed = {tmp_path / "dn"}
    assert not node.volumes.check(node.volumes.good[0])
    assert node.stopped.wait(10)
    assert node.failure == "1 volumes have failed; 0 are tolerated"
