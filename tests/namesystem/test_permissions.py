"""Permission checks, with the cases and the words of Hadoop's checker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnfs.errors import (
    AccessControlException,
    ParentNotDirectoryException,
    UnresolvedPathException,
)
from cairnfs.modes import format_mode
from cairnfs.namesystem import acls
from cairnfs.namesystem.acls import parse_spec
from cairnfs.namesystem.inodes import Inode, InodeId, Kind
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import (
    Access,
    Caller,
    check_access,
    check_not_symlink,
    check_owner,
    check_sticky,
    check_superuser,
    check_traverse,
    has_permission,
    make_caller,
)

# The users of Hadoop's TestFSPermissionChecker.
BRUCE = make_caller("bruce", [], "hdfs")
DIANA = make_caller("diana", ["sales"], "hdfs")
CLARK = make_caller("clark", ["execs"], "hdfs")
HDFS = make_caller("hdfs", [], "hdfs")

R, W, X = Access.READ, Access.WRITE, Access.EXECUTE


def inode(
    owner: str = "bruce",
    group: str = "execs",
    mode: int = 0o755,
    kind: Kind = Kind.DIRECTORY,
    acl: str = "",
    target: str | None = None,
) -> Inode:
    entries = None
    if acl:
        mode, entries = acls.replace_entries(
            mode, None, parse_spec(acl), is_directory=kind is Kind.DIRECTORY, path="/x"
        )
    return Inode(
        InodeId(1), InodeId(0), b"x", kind, mode, owner, group, 0, 0, acl=entries, target=target
    )


ROOT = inode("hdfs", "supergroup", 0o755)


def granted(caller: Caller, node: Inode) -> str:
    """All the access a caller has, as letters, and that larger asks agree."""
    bits = sum(a for a in (R, W, X) if has_permission(caller, node, a))
    for access in range(8):
        assert has_permission(caller, node, access) is (access & bits == access)
    return format_mode(bits)[-3:]


@pytest.mark.parametrize(
    ("caller", "superuser"),
    [
        (make_caller("hdfs", [], "hdfs"), True),
        (make_caller("eve", ["supergroup"], "hdfs"), True),
        (make_caller("eve", ["admins"], "hdfs", "admins"), True),
        (make_caller("eve", ["supergroup"], "hdfs", "admins"), False),
        (make_caller("eve", ["hdfs"], "hdfs"), False),
    ],
)
def test_superuser(caller: Caller, superuser: bool) -> None:
    assert caller.is_superuser is superuser
    if superuser:
        check_superuser(caller, "setQuota")
    else:
        with pytest.raises(AccessControlException) as caught:
            check_superuser(caller, "setQuota")
        assert str(caught.value) == (
            "Access denied for user eve. Superuser privilege is required for operation setQuota"
        )


@pytest.mark.parametrize(
    ("mode", "bruce", "clark", "diana"),
    [
        (0o640, "rw-", "r--", "---"),
        (0o750, "rwx", "r-x", "---"),
        (0o077, "---", "rwx", "rwx"),  # the owner is judged as the owner only
        (0o707, "rwx", "---", "rwx"),
        (0o1777, "rwx", "rwx", "rwx"),
    ],
)
def test_mode_bits(mode: int, bruce: str, clark: str, diana: str) -> None:
    node = inode(mode=mode)
    assert [granted(c, node) for c in (BRUCE, CLARK, DIANA)] == [bruce, clark, diana]


@pytest.mark.parametrize(
    ("group", "acl", "bruce", "clark", "diana"),
    [
        ("execs", "user::rw-,group::r--,mask::r--,other::---", "rw-", "r--", "---"),
        ("execs", "user::rw-,user:diana:r--,group::r--,mask::r--,other::---", "rw-", "r--", "r--"),
        ("execs", "user::rw-,user:diana:---,group::r--,mask::r--,other::r--", "rw-", "r--", "---"),
        ("execs", "user::rw-,user:diana:r--,group::r--,mask::-w-,other::---", "rw-", "---", "---"),
        ("sales", "user::rw-,group::---,mask::---,other::r--", "rw-", "r--", "---"),
        ("execs", "user::rw-,group::rw-,mask::r--,other::r--", "rw-", "r--", "r--"),
        ("execs", "user::rw-,group::r--,group:sales:r--,mask::r--,other::---", "rw-", "r--", "r--"),
        ("sales", "user::rw-,group::r--,group:execs:---,mask::r--,other::r--", "rw-", "---", "r--"),
        ("execs", "user::rw-,group::r--,group:sales:rw-,mask::r--,other::r--", "rw-", "r--", "r--"),
        ("sales", "user::rwx,user:diana:rwx,group::rw-,mask::rwx,other::r--", "rwx", "r--", "rwx"),
        # An entry for the owner's name does not count; the owner's own does.
        ("execs", "user::r--,user:bruce:rwx,group::r--,mask::rwx,other::rwx", "r--", "r--", "rwx"),
    ],
)
def test_acl(group: str, acl: str, bruce: str, clark: str, diana: str) -> None:
    node = inode(group=group, kind=Kind.FILE, acl=acl)
    assert [granted(c, node) for c in (BRUCE, CLARK, DIANA)] == [bruce, clark, diana]


def test_any_group_that_grants_is_enough() -> None:
    both = make_caller("eve", ["sales", "execs"], "hdfs")
    acl = "user::rwx,group::---,group:sales:r--,group:execs:-w-,mask::rwx,other::rwx"
    node = inode(group="staff", kind=Kind.FILE, acl=acl)
    assert has_permission(both, node, R)
    assert has_permission(both, node, W)
    # One entry must grant all of it, and other is then past.
    assert not has_permission(both, node, Access.READ_WRITE)
    assert not has_permission(both, node, X)


def test_default_entries_are_not_for_the_directory_itself() -> None:
    node = inode(
        acl="user::rwx,group::---,other::r-x,default:user:diana:---,default:group:sales:---"
    )
    assert [granted(c, node) for c in (BRUCE, CLARK, DIANA)] == ["rwx", "---", "r-x"]
    node = inode(
        acl="user::rwx,user:clark:r--,group::---,mask::r--,other::r-x,"
        "default:user:diana:rwx,default:group:sales:rwx"
    )
    assert granted(DIANA, node) == "r-x"


def test_denial_names_user_access_and_inode() -> None:
    path = FsPath.parse("/d/f")
    with pytest.raises(AccessControlException) as caught:
        check_access(DIANA, inode(mode=0o750), Access.READ_EXECUTE, path, 1)
    assert str(caught.value) == (
        'Permission denied: user=diana, access=READ_EXECUTE, inode="/d":bruce:execs:drwxr-x---'
    )
    with pytest.raises(AccessControlException) as caught:
        check_access(DIANA, inode(mode=0o640, kind=Kind.FILE), W, path)
    assert str(caught.value) == (
        'Permission denied: user=diana, access=WRITE, inode="/d/f":bruce:execs:-rw-r-----'
    )
    check_access(BRUCE, inode(mode=0o640), W, path)
    check_access(HDFS, inode(mode=0), Access.ALL, path)


def test_traverse() -> None:
    path = FsPath.parse("/a/b/c/d")
    closed = inode(mode=0o750)
    open_ = inode(mode=0o711)
    check_traverse(DIANA, [ROOT, open_, open_], path)
    check_traverse(DIANA, [], FsPath.parse("/"))
    check_traverse(CLARK, [ROOT, open_, closed], path)
    check_traverse(HDFS, [ROOT, inode(mode=0), inode(mode=0)], path)
    with pytest.raises(AccessControlException) as caught:
        check_traverse(DIANA, [ROOT, open_, closed, open_], path)
    assert str(caught.value) == (
        'Permission denied: user=diana, access=EXECUTE, inode="/a/b":bruce:execs:drwxr-x---'
    )
    with pytest.raises(AccessControlException, match='inode="/":hdfs'):
        check_traverse(DIANA, [inode("hdfs", "supergroup", 0o700), open_], path)


def test_traverse_obeys_acls() -> None:
    path = FsPath.parse("/a/f")
    directory = inode(acl="user::rwx,user:diana:---,group::r-x,mask::r-x,other::r-x")
    assert directory.mode & 0o111 == 0o111
    check_traverse(CLARK, [ROOT, directory], path)
    with pytest.raises(AccessControlException, match='access=EXECUTE, inode="/a"'):
        check_traverse(DIANA, [ROOT, directory], path)


@pytest.mark.parametrize("caller", [DIANA, HDFS])
def test_an_ancestor_that_is_a_file(caller: Caller) -> None:
    path = FsPath.parse("/a/f/x/y")
    ancestors = [ROOT, inode(), inode(mode=0, kind=Kind.FILE)]
    with pytest.raises(ParentNotDirectoryException) as parent:
        check_traverse(caller, ancestors, path, creating=True)
    with pytest.raises(AccessControlException) as other:
        check_traverse(caller, ancestors, path)
    assert str(parent.value) == str(other.value) == "/a/f (is not a directory)"


def test_a_closed_directory_hides_the_file_in_it() -> None:
    ancestors = [ROOT, inode(mode=0o700), inode(kind=Kind.FILE)]
    with pytest.raises(AccessControlException, match='inode="/a"'):
        check_traverse(DIANA, ancestors, FsPath.parse("/a/f/x"), creating=True)


@pytest.mark.parametrize(
    ("target", "resolved"),
    [
        ("/t", "/t/x/y"),
        ("/", "/x/y"),
        ("t", "/a/t/x/y"),
        ("../t", "/t/x/y"),
        ("hdfs://other:8020/t", "hdfs://other:8020/t/x/y"),
    ],
)
def test_a_link_is_for_the_client_to_follow(target: str, resolved: str) -> None:
    link = inode(kind=Kind.SYMLINK, target=target)
    for caller in (DIANA, HDFS):
        with pytest.raises(UnresolvedPathException) as caught:
            check_traverse(caller, [ROOT, inode(), link], FsPath.parse("/a/l/x/y"))
        assert str(caught.value) == resolved


def test_a_link_at_the_end() -> None:
    path = FsPath.parse("/a/l")
    check_not_symlink(inode(), path)
    with pytest.raises(UnresolvedPathException, match=r"^/a/t$"):
        check_not_symlink(inode(kind=Kind.SYMLINK, target="t"), path)


def test_owner() -> None:
    path = FsPath.parse("/a/f")
    check_owner(BRUCE, inode(), path)
    check_owner(HDFS, inode(), path)
    with pytest.raises(AccessControlException) as caught:
        check_owner(DIANA, inode(mode=0o777), path)
    assert str(caught.value) == "Permission denied. user=diana is not the owner of inode=/a/f"


def test_sticky() -> None:
    path = FsPath.parse("/tmp/f")
    tmp = inode("root", "supergroup", 0o1777)
    child = inode("bruce", "execs", 0o666, Kind.FILE)
    check_sticky(BRUCE, tmp, child, path)
    check_sticky(HDFS, tmp, child, path)
    check_sticky(DIANA, inode("diana", "sales", 0o1777), child, path)
    check_sticky(DIANA, inode("hdfs", "supergroup", 0o777), child, path)
    with pytest.raises(AccessControlException) as caught:
        check_sticky(DIANA, tmp, child, path)
    assert str(caught.value) == (
        'Permission denied by sticky bit: user=diana, path="/tmp/f":bruce:execs:-rw-rw-rw-, '
        'parent="/tmp":root:supergroup:drwxrwxrwt'
    )


@pytest.mark.parametrize(
    ("mode", "text"),
    [(0o755, "rwxr-xr-x"), (0, "---------"), (0o1777, "rwxrwxrwt"), (0o1666, "rw-rw-rwT")],
)
def test_format_mode(mode: int, text: str) -> None:
    assert format_mode(mode) == text


@given(st.integers(0, 0o777), st.sampled_from([BRUCE, CLARK, DIANA]), st.integers(0, 7))
def test_an_acl_without_names_and_a_full_mask_changes_nothing(
    mode: int, caller: Caller, access: int
) -> None:
    plain = inode(mode=mode, kind=Kind.FILE)
    entries = acls.format_spec(acls.minimal_entries(mode)) + ",mask::rwx"
    extended = inode(mode=mode, kind=Kind.FILE, acl=entries)
    assert extended.acl is not None
    assert has_permission(caller, plain, access) is has_permission(caller, extended, access)
