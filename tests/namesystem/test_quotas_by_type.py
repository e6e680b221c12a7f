"""What storage policies charge of each storage type, and the quotas that limit it.

Whatever a test leaves, `scratch_namespace` compares the totals of all directories with a walk.
"""

from __future__ import annotations

import random

import pytest

from cairnfs.blocks.records import StorageType
from cairnfs.errors import HdfsError, QuotaByStorageTypeExceededException
from cairnfs.namesystem import storage_policies
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.satisfying import scan_subtree
from cairnfs.store.base import Reading, Scan
from cairnfs.store.schema import NUMBER, Table
from cairnfs.testing.invariants import check_invariants
from cairnfs.testing.scratch import ScratchClient

MIB = 1024 * 1024
NONE = {"SSD": 0, "DISK": 0, "ARCHIVE": 0, "PROVIDED": 0, "NVDIMM": 0}


def set_policy(fs: ScratchClient, path: str, name: str | None) -> None:
    namenode, where = fs.namenode.namenode, FsPath.parse(path)
    if name is None:
        fs.namenode.wait(namenode.call(storage_policies.unset_storage_policy, fs.caller, where))
    else:
        fs.namenode.wait(namenode.call(storage_policies.set_storage_policy, fs.caller, where, name))


def scan(fs: ScratchClient) -> None:
    """What the satisfier does about subtrees."""
    namenode, asked = fs.namenode.namenode, Scan(Table.POLICY_SCANS, 0, b"", 100)
    while rows := fs.namenode.wait(namenode.store.read(Reading(scans=[asked]))).scans[asked]:
        for row in rows:
            (inode_id,) = NUMBER.unpack(row.key[2])
            fs.namenode.wait(namenode.call(scan_subtree, inode_id))


def used(fs: ScratchClient, path: str) -> dict[str, int]:
    """By types, in MiB; both calls agree."""
    usage, summary = fs.get_quota_usage(path), fs.get_content_summary(path)
    assert usage.type_bytes == summary.type_bytes
    assert usage.space_bytes == summary.space_bytes == sum(usage.type_bytes)
    return {
        name: number // MIB for name, number in zip(NONE, usage.type_bytes, strict=True) if number
    }


def write(fs: ScratchClient, path: str, mib: int = 1, replication: int = 3) -> None:
    fs.write(path, *[MIB] * mib, replication=replication, block_size_bytes=MIB)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("HOT", {"DISK": 3}),
        ("WARM", {"DISK": 1, "ARCHIVE": 2}),
        ("COLD", {"ARCHIVE": 3}),
        ("ALL_SSD", {"SSD": 3}),
        ("ONE_SSD", {"SSD": 1, "DISK": 2}),
        ("ALL_NVDIMM", {"NVDIMM": 3}),
        ("PROVIDED", {"PROVIDED": 1, "DISK": 2}),
        ("LAZY_PERSIST", {"DISK": 3}),
    ],
)
def test_a_file_is_charged_by_its_policy(
    fast_fs: ScratchClient, policy: str, expected: dict[str, int]
) -> None:
    fs = fast_fs
    fs.mkdirs("/d/e")
    set_policy(fs, "/d", policy)
    write(fs, "/d/e/f")
    for path in ("/", "/d", "/d/e", "/d/e/f"):
        assert used(fs, path) == expected
    fs.delete("/d/e/f")
    assert used(fs, "/") == {}


