"""What a roll-back leaves as it is: what its user may not change in another way; and quotas."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.namesystem.test_quotas_by_type import set_policy
from tests.namesystem.test_rollback import clean

from cairnfs.blocks.policies import COLD
from cairnfs.errors import (
    AccessControlException,
    DSQuotaExceededException,
    NSQuotaExceededException,
)
from cairnfs.namesystem.quota_operations import QUOTA_DONT_SET, QUOTA_RESET
from cairnfs.testing.scratch import ScratchClient

CLASS = "trusted.class"
NOTE = "user.note"
UNREADABLE = "security.hdfs.unreadable.by.superuser"


@pytest.fixture
def alice(fs: ScratchClient) -> Iterator[ScratchClient]:
    """The owner of /home/alice, which has a snapshot s, and a file and a directory below it."""
    fs.mkdirs("/home/alice")
    fs.set_owner("/home/alice", "alice", "users")
    alice = fs.user("alice", "users")
    alice.mkdirs("/home/alice/sub/deep")
    alice.write("/home/alice/sub/f", 10)
    fs.allow_snapshot("/home/alice")
    alice.create_snapshot("/home/alice", "s")
    yield alice
    clean(fs)


def set_xattr(fs: ScratchClient, path: str, name: str, value: bytes | None = b"1") -> None:
    fs.set_xattr(path, name, value)


def xattrs(fs: ScratchClient, path: str) -> dict[str, bytes]:
    return dict(fs.get_xattrs(path))


def quota(fs: ScratchClient, path: str) -> tuple[int, int]:
    found = fs.get_quota_usage(path).quota
    return found.inodes, found.space_bytes


@pytest.mark.parametrize("path", ["/home/alice", "/home/alice/sub", "/home/alice/sub/deep"])
def test_quota_set_since_the_snapshot_stays(
    fs: ScratchClient, alice: ScratchClient, path: str
) -> None:
    fs.set_quota(path, 50, 1 << 40)
    alice.set_permission("/home/alice", 0o700)
    alice.rollback_snapshot("/home/alice", "s")
    assert quota(fs, path) == (50, 1 << 40)
    assert fs.info("/home/alice").mode == 0o755


@pytest.mark.parametrize("path", ["/home/alice", "/home/alice/sub"])
def test_quota_removed_since_the_snapshot_does_not_come_back(
    fs: ScratchClient, alice: ScratchClient, path: str
) -> None:
    fs.set_quota(path, 50)
    alice.create_snapshot("/home/alice", "with-quota")
    fs.set_quota(path, QUOTA_RESET)
    alice.rollback_snapshot("/home/alice", "with-quota")
    assert quota(fs, path) == (-1, -1)


@pytest.mark.parametrize("path", ["/home/alice", "/home/alice/sub", "/home/alice/sub/f"])
def test_attributes_of_the_superuser_stay_and_those_of_the_owner_go_back(
    fs: ScratchClient, alice: ScratchClient, path: str
) -> None:
    set_xattr(fs, path, CLASS, b"secret")
    set_xattr(alice, path, NOTE, b"mine")
    alice.rollback_snapshot("/home/alice", "s")
    assert xattrs(fs, path) == {CLASS: b"secret"}


def test_attribute_removed_by_the_superuser_does_not_come_back(
    fs: ScratchClient, alice: ScratchClient
) -> None:
    set_xattr(fs, "/home/alice/sub/f", CLASS)
    alice.create_snapshot("/home/alice", "with")
    fs.remove_xattr("/home/alice/sub/f", CLASS)
    alice.rollback_snapshot("/home/alice", "with")
    assert xattrs(fs, "/home/alice/sub/f") == {}


def test_file_hidden_from_the_superuser_stays_hidden(
    fs: ScratchClient, alice: ScratchClient
) -> None:
    set_xattr(alice, "/home/alice/sub/f", UNREADABLE, None)
    alice.rollback_snapshot("/home/alice", "s")
    with pytest.raises(AccessControlException, match="superuser is not allowed"):
        fs.get_block_locations("/home/alice/sub/f")


@pytest.mark.parametrize("kind", ["follow-path", "stay-with-data"])
@pytest.mark.parametrize("where", ["/home", "/home/alice", "/home/alice/sub"])
def test_inherited_attribute_of_the_superuser_stays(
    fs: ScratchClient, alice: ScratchClient, where: str, kind: str
) -> None:
    fs.declare_xattr(CLASS, kind)
    set_xattr(fs, "/home", CLASS, b"old")
    alice.create_snapshot("/home/alice", "later")
    set_xattr(fs, where, CLASS, b"new")
    paths = ("/home/alice", "/home/alice/sub", "/home/alice/sub/f")
    before = {path: xattrs(fs, path) for path in paths}
    alice.rollback_snapshot("/home/alice", "later")
    assert {path: xattrs(fs, path) for path in paths} == before


def test_values_stay_where_something_was_moved_since(
    fs: ScratchClient, alice: ScratchClient
) -> None:
    fs.set_quota("/home/alice/sub", 50)
    set_xattr(fs, "/home/alice/sub/f", CLASS)
    alice.rename("/home/alice/sub", "/home/alice/moved")
    alice.rename("/home/alice/moved/f", "/home/alice/g")
    alice.rollback_snapshot("/home/alice", "s")
    assert quota(fs, "/home/alice/sub") == (50, -1)
    assert xattrs(fs, "/home/alice/sub/f") == {CLASS: b"1"}


def test_values_stay_through_several_roll_backs(fs: ScratchClient, alice: ScratchClient) -> None:
    """Also where the directory has none of its own: it has it from a snapshot."""
    fs.set_quota("/home/alice/sub", 50)
    alice.create_snapshot("/home/alice", "with-quota")
    alice.rollback_snapshot("/home/alice", "with-quota")
    alice.rollback_snapshot("/home/alice", "s")
    assert quota(fs, "/home/alice/sub") == (50, -1)
    fs.reclaim()
    alice.rollback_snapshot("/home/alice", "with-quota")
    assert quota(fs, "/home/alice/sub") == (50, -1)


def test_values_stay_in_a_clone(fs: ScratchClient, alice: ScratchClient) -> None:
    fs.mkdirs("/clones", 0o777)
    fs.set_permission("/clones", 0o777)
    alice.clone_snapshot("/home/alice", "s", "/clones/c")
    fs.allow_snapshot("/clones/c")
    alice.create_snapshot("/clones/c", "first")
    fs.set_quota("/clones/c/sub", 50)
    alice.create_snapshot("/clones/c", "second")
    alice.rollback_snapshot("/clones/c", "first")
    assert quota(fs, "/clones/c/sub") == (50, -1)


def test_values_stay_on_what_has_snapshots_of_its_own(
    fs: ScratchClient, alice: ScratchClient
) -> None:
    fs.allow_snapshot("/home/alice/sub")
    alice.create_snapshot("/home/alice/sub", "own")
    alice.create_snapshot("/home/alice", "later")
    fs.set_quota("/home/alice/sub", 50)
    set_xattr(fs, "/home/alice/sub", CLASS)
    alice.rename("/home/alice/sub/f", "/home/alice/sub/g")
    alice.rollback_snapshot("/home/alice", "later")
    assert quota(fs, "/home/alice/sub") == (50, -1)
    assert xattrs(fs, "/home/alice/sub") == {CLASS: b"1"}
    assert fs.names("/home/alice/sub") == ["deep", "f"]


def test_what_is_brought_back_has_the_values_of_then(
    fs: ScratchClient, alice: ScratchClient
) -> None:
    fs.set_quota("/home/alice/sub", 50)
    alice.create_snapshot("/home/alice", "with-quota")
    fs.delete("/home/alice/sub", recursive=True)
    alice.rollback_snapshot("/home/alice", "with-quota")
    assert quota(fs, "/home/alice/sub") == (50, -1)
    fs.set_quota("/home/alice/sub", 60)
    alice.rollback_snapshot("/home/alice", "with-quota")
    assert quota(fs, "/home/alice/sub") == (60, -1)


def test_policy_goes_back_only_where_the_caller_may_choose_one(
    fs: ScratchClient, alice: ScratchClient
) -> None:
    fs.mkdirs("/home/alice/bob")
    fs.set_owner("/home/alice/bob", "bob", "staff")
    alice.create_snapshot("/home/alice", "both")
    set_policy(fs, "/home/alice/bob", "COLD")
    set_policy(fs, "/home/alice/sub", "COLD")
    alice.rollback_snapshot("/home/alice", "both")
    assert fs.info("/home/alice/bob").storage_policy == COLD.id
    assert fs.info("/home/alice/sub").storage_policy == 0


def test_roll_back_by_the_superuser_leaves_them_too(
    fs: ScratchClient, alice: ScratchClient
) -> None:
    fs.set_quota("/home/alice/sub", 50)
    fs.rollback_snapshot("/home/alice", "s")
    assert quota(fs, "/home/alice/sub") == (50, -1)


def test_root_snapshot_brings_everything_back(fs: ScratchClient) -> None:
    fs.mkdirs("/d/sub")
    fs.set_quota("/d/sub", 50)
    fs.create_root_snapshot("root")
    fs.set_quota("/d/sub", 60)
    fs.set_quota("/", QUOTA_DONT_SET, 1 << 40)
    fs.rollback_root_snapshot("before")
    assert quota(fs, "/d/sub") == (50, -1)
    fs.finalize_root_snapshot()
    clean(fs)


# Quotas that a roll-back would exceed.


@pytest.mark.parametrize("where", ["/home", "/home/alice", "/home/alice/sub"])
def test_roll_back_over_a_quota_is_refused_with_the_numbers(
    fs: ScratchClient, alice: ScratchClient, where: str
) -> None:
    """Of a directory above, of its own, or of one below: each has fewer entries now."""
    fs.delete("/home/alice/sub/f")
    fs.delete("/home/alice/sub/deep")
    used = fs.get_quota_usage(where).inodes
    fs.set_quota(where, used)
    with pytest.raises(
        NSQuotaExceededException,
        match=rf"/home/alice cannot be rolled back: .* of directory {where} is exceeded:"
        rf" quota={used} file count={used + 2} Nothing was changed",
    ):
        alice.rollback_snapshot("/home/alice", "s", "before")
    assert fs.names("/home/alice/sub") == []
    assert [each.name for each in fs.list_snapshots("/home/alice")] == [b"s"]
    with pytest.raises(AccessControlException, match="Superuser privilege is required"):
        alice.rollback_snapshot("/home/alice", "s", "before", force=True)
    fs.rollback_snapshot("/home/alice", "s", "before", force=True)
    assert fs.names("/home/alice/sub") == ["deep", "f"]
    assert quota(fs, where) == (used, -1)


def test_roll_back_over_a_space_quota_is_refused(fs: ScratchClient, alice: ScratchClient) -> None:
    alice.truncate("/home/alice/sub/f", 1)
    fs.set_quota("/home", QUOTA_DONT_SET, 29)
    with pytest.raises(DSQuotaExceededException, match=r"quota = 29 B .* consumed = 30 B"):
        alice.rollback_snapshot("/home/alice", "s")
    fs.set_quota("/home", QUOTA_DONT_SET, 30)
    alice.rollback_snapshot("/home/alice", "s")
    assert fs.info("/home/alice/sub/f").length_bytes == 10


def test_roll_back_to_less_is_allowed_over_quota(fs: ScratchClient, alice: ScratchClient) -> None:
    alice.mkdirs("/home/alice/more/and/more")
    for path in ("/home", "/home/alice"):
        fs.set_quota(path, 1, 1)
    alice.rollback_snapshot("/home/alice", "s")
    assert not fs.exists("/home/alice/more")


def test_roll_back_of_a_file_over_a_quota_is_refused(
    fs: ScratchClient, alice: ScratchClient
) -> None:
    fs.allow_snapshot("/home/alice/sub/f")
    alice.create_snapshot("/home/alice/sub/f", "own")
    alice.truncate("/home/alice/sub/f", 1)
    fs.set_quota("/home/alice/sub", QUOTA_DONT_SET, 29)
    with pytest.raises(DSQuotaExceededException, match="/home/alice/sub is exceeded"):
        alice.rollback_snapshot("/home/alice/sub/f", "own")
    fs.rollback_snapshot("/home/alice/sub/f", "own", force=True)
    assert fs.info("/home/alice/sub/f").length_bytes == 10
