"""What snapshots take: exact, and as much as deleting them frees."""

from __future__ import annotations

import pytest

from cairnfs.errors import SnapshotException
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.snapshot_space import snapshot_space
from cairnfs.testing.scratch import ScratchClient


def space(fs: ScratchClient, path: str = "/d", *names: str) -> dict[str, tuple[int, int]]:
    found = fs._call(snapshot_space, FsPath.parse(path), names)
    return {each.name.decode(): (each.referenced_bytes, each.exclusive_bytes) for each in found}


def test_space(fs: ScratchClient) -> None:
    fs.write("/d/a", 10, 20)
    fs.write("/d/sub/b", 5)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    assert space(fs) == {"s1": (105, 0)}
    fs.delete("/d/sub", recursive=True)
    assert space(fs) == {"s1": (105, 15)}
    fs.reclaim()
    assert space(fs) == {"s1": (105, 15)}
    fs.create_snapshot("/d", "s2")
    fs.delete("/d/a")
    fs.write("/d/c", 7)
    fs.reclaim()
    assert space(fs) == {"s1": (105, 15), "s2": (90, 0)}
    fs.create_snapshot("/d", "s3")
    fs.truncate("/d/c", 0)
    fs.reclaim()
    assert space(fs) == {"s1": (105, 15), "s2": (90, 0), "s3": (21, 21)}
    fs.delete_snapshot("/d", "s1")
    fs.reclaim()
    assert space(fs, "/d", "s2") == {"s2": (90, 90)}
    with pytest.raises(SnapshotException, match="no snapshot s1"):
        space(fs, "/d", "s1")
    fs.delete_snapshot("/d", "s2")
    fs.delete_snapshot("/d", "s3")


def test_what_a_clone_has_is_not_freed(fs: ScratchClient) -> None:
    fs.write("/d/a", 10)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    fs.clone_snapshot("/d", "s", "/clone")
    fs.delete("/d/a")
    fs.reclaim()
    assert space(fs) == {"s": (30, 0)}
    fs.delete("/clone", recursive=True)
    fs.clock.advance(10_000)
    fs.reclaim()
    assert space(fs) == {"s": (30, 30)}
    fs.delete_snapshot("/d", "s")


def test_replicas_as_many_and_as_long_as_there_are(fs: ScratchClient) -> None:
    fs.write("/d/a", 10)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "three")
    fs.set_replication("/d/a", 1)
    fs.create_snapshot("/d", "one")
    fs.truncate("/d/a", 4)
    fs.delete("/d/a")
    fs.reclaim()
    assert space(fs) == {"three": (30, 20), "one": (10, 0)}
    fs.delete_snapshot("/d", "three")
    fs.reclaim()
    assert space(fs) == {"one": (10, 10)}
    fs.delete_snapshot("/d", "one")
