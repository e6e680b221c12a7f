"""Quotas: setting them, what they forbid, and what is said to be used."""

from __future__ import annotations

import msgspec
import pytest

from cairnfs.blocks.records import StorageType
from cairnfs.errors import (
    AccessControlException,
    ClusterStorageCapacityExceededException,
    DSQuotaExceededException,
    FileNotFoundException,
    IllegalArgumentException,
    NSQuotaExceededException,
    PathIsNotDirectoryException,
    QuotaByStorageTypeExceededException,
    UnsupportedActionException,
)
from cairnfs.namesystem.inodes import Quota
from cairnfs.namesystem.quota_operations import QUOTA_DONT_SET, QUOTA_RESET
from cairnfs.testing.scratch import ScratchClient

MIB = 1024 * 1024


def quota(fs: ScratchClient, path: str) -> Quota:
    return fs.get_quota_usage(path).quota


# Setting


def test_limits_are_set_kept_and_removed_one_by_one(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_quota("/d", 5, 7)
    fs.set_quota("/d", storage_type=StorageType.SSD, space_quota_bytes=9)
    assert quota(fs, "/d") == Quota(5, 7, ssd_bytes=9)
    fs.set_quota("/d", QUOTA_RESET)
    assert quota(fs, "/d") == Quota(-1, 7, ssd_bytes=9)
    fs.set_quota("/d", QUOTA_DONT_SET, QUOTA_RESET)
    fs.set_quota("/d", QUOTA_DONT_SET, QUOTA_RESET, StorageType.SSD)
    assert quota(fs, "/d") == Quota()
    assert fs.dump()["/d"].inode.quota is None


@pytest.mark.parametrize(
    ("storage_type", "field"),
    [
        (StorageType.DISK, "disk_bytes"),
        (StorageType.ARCHIVE, "archive_bytes"),
        (StorageType.PROVIDED, "provided_bytes"),
        (StorageType.NVDIMM, "nvdimm_bytes"),
    ],
)
def test_each_storage_type_has_its_limit(
    fast_fs: ScratchClient, storage_type: StorageType, field: str
) -> None:
    fast_fs.mkdirs("/d")
    fast_fs.set_quota("/d", space_quota_bytes=3, storage_type=storage_type)
    assert quota(fast_fs, "/d") == msgspec.structs.replace(Quota(), **{field: 3})


def test_nothing_is_written_where_nothing_changes(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_quota("/d", 5)
    before = fs.dump()
    fs.set_quota("/d")
    fs.set_quota("/d", 5)
    assert fs.dump() == before


def test_the_root_tells_the_largest_number_instead_of_none(fs: ScratchClient) -> None:
    largest = 2**63 - 1
    assert quota(fs, "/") == Quota(largest)
    assert fs.get_content_summary("/").quota.inodes == largest
    fs.set_quota("/", 5)
    assert quota(fs, "/") == Quota(5)
    fs.set_quota("/", QUOTA_RESET)
    assert quota(fs, "/") == Quota(largest)


def test_only_the_superuser_sets_quotas(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_owner("/d", "ada")
    ada = fs.user("ada")
    for arguments, command in [
        ((5, QUOTA_DONT_SET), "setQuota"),
        ((QUOTA_RESET, QUOTA_DONT_SET), "clearQuota"),
        ((QUOTA_DONT_SET, 5), "setSpaceQuota"),
        ((QUOTA_DONT_SET, QUOTA_RESET), "clearSpaceQuota"),
    ]:
        with pytest.raises(
            AccessControlException,
            match=f"Superuser privilege is required for operation {command}",
        ):
            ada.set_quota("/d", *arguments)
        with pytest.raises(AccessControlException):
            ada.set_quota("/nothing", *arguments)


def test_only_a_directory_has_a_quota(fs: ScratchClient) -> None:
    fs.write("/f", 1)
    with pytest.raises(PathIsNotDirectoryException, match="`/f': Is not a directory"):
        fs.set_quota("/f", 5)
    with pytest.raises(FileNotFoundException, match="Directory does not exist: /x"):
        fs.set_quota("/x", 5)


@pytest.mark.parametrize("arguments", [(-2, 1), (1, -2), (2**63, 1), (1, 2**63)])
def test_numbers_out_of_bounds_are_refused(fs: ScratchClient, arguments: tuple[int, int]) -> None:
    with pytest.raises(IllegalArgumentException, match="Illegal value for nsQuota or ssQuota"):
        fs.set_quota("/", *arguments)


def test_a_storage_type_limits_space_only(fs: ScratchClient) -> None:
    with pytest.raises(UnsupportedActionException, match="nsQuota value is illegal 3"):
        fs.set_quota("/", 3, 3, StorageType.SSD)
    with pytest.raises(UnsupportedActionException, match="RAM_DISK does not support quotas"):
        fs.set_quota("/", QUOTA_DONT_SET, 3, StorageType.RAM_DISK)


# Names


def test_a_directory_counts_for_one_of_its_own_quota(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_quota("/d", 3)
    fs.mkdirs("/d/a")
    fs.create("/d/a/f")
    before = fs.dump()
    for call in (fs.mkdirs, fs.create, lambda path: fs.create_symlink("/x", path)):
        with pytest.raises(
            NSQuotaExceededException,
            match=r"The NameSpace quota \(directories and files\) of directory /d is exceeded:"
            " quota=3 file count=4",
        ):
            call("/d/a/x")
    assert fs.dump() == before
    fs.delete("/d/a/f")
    fs.create_symlink("/x", "/d/a/x")


def test_of_two_quotas_the_nearest_is_named_first(fs: ScratchClient) -> None:
    fs.mkdirs("/a/b")
    fs.set_quota("/a", 2)
    fs.set_quota("/a/b", 1)
    with pytest.raises(NSQuotaExceededException, match="of directory /a/b is exceeded"):
        fs.mkdirs("/a/b/c")
    fs.set_quota("/a/b", QUOTA_RESET)
    with pytest.raises(NSQuotaExceededException, match="of directory /a is exceeded"):
        fs.mkdirs("/a/b/c")


def test_missing_parents_are_all_made_or_none(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_quota("/d", 3)
    with pytest.raises(NSQuotaExceededException):
        fs.create("/d/a/b/f")
    assert fs.names("/d") == []
    fs.create("/d/a/f")


def test_a_quota_below_what_is_used_stops_only_growth(fs: ScratchClient) -> None:
    fs.write("/d/a", 10)
    fs.write("/d/b", 10)
    fs.set_quota("/d", 1, 1)
    with pytest.raises(NSQuotaExceededException):
        fs.create("/d/c")
    fs.set_replication("/d/a", 1)
    assert fs.rename("/d/a", "/d/c")
    fs.delete("/d/c")
    fs.create("/d/b", overwrite=True)  # as many as before


# Space


def test_a_block_needs_room_in_full_when_it_is_allocated(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_quota("/d", space_quota_bytes=3 * MIB + 30)
    fs.create("/d/f", block_size_bytes=MIB)
    block = fs.add_block("/d/f").block
    with pytest.raises(
        DSQuotaExceededException,
        match=r"The DiskSpace quota of /d is exceeded: quota = 3145758 B = 3.00 MB but"
        r" diskspace consumed = \d+ B = 6 MB",
    ):
        fs.add_block("/d/f", msgspec.structs.replace(block, length_bytes=MIB))
    second = fs.add_block("/d/f", msgspec.structs.replace(block, length_bytes=10)).block
    assert fs.complete("/d/f", msgspec.structs.replace(second, length_bytes=0))
    usage = fs.get_quota_usage("/d")
    assert (usage.inodes, usage.space_bytes, usage.type_bytes) == (2, 30, (0, 30, 0, 0, 0))


def test_more_replicas_need_room(fs: ScratchClient) -> None:
    fs.write("/d/f", 100)
    fs.set_quota("/d", space_quota_bytes=400)
    fs.set_replication("/d/f", 4)
    with pytest.raises(DSQuotaExceededException):
        fs.set_replication("/d/f", 5)
    assert fs.info("/d/f").replication == 4


def test_a_storage_type_is_limited_apart(fs: ScratchClient) -> None:
    fs.mkdirs("/d")
    fs.set_quota("/d", space_quota_bytes=2 * MIB, storage_type=StorageType.DISK)
    fs.set_quota("/d", space_quota_bytes=0, storage_type=StorageType.SSD)
    fs.create("/d/f", block_size_bytes=MIB)
    with pytest.raises(
        QuotaByStorageTypeExceededException,
        match=r"Quota by storage type : DISK on path : /d is exceeded\. quota = 2 MB but space"
        " consumed = 3 MB",
    ):
        fs.add_block("/d/f")
    fs.set_replication("/d/f", 2)
    assert fs.complete("/d/f", fs.write_blocks("/d/f", MIB))


def test_no_counter_overflows_whatever_clients_claim(fs: ScratchClient) -> None:
    size = 2**48 - 1
    fs.write("/g", size, size, replication=1, block_size_bytes=size)
    fs.create("/f", replication=512, block_size_bytes=size)
    last = fs.write_blocks("/f", *[size] * 30)
    block = fs.add_block("/f", last).block
    last = msgspec.structs.replace(block, length_bytes=size)
    with pytest.raises(ClusterStorageCapacityExceededException, match="holds more than 4 EB"):
        fs.add_block("/f", last)
    with pytest.raises(ClusterStorageCapacityExceededException):
        fs.set_replication("/g", 512)


# Usage


def test_usage_is_told_of_anything(fs: ScratchClient) -> None:
    fs.write("/d/f", 10)
    fs.mkdirs("/d/e")
    fs.create_symlink("/x", "/d/l")
    assert fs.get_quota_usage("/d").inodes == 4
    assert fs.get_quota_usage("/d/f").space_bytes == 30
    assert fs.get_quota_usage("/d/l").inodes == 1
    with pytest.raises(FileNotFoundException, match="File/Directory does not exist: /x"):
        fs.get_quota_usage("/x")


def test_usage_is_told_to_whoever_may_read_every_directory_below(fs: ScratchClient) -> None:
    fs.mkdirs("/d/e/secret")
    ada = fs.user("ada")
    assert ada.get_quota_usage("/d").inodes == 3
    fs.set_permission("/d/e/secret", 0o700)
    with pytest.raises(AccessControlException, match='access=READ_EXECUTE, inode="/d/e/secret"'):
        ada.get_quota_usage("/d")
