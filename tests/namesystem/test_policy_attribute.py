"""The storage policy of a path, as an attribute that follows it."""

from __future__ import annotations

from cairnfs.namesystem.lookup import resolve_to_read, resolve_to_write
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.policy_attribute import (
    POLICY_UNSPECIFIED,
    DecidedBy,
    ResolvedPolicy,
    policy_of,
    set_policy,
    unset_policy,
)
from cairnfs.testing.scratch import ScratchClient
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

COLD, WARM, HOT = 2, 5, 7  # as in HDFS


@operation()
def set_at(tx: Transaction, caller: Caller, path: FsPath, id: int) -> None:
    set_policy(tx, resolve_to_write(tx, caller, path), id)


@operation()
def unset_at(tx: Transaction, caller: Caller, path: FsPath) -> None:
    unset_policy(tx, resolve_to_write(tx, caller, path))


@operation(mutates=False)
def policy_at(tx: Transaction, caller: Caller, path: FsPath) -> ResolvedPolicy:
    return policy_of(resolve_to_read(tx, caller, path))


class Policies:
    """Calls of these operations."""

    def __init__(self, fs: ScratchClient) -> None:
        self._fs = fs

    def set(self, path: str, id: int) -> None:
        self._fs._call(set_at, FsPath.parse(path), id)

    def unset(self, path: str) -> None:
        self._fs._call(unset_at, FsPath.parse(path))

    def resolve(self, path: str) -> ResolvedPolicy:
        return self._fs._call(policy_at, FsPath.parse(path))

    def id(self, path: str) -> int:
        return self.resolve(path).id


def test_nobody_has_chosen_one(fs: ScratchClient) -> None:
    fs.mkdirs("/a")
    assert Policies(fs).resolve("/a") == (POLICY_UNSPECIFIED, 0, DecidedBy.NOBODY)
    assert fs.dump()["/"].inode.declared == ()


def test_the_latest_choice_holds_for_everything_below(fs: ScratchClient) -> None:
    policies = Policies(fs)
    fs.mkdirs("/a/b/c")
    policies.set("/a/b", HOT)
    policies.set("/a", COLD)
    assert policies.resolve("/a").decided_by is DecidedBy.ITSELF
    found = policies.resolve("/a/b/c")
    assert (found.id, found.decided_by) == (COLD, DecidedBy.ANCESTOR)
    assert found.txid == policies.resolve("/a").txid
    policies.set("/a/b", WARM)
    assert [policies.id(path) for path in ("/a", "/a/b", "/a/b/c")] == [COLD, WARM, WARM]


def test_what_does_not_exist_will_have_what_its_directory_has(fs: ScratchClient) -> None:
    policies = Policies(fs)
    fs.mkdirs("/a")
    policies.set("/a", COLD)
    assert policies.id("/a/new") == COLD
    fs.create("/a/new")
    assert policies.id("/a/new") == COLD


def test_what_is_moved_takes_the_policy_of_where_it_comes_to(fs: ScratchClient) -> None:
    policies = Policies(fs)
    fs.mkdirs("/cold")
    fs.mkdirs("/other/d/e")
    policies.set("/cold", COLD)
    policies.set("/other/d", WARM)
    fs.rename("/other/d", "/cold/d")
    assert [policies.id(path) for path in ("/cold/d", "/cold/d/e")] == [COLD, COLD]
    fs.rename("/cold/d/e", "/e")
    assert policies.resolve("/e").id == POLICY_UNSPECIFIED


def test_unset_lets_the_directory_above_show_again(fs: ScratchClient) -> None:
    policies = Policies(fs)
    fs.mkdirs("/a/b/c")
    policies.set("/a", COLD)
    policies.set("/a/b", WARM)
    policies.set("/a/b/c", HOT)
    policies.unset("/a/b")
    assert [policies.id(path) for path in ("/a/b", "/a/b/c")] == [COLD, COLD]
    policies.set("/a", HOT)
    assert policies.id("/a/b/c") == HOT
    policies.unset("/a")
    assert policies.id("/a/b") == POLICY_UNSPECIFIED


def test_snapshots_have_the_policy_of_then(fs: ScratchClient) -> None:
    policies = Policies(fs)
    fs.mkdirs("/a/b/c")
    fs.allow_snapshot("/a/b")
    policies.set("/a", COLD)
    fs.create_snapshot("/a/b", "s")
    policies.set("/a", WARM)
    assert policies.id("/a/b/.snapshot/s/c") == COLD
    assert policies.resolve("/a/b/.snapshot/s").decided_by is DecidedBy.ANCESTOR
    assert policies.id("/a/b/c") == WARM
    fs.rollback_snapshot("/a/b", "s")
    assert policies.id("/a/b/c") == COLD
    fs.delete_snapshot("/a/b", "s")


def test_callers_do_not_see_it(fs: ScratchClient) -> None:
    fs.mkdirs("/a/b")
    Policies(fs).set("/a", COLD)
    assert fs.get_xattrs("/a") == fs.get_xattrs("/a/b") == {}
    assert fs.list_xattrs("/a") == []
    assert fs.list_declared_xattrs() == {}
