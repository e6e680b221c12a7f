"""Snapshots of a file that is appended to and cut, while processes of the cluster are killed."""

from __future__ import annotations

import random
import socket

import cairnfs
from cairnfs.testing.cluster import Cluster, Node
from cairnfs.testing.ports import HOST

MIB = 1 << 20
HEAL_LIMIT_S = 60.0


def read(fs: cairnfs.FileSystem, path: str) -> bytes:
    with fs.open(path) as file:
        data: bytes = file.read()
    return data


def check(fs: cairnfs.FileSystem, data: bytes, snapshots: dict[str, bytes]) -> None:
    assert read(fs, "/d/f") == data
    for name, expected in snapshots.items():
        assert read(fs, f"/d/.snapshot/{name}/f") == expected, name


def start(cluster: Cluster, node: Node) -> None:
    """Start a DataNode; the NameNode may not have noticed yet that it was gone."""

    def serves() -> bool:
        socket.create_connection((HOST, node.port), timeout=1).close()
        return True

    node.start()
    cluster.wait_until(serves, f"{node.name} serves")


def test_nodes_are_killed_between_and_under_appends_and_truncates(cluster: Cluster) -> None:
    chooser = random.Random(1)
    data = chooser.randbytes(600_000)
    snapshots: dict[str, bytes] = {}
    with cairnfs.connect(cluster.uri) as fs:
        fs.mkdirs("/d")
        fs.allow_snapshot("/d")
        with fs.create("/d/f", replication=3, block_size=MIB) as file:
            file.write(data)
        for number, step in enumerate("ATTAATA"):
            name = f"s{number}"
            fs.create_snapshot("/d", name)
            snapshots[name] = data
            if step == "T":
                data = data[:-70_001]
                fs.truncate("/d/f", len(data))
                cluster.wait_until(lambda: fs.is_file_closed("/d/f"), "it is cut")
            else:
                more = chooser.randbytes(90_001)
                with fs.append("/d/f") as file:
                    file.write(more)
                data += more
            victim = cluster.datanodes[number % 3]
            victim.kill()
            check(fs, data, snapshots)
            start(cluster, victim)
            check(fs, data, snapshots)

        # A writer, and the machine it writes through, lose power together.
        writer = fs.append("/d/f")
        writer.write(b"synced" * 1000)
        writer.hsync(update_length=True)
        data += b"synced" * 1000
        fs.create_snapshot("/d", "open")
        snapshots["open"] = data
        for node in cluster.datanodes:
            node.kill()
        cluster.namenodes[0].kill()
        writer.abort()
        cluster.namenodes[0].start()
        cluster.wait_for_namenode(cluster.namenodes[0])
        for node in cluster.datanodes:
            start(cluster, node)
        cluster.wait_for_datanodes(3)
        cluster.wait_until(lambda: bool(fs.recover_lease("/d/f")), "it is closed", HEAL_LIMIT_S)
        check(fs, data, snapshots)
        for name in list(snapshots):
            fs.delete_snapshot("/d", name)
            del snapshots[name]
            check(fs, data, snapshots)
