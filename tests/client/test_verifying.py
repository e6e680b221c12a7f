"""Every replica is read, from each DataNode; what is bad is told, and replaced if it can be."""

from __future__ import annotations

from pathlib import Path

from tests.client.conftest import MakeCluster
from tests.client.files import MIB, content

import cairnfs
from cairnfs.testing.cluster import Cluster

QUIET = ("--scan-rate", "0")  # DataNodes that do not look for damage by themselves


def replica(cluster: Cluster, path: str, block: int, at: int) -> Path:
    """The file of a replica."""
    place = cluster.replica_places(path)[block][at]
    return cluster.replica_files(cluster.datanode_at(place.port))[place.block_id]


def change_a_byte(replica: Path) -> None:
    """As a disk that decays."""
    with replica.open("r+b") as stream:
        byte = stream.read(1)
        stream.seek(0)
        stream.write(bytes([byte[0] ^ 1]))


def wait_for_replicas(cluster: Cluster, path: str, count: int) -> None:
    cluster.wait_until(
        lambda: all(len(places) == count for places in cluster.replica_places(path)),
        f"{path} has {count} replicas",
    )


def test_what_is_bad_is_replaced(make_cluster: MakeCluster) -> None:
    """A replica whose bytes have changed, and one that is not there any more."""
    cluster = make_cluster(datanodes=3, datanode_options=QUIET)
    with cairnfs.connect(cluster.uri) as fs:
        with fs.create("/file", replication=3, block_size=MIB) as file:
            file.write(content(2 * MIB + 10))
        wait_for_replicas(cluster, "/file", 3)
        paces: list[int] = []
        checks = fs.verify_replicas("/file", pace=paces.append)
        assert [(each.offset_bytes, each.good, each.bad) for each in checks] == [
            (0, 3, []),
            (MIB, 3, []),
            (2 * MIB, 3, []),
        ]
        assert sum(each.good_bytes for each in checks) == 3 * (2 * MIB + 10)
        assert sum(paces) >= 3 * (2 * MIB + 10)

        change_a_byte(replica(cluster, "/file", 0, 1))
        replica(cluster, "/file", 1, 2).unlink()
        (first, second) = fs.verify_replicas("/file", 0, 2 * MIB)
        assert (first.good, [each.kind for each in first.bad]) == (2, ["corrupt"])
        assert first.is_reported
        # Its DataNode notices, too, and may have said so already.
        assert second.good == 2
        assert [each.kind for each in second.bad] in ([], ["unreadable"])

        def is_repaired() -> bool:
            return all(each.good == 3 and not each.bad for each in fs.verify_replicas("/file"))

        cluster.wait_until(is_repaired, "bad replicas are replaced")


def test_what_cannot_be_judged_is_left(make_cluster: MakeCluster) -> None:
    """A DataNode that does not answer; a block without a good replica; one being written."""
    cluster = make_cluster(datanodes=2, datanode_options=QUIET, dead_after_s=600.0)
    with cairnfs.connect(cluster.uri) as fs:
        with fs.create("/file", replication=2) as file:
            file.write(content(1000))
        wait_for_replicas(cluster, "/file", 2)
        with fs.create("/open", replication=2) as file:
            file.write(b"1")
            file.flush()
            assert fs.verify_replicas("/open") == []
        (gone, kept) = (
            cluster.datanode_at(place.port) for place in cluster.replica_places("/file")[0]
        )
        gone.kill()
        block = cluster.replica_places("/file")[0][0].block_id
        change_a_byte(cluster.replica_files(kept)[block])
        (check,) = fs.verify_replicas("/file")
        assert {each.datanode: each.kind for each in check.bad} == {
            gone.address: "unreachable",
            kept.address: "corrupt",
        }
        assert (check.good, check.is_reported) == (0, False)
        (location,) = fs.get_block_locations("/file")
        assert not location.is_corrupt
