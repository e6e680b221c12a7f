"""Which attributes are inherited, and who says so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compiled.modules import WRONG_TYPE

from cairnfs.errors import (
    AccessControlException,
    HadoopIllegalArgumentException,
    IllegalArgumentException,
    IOException,
)
from cairnfs.namesystem.declarations import DECLARED_MAX, NAME_BYTES_MAX
from cairnfs.testing.scratch import ScratchClient


def test_names_are_declared_and_listed(fs: ScratchClient) -> None:
    assert fs.list_declared_xattrs() == {}
    fs.declare_xattr("user.b", "follow-path")
    fs.declare_xattr("trusted.a", "stay-with-data")
    fs.declare_xattr("user.a", "follow-path")
    assert fs.list_declared_xattrs() == {
        "user.a": "follow-path",
        "user.b": "follow-path",
        "trusted.a": "stay-with-data",
    }
    assert fs.user("ada").list_declared_xattrs() == fs.list_declared_xattrs()


def test_what_is_not_used_can_be_declared_otherwise(fs: ScratchClient) -> None:
    fs.mkdirs("/d/e")
    fs.declare_xattr("user.a", "follow-path")
    fs.declare_xattr("user.a", "stay-with-data")
    assert fs.list_declared_xattrs() == {"user.a": "stay-with-data"}
    fs.declare_xattr("user.a", "local")
    assert fs.list_declared_xattrs() == {}
    fs.declare_xattr("user.a", "local")  # as it is already
    fs.set_xattr("/d", "user.a", b"red")
    assert fs.get_xattrs("/d/e") == {}
    assert fs.dump()["/"].inode.declared == ()


@pytest.mark.parametrize("kind", ["local", "stay-with-data"])
def test_what_is_used_stays_of_its_kind(fs: ScratchClient, kind: str) -> None:
    fs.mkdirs("/d")
    fs.declare_xattr("user.a", "follow-path")
    fs.set_xattr("/d", "user.a", b"red")
    with pytest.raises(IOException, match=r"user\.a .*in use as follow-path.*another name"):
        fs.declare_xattr("user.a", kind)
    fs.remove_xattr("/d", "user.a")  # there may be snapshots, and there are TxIDs
    with pytest.raises(IOException, match="in use as follow-path"):
        fs.declare_xattr("user.a", kind)
    fs.declare_xattr("user.a", "follow-path")
    assert fs.list_declared_xattrs() == {"user.a": "follow-path"}


def test_only_the_superuser_declares(fs: ScratchClient) -> None:
    with pytest.raises(AccessControlException, match="Superuser privilege is required"):
        fs.user("ada").declare_xattr("user.a", "follow-path")
    assert fs.list_declared_xattrs() == {}


@pytest.mark.parametrize("kind", ["", "inherited", "FOLLOW-PATH"])
def test_other_kinds_are_refused(fs: ScratchClient, kind: str) -> None:
    with pytest.raises(HadoopIllegalArgumentException, match="local, follow-path, stay-with-data"):
        fs.declare_xattr("user.a", kind)


@pytest.mark.parametrize("kind", [None, 1])
def test_kinds_that_are_no_words_are_refused(fs: ScratchClient, kind: Any) -> None:
    with pytest.raises(WRONG_TYPE, match=r"local, follow-path, stay-with-data|str object expected"):
        fs.declare_xattr("user.a", kind)
    assert fs.list_declared_xattrs() == {}


@pytest.mark.parametrize(
    "name",
    ["system.a", "security.hdfs.unreadable.by.superuser", "raw.a", "user.", "a", "other.a"],
)
def test_names_that_are_not_for_callers_are_refused(fs: ScratchClient, name: str) -> None:
    with pytest.raises(HadoopIllegalArgumentException):
        fs.declare_xattr(name, "follow-path")
    assert fs.list_declared_xattrs() == {}


@pytest.mark.parametrize("name", ["user.\0", "user.\udc80", "user." + "x" * (NAME_BYTES_MAX + 1)])
def test_names_that_are_no_text_or_too_long_are_refused(fs: ScratchClient, name: str) -> None:
    with pytest.raises(IllegalArgumentException, match="name of an attribute"):
        fs.declare_xattr(name, "follow-path")


def test_there_are_only_so_many(fast_fs: ScratchClient) -> None:
    for number in range(DECLARED_MAX):
        fast_fs.declare_xattr(f"user.{number:02}", "follow-path")
    with pytest.raises(IOException, match="no more can be"):
        fast_fs.declare_xattr("user.one.more", "follow-path")
    fast_fs.declare_xattr("user.00", "local")
    fast_fs.declare_xattr("user.one.more", "follow-path")


def test_values_from_before_stay_local_until_an_operation_reaches_them(fs: ScratchClient) -> None:
    fs.mkdirs("/d/e/f")
    for path in ("/d", "/d/e"):
        fs.set_xattr(path, "user.a", path.encode())
    fs.declare_xattr("user.a", "follow-path")
    assert fs.get_xattrs("/d") == {"user.a": b"/d"}
    assert fs.get_xattrs("/d/e") == {"user.a": b"/d/e"}
    assert fs.get_xattrs("/d/e/f") == {}
    fs.set_xattr("/d/e/f", "user.a", b"red")  # the first of its kind
    assert fs.get_xattrs("/d/e") == {"user.a": b"/d/e"}
    fs.set_xattr("/d", "user.a", b"blue")
    for path in ("/d", "/d/e", "/d/e/f"):
        assert fs.get_xattrs(path) == {"user.a": b"blue"}


def test_declarations_survive_a_rollback_of_everything(fs: ScratchClient) -> None:
    fs.mkdirs("/d/e")
    fs.create_root_snapshot("s")
    fs.declare_xattr("user.a", "stay-with-data")
    fs.set_xattr("/d", "user.a", b"red")
    fs.rollback_root_snapshot("before")
    assert fs.list_declared_xattrs() == {"user.a": "stay-with-data"}
    assert fs.get_xattrs("/d/e") == {}
    assert fs.get_xattrs("/.snapshot/before/d/e") == {"user.a": b"red"}
    fs.set_xattr("/", "user.a", b"blue")
    assert fs.get_xattrs("/d/e") == {"user.a": b"blue"}
    fs.finalize_root_snapshot()
