"""What tests of storage policies ask of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import cairnfs
from cairnfs.testing.cluster import Cluster

TYPES = ("DISK", "SSD", "ARCHIVE")
FOLDERS = (*TYPES, "RAM_DISK")
MIB = 1 << 20
MOVE_LIMIT_S = 120.0


def write(
    fs: cairnfs.FileSystem, path: str, data: bytes = b"x" * 1000, *, replication: int = 3
) -> None:
    with fs.create(path, replication=replication, block_size=MIB) as file:
        file.write(data)


def types_of(cluster: Cluster, path: str) -> list[dict[str, int]]:
    """On what the replicas of each block are, as NameNodes tell clients."""
    return [dict(types) for types in cluster.storage_types_of(path)]


def types_on_disk(cluster: Cluster, path: str) -> Counter[str]:
    """The same as files tell it: the directories of the types are named so."""
    ids = {block.b.blockId for block in cluster.located_blocks(path)}
    found: Counter[str] = Counter()
    for node in cluster.datanodes:
        for type in FOLDERS:
            for file in (cluster.directory / node.name / type).rglob("blk_*"):
                if (
                    "finalized" in file.parts
                    and file.name[4:].isdigit()
                    and int(file.name[4:]) in ids
                ):
                    found[type] += 1
    return found


def wait_for_types(cluster: Cluster, path: str, **expected: int) -> None:
    """Until the replicas of every block are on just these types, and no file is left elsewhere."""

    def are_there() -> bool:
        found = types_of(cluster, path)
        total = Counter(expected)
        for type in total:
            total[type] *= len(found)
        return all(each == expected for each in found) and types_on_disk(cluster, path) == total

    cluster.wait_until(are_there, f"{path} is on {expected}", MOVE_LIMIT_S)


def wait_until_satisfied(
    fs: cairnfs.FileSystem, cluster: Cluster, limit_s: float = MOVE_LIMIT_S
) -> None:
    cluster.wait_until(
        lambda: fs.storage_policy_work().is_done, "the satisfier has nothing to do", limit_s
    )


def wait_for_all(cluster: Cluster, paths: Iterable[str], **expected: int) -> None:
    for path in paths:
        wait_for_types(cluster, path, **expected)