def test_a_quota_limits_its_type_alone(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_quota("/d", space_quota_bytes=4 * MIB, storage_type=StorageType.SSD)
    write(fs, "/d/disk", 9)
    set_policy(fs, "/d", "ONE_SSD")
    scan(fs)
    assert used(fs, "/d") == {"SSD": 9, "DISK": 18}  # more than there may be; but no more is added
    fs.create("/d/f", block_size_bytes=MIB)
    with pytest.raises(
        QuotaByStorageTypeExceededException,
        match=r"Quota by storage type : SSD on path : /d is exceeded\. quota = 4 MB but space"
        " consumed = 10 MB",
    ):
        fs.add_block("/d/f")
    fs.delete("/d/disk")
    assert fs.complete("/d/f", fs.write_blocks("/d/f", MIB, MIB, MIB, MIB))
    fs.append("/d/f", to_new_block=True)
    with pytest.raises(QuotaByStorageTypeExceededException):
        fs.add_block("/d/f")
    fs.complete("/d/f")
    set_policy(fs, "/d", "HOT")
    fs.create("/d/g", block_size_bytes=MIB)
    assert fs.complete("/d/g", fs.write_blocks("/d/g", MIB))


def test_an_open_block_is_reserved_on_its_types(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    set_policy(fs, "/d", "COLD")
    fs.set_quota("/d", space_quota_bytes=3 * MIB, storage_type=StorageType.ARCHIVE)
    fs.create("/d/f", block_size_bytes=MIB)
    block = fs.add_block("/d/f").block
    assert used(fs, "/d") == {"ARCHIVE": 3}
    fs.create("/d/g", block_size_bytes=MIB)
    with pytest.raises(QuotaByStorageTypeExceededException):
        fs.add_block("/d/g")
    fs.abandon_block("/d/f", block)
    assert used(fs, "/d") == {}
    fs.add_block("/d/g")


def test_a_policy_that_changes_is_charged_when_files_are_looked_at(fs: ScratchClient) -> None:
    for n in range(3):
        write(fs, f"/d/{n}/f")
    set_policy(fs, "/d", "ALL_SSD")
    assert used(fs, "/d") == {"DISK": 9}  # as they were
    scan(fs)
    assert used(fs, "/d") == {"SSD": 9}
    set_policy(fs, "/d/1/f", "COLD")
    scan(fs)
    assert used(fs, "/d") == {"SSD": 6, "ARCHIVE": 3}
    set_policy(fs, "/d", None)
    scan(fs)
    assert used(fs, "/") == {"DISK": 9}


def test_a_file_that_grows_is_charged_by_what_holds_now(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.create("/d/f", block_size_bytes=MIB)
    last = fs.write_blocks("/d/f", MIB)
    set_policy(fs, "/d", "ALL_SSD")
    fs.add_block("/d/f", last)
    assert used(fs, "/d") == {"SSD": 6}


def test_what_is_moved_keeps_its_charge_until_it_is_looked_at(fs: ScratchClient) -> None:
    fs.mkdirs("/cold")
    set_policy(fs, "/cold", "COLD")
    write(fs, "/hot/d/f")
    fs.rename("/hot/d", "/cold/d")
    assert (used(fs, "/hot"), used(fs, "/cold")) == ({}, {"DISK": 3})
    scan(fs)
    assert used(fs, "/cold") == {"ARCHIVE": 3}
    fs.rename("/cold/d/f", "/hot/f")
    scan(fs)
    assert (used(fs, "/hot"), used(fs, "/cold")) == ({"DISK": 3}, {})


def test_replication_truncate_append_and_concat(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    set_policy(fs, "/d", "ONE_SSD")
    write(fs, "/d/f", 2)
    fs.set_replication("/d/f", 5)
    assert used(fs, "/d") == {"SSD": 2, "DISK": 8}
    fs.set_replication("/d/f", 1)
    assert used(fs, "/d") == {"SSD": 2}
    fs.truncate("/d/f", MIB)
    assert used(fs, "/d") == {"SSD": 1}
    fs.append("/d/f", to_new_block=True)
    assert fs.complete("/d/f", fs.write_blocks("/d/f", MIB))
    assert used(fs, "/d") == {"SSD": 2}


def test_concat_brings_everything_to_the_policy_of_the_target(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    write(fs, "/d/a")
    write(fs, "/d/b", 2)
    write(fs, "/d/c", 3, replication=1)
    set_policy(fs, "/d/b", "COLD")
    set_policy(fs, "/d/c", "ALL_SSD")
    scan(fs)
    assert used(fs, "/d") == {"DISK": 3, "ARCHIVE": 6, "SSD": 3}
    fs.concat("/d/a", ["/d/b", "/d/c"])
    assert used(fs, "/d") == {"DISK": 18}
    asked = Scan(Table.POLICY_SCANS, 0, b"", 10)
    store = fs.namenode.namenode.store
    assert len(fs.namenode.wait(store.read(Reading(scans=[asked]))).scans[asked]) == 1
    scan(fs)
    placements = Scan(Table.PLACEMENTS, 0, b"", 10)
    assert len(fs.namenode.wait(store.read(Reading(scans=[placements]))).scans[placements]) == 6


def test_snapshots_clones_and_roll_backs_are_charged_as_they_were(fs: ScratchClient) -> None:
    fs.mkdirs("/d/e")
    fs.mkdirs("/copies")
    set_policy(fs, "/d", "COLD")
    write(fs, "/d/e/f")
    fs.create("/d/open", block_size_bytes=MIB)
    fs.add_block("/d/open")
    fs.create("/d/flushed", block_size_bytes=MIB)
    fs.add_block("/d/flushed")
    fs.fsync("/d/flushed", MIB // 2)
    fs.create("/hot", block_size_bytes=MIB)
    fs.add_block("/hot")
    fs.allow_snapshot("/d")
    fs.allow_snapshot("/")
    fs.create_snapshots(["/d", "/"], "s")
    assert used(fs, "/d") == {"ARCHIVE": 9}
    set_policy(fs, "/d", "ALL_SSD")
    scan(fs)
    assert used(fs, "/d") == {"SSD": 9}
    assert used(fs, "/d/.snapshot/s") == {"ARCHIVE": 9}
    fs.clone_snapshot("/d", "s", "/copies/d")
    # What was being written is charged in full, until it changes.
    assert used(fs, "/copies") == {"ARCHIVE": 9}
    fs.set_permission("/copies/d/open", 0o600)  # which gives it a row
    fs.truncate("/copies/d/flushed", MIB // 4)
    assert used(fs, "/copies") == {"ARCHIVE": 6}
    fs.delete("/copies/d/open")
    assert fs.get_quota_usage("/copies").type_bytes[2] == 3 * MIB + 3 * MIB // 4
    fs.rollback_snapshot("/d", "s", "before")
    assert used(fs, "/d") == {"ARCHIVE": 9}
    fs.delete("/d/flushed")
    fs.delete("/d/e", recursive=True)
    fs.delete("/d/open")
    assert used(fs, "/d") == {}
    for name in ("s", "before"):
        fs.delete_snapshot("/d", name)
    fs.delete_snapshot("/", "s")
    fs.disallow_snapshot("/d")
    fs.disallow_snapshot("/")
    fs.reclaim()


@pytest.mark.parametrize("seed", range(4))
def test_totals_equal_a_walk_whatever_happens(fast_fs: ScratchClient, seed: int) -> None:
    fs, chance = fast_fs, random.Random(seed)
    directories = ["/a", "/b", "/a/x", "/b/y"]
    for directory in directories:
        fs.mkdirs(directory)
    fs.allow_snapshot("/a")
    policies = ["HOT", "COLD", "ALL_SSD", "ONE_SSD", "WARM", None]
    snapshots = 0
    for step in range(120):
        path = f"{chance.choice(directories)}/f{chance.randrange(4)}"
        other = f"{chance.choice(directories)}/f{chance.randrange(4)}"
        kind = chance.randrange(11)
        try:
            if kind < 3:
                fs.create(path, overwrite=True, block_size_bytes=MIB, replication=1 + kind)
                last = fs.write_blocks(path, *[MIB] * chance.randrange(3))
                if chance.random() < 0.8:
                    fs.complete(path, last)
            elif kind == 3:
                set_policy(fs, chance.choice((*directories, path)), chance.choice(policies))
            elif kind == 4:
                scan(fs)
            elif kind == 5:
                fs.rename(path, other)
            elif kind == 6:
                fs.set_replication(path, chance.randint(1, 4))
            elif kind == 7:
                fs.truncate(path, chance.randrange(MIB))
            elif kind == 8:
                fs.delete(path)
            elif kind == 9:
                snapshots += 1
                fs.create_snapshot("/a", f"s{snapshots}")
            elif snapshots:
                name = f"s{chance.randint(1, snapshots)}"
                if chance.random() < 0.5:
                    fs.rollback_snapshot("/a", name, f"before{step}")
                else:
                    fs.clone_snapshot("/a", name, f"/b/clone{step}")
        except HdfsError:
            continue  # there is no such thing, or it is being written
        fs.namenode.wait(check_invariants(fs.namenode.namenode.store))
    # What comes from snapshots gets rows when they are gone, and is compared with a walk too.
    for snapshot in fs.list_snapshots("/a"):
        fs.delete_snapshot("/a", snapshot.name.decode())
    fs.reclaim()
    scan(fs)
