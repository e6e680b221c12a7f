"""Storage policies on a real cluster: where blocks are put, and where they are brought to."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest
from tests.policies.clusters import (
    MIB,
    types_of,
    wait_for_all,
    wait_for_types,
    wait_until_satisfied,
    write,
)

import cairnfs
from cairnfs.datanode.calls import RpcCaller
from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IllegalArgumentException,
    SnapshotAccessControlException,
)
from cairnfs.network.address import Address
from cairnfs.testing.cluster import Cluster
from cairnfs.testing.ports import HOST
from cairnfs.wire.proto import client_datanode_pb2
from cairnfs.wire.protocols import CLIENT_DATANODE_PROTOCOL

PLACES = {
    "HOT": {"DISK": 3},
    "WARM": {"DISK": 1, "ARCHIVE": 2},
    "COLD": {"ARCHIVE": 3},
    "ALL_SSD": {"SSD": 3},
    "ONE_SSD": {"SSD": 1, "DISK": 2},
    "LAZY_PERSIST": {"DISK": 3},
    "PROVIDED": {"DISK": 3},  # there is no such storage: the fallback
    "ALL_NVDIMM": {"DISK": 3},
}


@pytest.mark.parametrize("policy", PLACES)
def test_new_blocks_are_where_the_policy_wants_them(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str, policy: str
) -> None:
    fs.set_storage_policy(folder, policy)
    fs.mkdirs(f"{folder}/a/b")
    write(fs, f"{folder}/a/b/f", b"x" * (MIB + 1))
    assert types_of(cluster, f"{folder}/a/b/f") == [PLACES[policy]] * 2
    assert fs.get_storage_policy(f"{folder}/a/b/f").name == policy


def test_a_policy_is_told_of_everything_below(fs: cairnfs.FileSystem, folder: str) -> None:
    assert fs.get_storage_policy(folder).name == "HOT"
    assert fs.get_file_status(folder).storage_policy == 0
    fs.mkdirs(f"{folder}/a/b")
    write(fs, f"{folder}/a/f")
    fs.set_storage_policy(f"{folder}/a", "cold")
    assert fs.get_storage_policy(f"{folder}/a/b").name == "COLD"
    assert fs.get_file_status(f"{folder}/a/f").storage_policy == 2
    assert [each.storage_policy for each in fs.list_status(f"{folder}/a")] == [2, 2]
    assert [each.storage_policy for each in fs.list_status(f"{folder}/a/f")] == [2]
    fs.set_storage_policy(folder, "WARM")  # the latest counts, not the nearest
    assert fs.get_storage_policy(f"{folder}/a/b").name == "WARM"
    fs.unset_storage_policy(folder)
    assert fs.get_storage_policy(f"{folder}/a/f").name == "HOT"


def test_blocks_follow_a_policy_that_is_set_and_unset(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    files = [f"{folder}/a/b/f", f"{folder}/a/g", f"{folder}/h"]
    for file in files:
        write(fs, file, b"x" * (MIB + 1))
    fs.set_storage_policy(f"{folder}/a", "COLD")
    wait_for_all(cluster, files[:2], ARCHIVE=3)
    assert types_of(cluster, files[2]) == [{"DISK": 3}] * 2
    fs.set_storage_policy(f"{folder}/a/g", "ONE_SSD")
    wait_for_types(cluster, files[1], SSD=1, DISK=2)
    fs.unset_storage_policy(f"{folder}/a")
    wait_for_all(cluster, files, DISK=3)
    wait_until_satisfied(fs, cluster)
    for file in files:
        with fs.open(file) as opened:
            assert opened.read() == b"x" * (MIB + 1)


def test_what_is_moved_takes_the_policy_of_where_it_comes(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    fs.mkdirs(f"{folder}/cold")
    fs.set_storage_policy(f"{folder}/cold", "COLD")
    write(fs, f"{folder}/d/f")
    write(fs, f"{folder}/g")
    fs.rename(f"{folder}/d", f"{folder}/cold/d")
    fs.rename(f"{folder}/g", f"{folder}/cold/g")
    wait_for_all(cluster, [f"{folder}/cold/d/f", f"{folder}/cold/g"], ARCHIVE=3)
    fs.rename(f"{folder}/cold/d", f"{folder}/d")
    wait_for_types(cluster, f"{folder}/d/f", DISK=3)


def test_a_policy_below_is_gone_when_its_directory_is_moved(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    """Where it comes from and where it goes have the same policy; what is below has not."""
    fs.mkdirs(f"{folder}/a/b")
    fs.set_storage_policy(f"{folder}/a/b", "ALL_SSD")
    write(fs, f"{folder}/a/b/f")
    assert types_of(cluster, f"{folder}/a/b/f") == [{"SSD": 3}]
    fs.rename(f"{folder}/a", f"{folder}/c")
    assert fs.get_storage_policy(f"{folder}/c/b/f").name == "HOT"
    wait_for_types(cluster, f"{folder}/c/b/f", DISK=3)


def test_a_roll_back_brings_blocks_back(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    write(fs, f"{folder}/a/f")
    fs.allow_snapshot(folder)
    fs.create_snapshot(folder, "s")
    fs.set_storage_policy(folder, "COLD")
    wait_for_types(cluster, f"{folder}/a/f", ARCHIVE=3)
    assert fs.get_storage_policy(f"{folder}/.snapshot/s/a/f").name == "HOT"
    with fs.open(f"{folder}/.snapshot/s/a/f") as file:
        assert file.read() == b"x" * 1000
    fs.rollback_snapshot(folder, "s")
    assert fs.get_storage_policy(f"{folder}/a/f").name == "HOT"
    wait_for_types(cluster, f"{folder}/a/f", DISK=3)
    for snapshot in fs.list_snapshots(folder):
        fs.delete_snapshot(folder, snapshot.status.path.rsplit("/", 1)[1])
    fs.disallow_snapshot(folder)


def test_blocks_that_a_clone_shares_are_where_the_original_needs_them(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    write(fs, f"{folder}/a/f")
    fs.allow_snapshot(f"{folder}/a")
    fs.create_snapshot(f"{folder}/a", "s")
    fs.clone_snapshot(f"{folder}/a", "s", f"{folder}/b")
    fs.set_storage_policy(f"{folder}/b", "COLD")
    wait_until_satisfied(fs, cluster)
    assert types_of(cluster, f"{folder}/a/f") == [{"DISK": 3}]
    fs.delete_snapshot(f"{folder}/a", "s")
    fs.disallow_snapshot(f"{folder}/a")


def test_what_snapshots_have_of_a_deleted_file_stays(
    cluster: Cluster, fs: cairnfs.FileSystem, folder: str
) -> None:
    write(fs, f"{folder}/f")
    fs.allow_snapshot(folder)
    fs.create_snapshot(folder, "s")
    fs.delete(f"{folder}/f")
    fs.set_storage_policy(folder, "COLD")
    write(fs, f"{folder}/g")
    wait_until_satisfied(fs, cluster)
    assert types_of(cluster, f"{folder}/g") == [{"ARCHIVE": 3}]
    assert types_of(cluster, f"{folder}/.snapshot/s/f") == [{"DISK": 3}]
    with fs.open(f"{folder}/.snapshot/s/f") as file:
        assert file.read() == b"x" * 1000
    fs.delete_snapshot(folder, "s")
    fs.disallow_snapshot(folder)


def test_mistakes(cluster: Cluster, fs: cairnfs.FileSystem, folder: str) -> None:
    write(fs, f"{folder}/f")
    with pytest.raises(HadoopIllegalArgumentException, match="name LUKEWARM"):
        fs.set_storage_policy(folder, "LUKEWARM")
    for call in (fs.unset_storage_policy, fs.get_storage_policy, fs.satisfy_storage_policy):
        with pytest.raises(FileNotFoundException, match=f"does not exist: {folder}/none"):
            call(f"{folder}/none")
    with pytest.raises(FileNotFoundException, match=f"does not exist: {folder}/none"):
        fs.set_storage_policy(f"{folder}/none", "COLD")
    with pytest.raises(HadoopIllegalArgumentException, match="cannot be set after file creation"):
        fs.set_storage_policy(f"{folder}/f", "LAZY_PERSIST")
    fs.allow_snapshot(folder)
    fs.create_snapshot(folder, "s")
    with pytest.raises(SnapshotAccessControlException):
        fs.set_storage_policy(f"{folder}/.snapshot/s/f", "COLD")
    fs.delete_snapshot(folder, "s")
    fs.disallow_snapshot(folder)
    with (
        cairnfs.connect(cluster.uri, user="somebody") as other,
        pytest.raises(AccessControlException, match="user=somebody, access=WRITE"),
    ):
        other.set_storage_policy(folder, "COLD")


def test_how_fast_replicas_move_is_told_to_datanodes(
    cluster: Cluster, fs: cairnfs.FileSystem
) -> None:
    def bandwidths() -> set[int]:
        found = set()
        for node in cluster.datanodes:
            caller = RpcCaller(
                Address(HOST, node.ipc_port), CLIENT_DATANODE_PROTOCOL, getpass.getuser()
            )
            request = client_datanode_pb2.GetBalancerBandwidthRequestProto()
            answer = caller.call("getBalancerBandwidth", request)
            caller.close()
            assert isinstance(answer, client_datanode_pb2.GetBalancerBandwidthResponseProto)
            found.add(answer.bandwidth)
        return found

    assert bandwidths() == {100 << 20}
    fs.set_balancer_bandwidth(50 << 20)
    cluster.wait_until(lambda: bandwidths() == {50 << 20}, "all know the new bandwidth")
    with pytest.raises(IllegalArgumentException, match="Bandwidth 0 is not"):
        fs.set_balancer_bandwidth(0)
    with (
        cairnfs.connect(cluster.uri, user="somebody") as other,
        pytest.raises(AccessControlException, match="Superuser privilege is required"),
    ):
        other.set_balancer_bandwidth(1)


def test_a_lazy_file_is_in_memory_first(tmp_path: Path) -> None:
    """On the DataNode that its writer is next to; others, and those without memory, use disks."""
    with (
        Cluster(
            tmp_path / "cluster",
            storage_types=("RAM_DISK", "DISK"),
            datanode_options=("--lazy-persist-interval", "3600"),
        ) as cluster,
        cairnfs.connect(cluster.uri) as fs,
    ):
        fs.mkdirs("/lazy")
        fs.set_storage_policy("/lazy", "LAZY_PERSIST")
        write(fs, "/lazy/f", b"x" * (MIB + 1))
        write(fs, "/usual")
        assert types_of(cluster, "/lazy/f") == [{"RAM_DISK": 1, "DISK": 2}] * 2
        assert types_of(cluster, "/usual") == [{"DISK": 3}]
        for node in cluster.datanodes:  # which takes what is in memory to disk sooner
            node.stop()
            node.start("--lazy-persist-interval", "0.5")
        wait_for_types(cluster, "/lazy/f", DISK=3)
        with fs.open("/lazy/f") as file:
            assert file.read() == b"x" * (MIB + 1)
