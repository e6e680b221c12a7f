"""What is left after a DataNode has ended, at whatever moment."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from tests.datanode.client import BlockWriter, read_block, write_block
from tests.datanode.conftest import StartNode
from tests.datanode.faults import DiskDied, DyingDisk
from tests.datanode.namenode import FakeNameNode, reported_blocks

from cairnfs.datanode.disk import Disk
from cairnfs.datanode.replica import Block, Replica, ReplicaState
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.storage import Namespace, StorageLocation, StorageType
from cairnfs.datanode.volumes import Volumes
from cairnfs.wire.checksum import Checksum

BLOCK = Block(1_073_741_825, 1001)
SPACE = Namespace(7, "CID-1", "BP-1", 1)
DATA = os.urandom(3000)


def open_replicas(*paths: Path, disk: Disk | None = None) -> Replicas:
    volumes = Volumes(StorageLocation.parse_list(",".join(map(str, paths))), disk=disk)
    volumes.attach(SPACE)
    replicas = Replicas(volumes)
    replicas.load()
    return replicas


def append(replica: Replica, data: bytes) -> None:
    assert replica.file is not None
    begin = replica.on_disk_bytes
    replica.received_bytes = begin + len(data)
    replica.file.write(begin, memoryview(data), None)
    replica.acked_bytes = replica.received_bytes


def create(replicas: Replicas, block: Block = BLOCK) -> Replica:
    return replicas.create_rbw(block, Checksum(), StorageType.DISK, "", None)


def content(replicas: Replicas, block_id: int = BLOCK.id) -> bytes:
    """All of a replica, which must have right checksums."""
    replica = replicas.get(block_id)
    data = replica.data_path.read_bytes()
    sums = replica.meta_path.read_bytes()[7:]
    assert Checksum().matches(data, sums)
    assert len(data) == replica.received_bytes
    return data


def test_a_restart_keeps_blocks(start_node: StartNode, namenode: FakeNameNode) -> None:
    node = start_node()
    write_block([node], BLOCK, DATA)
    BlockWriter([node], Block(BLOCK.id + 1, 1002)).setup().write(DATA)
    uuid = node.uuid
    node.stop()
    namenode.reports.clear()
    node = start_node()
    assert node.uuid == uuid
    namenode.wait_for(lambda: namenode.reports)
    assert reported_blocks(namenode.reports[0]) == {
        BLOCK.id: (3000, 1001, ReplicaState.FINALIZED),
        BLOCK.id + 1: (3000, 1002, ReplicaState.RWR),
    }
    assert read_block(node, BLOCK, 0, 3000) == DATA
    with pytest.raises(OSError, match="not readable"):
        read_block(node, Block(BLOCK.id + 1, 1002), 0, 3000)


def test_copies_under_way_are_forgotten(tmp_path: Path) -> None:
    replicas = open_replicas(tmp_path)
    replica = replicas.create_temporary(
        BLOCK, Checksum(), StorageType.DISK, "", None, is_transfer=False
    )
    append(replica, DATA)
    replicas.volumes.close()
    replicas = open_replicas(tmp_path)
    assert len(replicas) == 0
    assert not list(replica.directory.iterdir())


@pytest.mark.parametrize(
    ("data_bytes", "sums", "kept"),
    [
        (3000, 6, 3000),
        (3000, 5, 2560),  # checksums lacking
        (2999, 6, 2560),  # the last chunk is not what its checksum says
        (2560, 6, 2560),
        (1000, 6, 512),
        (3000, 0, 0),
        (0, 6, 0),
    ],
)
def test_the_longest_prefix_that_is_right(
    tmp_path: Path, data_bytes: int, sums: int, kept: int
) -> None:
    replicas = open_replicas(tmp_path)
    replica = create(replicas)
    append(replica, DATA)
    os.truncate(replica.data_path, data_bytes)
    os.truncate(replica.meta_path, 7 + 4 * sums)
    replicas.volumes.close()
    replicas = open_replicas(tmp_path)
    assert replicas.get(BLOCK.id).state is ReplicaState.RWR
    assert content(replicas) == DATA[:kept]


def test_data_without_its_checksum_does_not_take_the_chunk_with_it(tmp_path: Path) -> None:
    """A chunk had grown, its checksum not yet: what it was before is kept."""
    replicas = open_replicas(tmp_path)
    replica = create(replicas)
    append(replica, DATA[:700])
    with replica.data_path.open("ab") as file:
        file.write(DATA[700:900])
    replicas.volumes.close()
    assert content(open_replicas(tmp_path)) == DATA[:700]


def test_a_hole_in_the_middle_ends_the_prefix(tmp_path: Path) -> None:
    """A power failure may lose any page, not only the last."""
    replicas = open_replicas(tmp_path)
    replica = create(replicas)
    append(replica, DATA)
    with replica.data_path.open("r+b") as file:
        file.seek(1024)
        file.write(bytes(512))
    replicas.volumes.close()
    assert content(open_replicas(tmp_path)) == DATA[:1024]


def test_a_meta_file_that_is_none_leaves_nothing(tmp_path: Path) -> None:
    replicas = open_replicas(tmp_path)
    replica = create(replicas)
    append(replica, DATA)
    replica.meta_path.write_bytes(b"junk")
    replicas.volumes.close()
    assert open_replicas(tmp_path).get(BLOCK.id).received_bytes == 0


def life_of_a_block(replicas: Replicas, acknowledged: list[int]) -> None:
    """Write, finalize, append, recover, truncate: every change of a replica there is."""
    replica = create(replicas)
    for end in (700, 1500):
        append(replica, DATA[replica.on_disk_bytes : end])
        acknowledged[0] = end
    replicas.finalize(replica)
    replica = replicas.append(BLOCK, 1002, 1500, None)
    append(replica, DATA[1500:2000])
    acknowledged[0] = 2000
    assert replica.file is not None
    replica.file.close()
    replica.file, replica.on_disk_bytes_closed = None, 2000
    replica = replicas.recover_rbw(Block(BLOCK.id, 1002), 1003, 2000, 2000, None)
    append(replica, DATA[2000:3000])
    acknowledged[0] = 3000
    replicas.finalize(replica)
    replicas.init_recovery(Block(BLOCK.id, 1003), 1004)
    acknowledged[0] = 0  # a truncate gives up what was there
    replicas.update_recovered(Block(BLOCK.id, 1003, 3000), 1004, BLOCK.id, 1234)
    acknowledged[0] = 1234


def test_a_crash_at_every_step(tmp_path: Path) -> None:
    """Wherever it happens, what was acknowledged is there after the restart, and right."""
    counting = DyingDisk(0)
    life_of_a_block(open_replicas(tmp_path / "whole", disk=counting), [0])
    assert counting.steps > 20
    for step in range(1, counting.steps + 1):
        path = tmp_path / str(step)
        acknowledged = [0]
        replicas = open_replicas(path, disk=DyingDisk(step))
        with pytest.raises(DiskDied):
            life_of_a_block(replicas, acknowledged)
        replicas.volumes.close()

        replicas = open_replicas(path)
        if acknowledged[0]:
            data = content(replicas)
            assert data == DATA[: len(data)], step
            assert len(data) >= acknowledged[0], step
        elif replicas.find(BLOCK.id) is not None:
            data = content(replicas)
            assert data == DATA[: len(data)], step
        replicas.volumes.close()
        shutil.rmtree(path)


def test_what_is_left_of_a_replica_does_not_hinder_a_new_one(tmp_path: Path) -> None:
    replicas = open_replicas(tmp_path)
    (replicas.volumes.good[0].rbw / f"blk_{BLOCK.id}").write_bytes(b"left over")
    append(create(replicas), DATA)
    assert content(replicas) == DATA


def test_a_newer_replica_on_another_volume_wins(tmp_path: Path) -> None:
    for name, stamp in (("a", 1001), ("b", 1002)):
        replicas = open_replicas(tmp_path / name)
        replica = create(replicas, Block(BLOCK.id, stamp))
        append(replica, DATA)
        replicas.finalize(replica)
        replicas.volumes.close()
    version = tmp_path / "a/current/VERSION"
    uuid_line = next(x for x in version.read_text().splitlines() if x.startswith("datanodeUuid"))
    other = tmp_path / "b/current/VERSION"
    lines = [
        uuid_line if line.startswith("datanodeUuid") else line
        for line in other.read_text().splitlines()
    ]
    other.write_text("\n".join(lines))
    replicas = open_replicas(tmp_path / "a", tmp_path / "b")
    assert replicas.get(BLOCK.id).generation_stamp == 1002
    replicas.volumes.close()


def make_twins(folders: dict[str, Path]) -> None:
    """The same replica on two volumes of a DataNode, which has ended."""
    replicas = open_replicas(*folders.values())
    replica = create(replicas)
    append(replica, DATA)
    replicas.finalize(replica)
    found = replicas.get(BLOCK.id)
    have = found.volume.location.path
    lacks = next(folder for folder in folders.values() if folder != have)
    for path in (found.data_path, found.meta_path):
        copy = lacks / path.relative_to(have)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    replicas.volumes.close()


def data_file(folder: Path) -> Path:
    [path] = folder.rglob(f"blk_{BLOCK.id}")
    return path


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    return {name: tmp_path / name for name in ("a", "b")}


@pytest.mark.parametrize("older", ["a", "b"])
def test_of_two_that_are_the_same_the_younger_is_kept(folders: dict[str, Path], older: str) -> None:
    """A disk that was away comes back, and its replica, which has decayed, was made anew."""
    make_twins(folders)
    rotten = data_file(folders[older])
    rotten.write_bytes(bytes(3000))
    os.utime(rotten, ns=(0, 0))
    replicas = open_replicas(*folders.values())
    assert content(replicas) == DATA
    assert not rotten.exists()
    used = {volume.location.path.name: volume.used_bytes for volume in replicas.volumes.good}
    assert used.pop(older) == 0
    assert sum(used.values()) > 3000
    replicas.volumes.close()


@pytest.mark.parametrize("shorter", ["a", "b"])
def test_of_two_of_one_generation_the_longer_is_kept(
    folders: dict[str, Path], shorter: str
) -> None:
    make_twins(folders)
    cut = data_file(folders[shorter])
    os.truncate(cut, 1024)
    os.truncate(next(cut.parent.glob("*.meta")), 7 + 8)
    replicas = open_replicas(*folders.values())
    assert content(replicas) == DATA
    assert cut.exists()
    replicas.volumes.close()


@pytest.mark.parametrize("older", ["a", "b"])
def test_one_that_cannot_be_removed_does_not_keep_a_node_from_starting(
    folders: dict[str, Path], older: str
) -> None:
    class Stubborn(Disk):
        def unlink(self, path: Path) -> None:
            raise OSError(errno.EIO, "no more")

    make_twins(folders)
    os.utime(data_file(folders[older]), ns=(0, 0))
    replicas = open_replicas(*folders.values(), disk=Stubborn())
    assert content(replicas) == DATA
    assert replicas.get(BLOCK.id).volume.location.path != folders[older]
    replicas.volumes.close()


def test_a_stray_copy_beside_a_replica_is_left_alone(tmp_path: Path) -> None:
    replicas = open_replicas(tmp_path)
    replica = create(replicas)
    append(replica, DATA)
    replicas.finalize(replica)
    found = replicas.get(BLOCK.id)
    stray = found.data_path.parent.parent / "subdir31"
    stray.mkdir()
    for path in (found.data_path, found.meta_path):
        shutil.copy(path, stray)
    replicas.volumes.close()
    replicas = open_replicas(tmp_path)
    assert content(replicas) == DATA
    replicas.volumes.close()
