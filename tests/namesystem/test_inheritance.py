"""Attributes that directories hand down; tests/attributes compares every short sequence."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.namesystem.test_rollback import clean

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IOException,
    XAttrNotFoundException,
)
from cairnfs.namesystem import attributes, rename, xattrs
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.snapshot_diff import DiffKind
from cairnfs.namesystem.xattr_explanation import Cause, Explanation
from cairnfs.namesystem.xattrs import FLAG_CREATE, FLAG_REPLACE, XATTRS_PER_INODE_MAX
from cairnfs.testing.scratch import ScratchClient
from cairnfs.transaction.calls import Operation
from cairnfs.xattr_text import XAttrName

PATH, DATA = "user.path", "user.data"
RED, BLUE = b"red", b"blue"


@pytest.fixture
def tree(fs: ScratchClient) -> ScratchClient:
    """With /a/b/c and /d, and both kinds declared."""
    fs.mkdirs("/a/b/c")
    fs.mkdirs("/d")
    fs.declare_xattr(PATH, "follow-path")
    fs.declare_xattr(DATA, "stay-with-data")
    return fs


def values(fs: ScratchClient, name: str, *paths: str) -> list[bytes | None]:
    return [fs.get_xattrs(path).get(name) for path in paths]


@pytest.mark.parametrize("name", [PATH, DATA])
def test_the_latest_operation_holds_for_everything_below(tree: ScratchClient, name: str) -> None:
    tree.set_xattr("/a/b", name, RED)
    assert values(tree, name, "/a", "/a/b", "/a/b/c") == [None, RED, RED]
    tree.set_xattr("/a", name, BLUE)
    tree.create("/a/b/c/new")
    assert values(tree, name, "/a/b", "/a/b/c/new") == [BLUE, BLUE]
    assert tree.list_xattrs("/a/b/c") == [name]
    tree.remove_xattr("/a", name)
    assert values(tree, name, "/a", "/a/b", "/a/b/c/new") == [None] * 3
    with pytest.raises(XAttrNotFoundException):
        tree.get_xattrs("/a/b", [name])


@pytest.mark.parametrize("name", [PATH, DATA])
def test_a_removal_is_remembered(tree: ScratchClient, name: str) -> None:
    tree.set_xattr("/a", name, RED)
    tree.remove_xattr("/a/b", name)
    assert values(tree, name, "/a", "/a/b", "/a/b/c") == [RED, None, None]
    tree.remove_xattr("/d", name)  # though there is none: below there might be
    tree.unset_xattr("/a/b", name)
    assert values(tree, name, "/a/b", "/a/b/c") == [RED, RED]


def test_what_is_moved_takes_the_path_s_and_keeps_the_data_s(tree: ScratchClient) -> None:
    for name in (PATH, DATA):
        tree.set_xattr("/a", name, RED)
        tree.set_xattr("/d", name, BLUE)
    tree.rename("/a/b", "/d/b")
    assert values(tree, PATH, "/d/b", "/d/b/c") == [BLUE, BLUE]
    assert values(tree, DATA, "/d/b", "/d/b/c") == [RED, RED]
    tree.set_xattr("/d", DATA, b"green")
    assert values(tree, DATA, "/d/b/c") == [b"green"]


def test_nothing_is_written_until_the_first_value_is_set(tree: ScratchClient) -> None:
    tree.rename("/a/b", "/d/b")
    assert tree.dump()["/d/b"].inode.renamed == 0
    tree.set_xattr("/a", PATH, RED)
    tree.rename("/d/b", "/a/b")
    assert tree.dump()["/a/b"].inode.is_unstamped  # as it is stored
    assert values(tree, PATH, "/a/b/c") == [RED]


def test_flags_look_at_what_is_inherited(tree: ScratchClient) -> None:
    with pytest.raises(IOException, match="does not exist"):
        tree.set_xattr("/a/b", PATH, RED, FLAG_REPLACE)
    tree.set_xattr("/a", PATH, RED, FLAG_CREATE)
    with pytest.raises(IOException, match="already exists"):
        tree.set_xattr("/a/b", PATH, BLUE, FLAG_CREATE)
    tree.set_xattr("/a/b", PATH, BLUE, FLAG_REPLACE)
    tree.remove_xattr("/a/b", PATH)
    tree.set_xattr("/a/b", PATH, RED, FLAG_CREATE)
    assert values(tree, PATH, "/a/b/c") == [RED]


def test_an_empty_value_is_a_value(tree: ScratchClient) -> None:
    tree.set_xattr("/a", PATH)
    assert tree.get_xattrs("/a/b/c") == {PATH: b""}


def test_the_limit_is_of_what_is_set_here(tree: ScratchClient) -> None:
    for number in range(XATTRS_PER_INODE_MAX - 1):
        tree.set_xattr("/a", f"user.{number}", b"")
    tree.set_xattr("/a", PATH, RED)
    tree.set_xattr("/a", PATH, BLUE)
    with pytest.raises(IOException, match="would exceed limit of 32"):
        tree.set_xattr("/a", DATA, RED)
    tree.remove_xattr("/a", PATH)  # what was removed does not count
    tree.set_xattr("/a", DATA, RED)
    tree.set_xattr("/a/b", PATH, RED)


def test_who_may_set_it_is_as_with_others(tree: ScratchClient) -> None:
    tree.declare_xattr("trusted.t", "follow-path")
    tree.set_xattr("/a", "trusted.t", RED)
    tree.set_xattr("/a", PATH, RED)
    ada = tree.user("ada")
    assert ada.get_xattrs("/a/b") == {PATH: RED}
    assert tree.get_xattrs("/a/b") == {PATH: RED, "trusted.t": RED}
    for call in (ada.remove_xattr, ada.unset_xattr, ada.set_xattr):
        with pytest.raises(AccessControlException):
            call("/a/b", PATH)
        with pytest.raises(AccessControlException):
            call("/a/b", "trusted.t")


def test_unset_is_for_what_is_inherited_and_exists(tree: ScratchClient) -> None:
    with pytest.raises(HadoopIllegalArgumentException, match="not inherited"):
        tree.unset_xattr("/a", "user.local")
    with pytest.raises(FileNotFoundException):
        tree.unset_xattr("/nothing", PATH)


@pytest.mark.parametrize("name", [PATH, DATA])
def test_snapshots_show_what_was_inherited_then(tree: ScratchClient, name: str) -> None:
    tree.allow_snapshot("/a/b")
    tree.set_xattr("/a", name, RED)
    tree.create_snapshot("/a/b", "s")
    tree.set_xattr("/a", name, BLUE)
    assert values(tree, name, "/a/b/.snapshot/s", "/a/b/.snapshot/s/c") == [RED, RED]
    assert values(tree, name, "/a/b", "/a/b/c") == [BLUE, BLUE]
    tree.clone_snapshot("/a/b", "s", "/d/clone")
    expected = None if name == PATH else RED
    assert values(tree, name, "/d/clone", "/d/clone/c") == [expected, expected]
    tree.rollback_snapshot("/a/b", "s")
    assert values(tree, name, "/a/b", "/a/b/c") == [RED, RED]
    tree.rename_snapshot("/a/b", "s", "t")
    assert values(tree, name, "/a/b/.snapshot/t/c") == [RED]
    clean(tree)


def test_a_diff_tells_what_was_set_here_and_not_what_was_kept(tree: ScratchClient) -> None:
    tree.allow_snapshot("/a")
    tree.set_xattr("/a", DATA, RED)
    tree.create_snapshot("/a", "s")
    tree.rename("/a/b/c", "/a/c")
    moved = {(each.kind, each.path) for each in tree.snapshot_diff("/a", "s")}
    assert (DiffKind.RENAMED, (b"b", b"c")) in moved
    assert (DiffKind.MODIFIED, (b"b", b"c")) not in moved
    tree.set_xattr("/a/c", PATH, RED)
    changed = {(each.kind, each.path) for each in tree.snapshot_diff("/a", "s")}
    assert (DiffKind.MODIFIED, (b"b", b"c")) in changed
    clean(tree)


def test_one_row_is_written_whatever_is_below(fs: ScratchClient) -> None:
    for number in range(300):
        fs.create(f"/big/{number}")
    fs.declare_xattr(PATH, "follow-path")
    before = fs.dump()
    fs.set_xattr("/big", PATH, RED)
    assert changed(before, fs.dump()) == {"/", "/big"}  # the root: that it is used at all
    before = fs.dump()
    fs.set_xattr("/big", PATH, BLUE)
    assert changed(before, fs.dump()) == {"/big"}
    before = fs.dump()
    fs.remove_xattr("/big", PATH)
    assert changed(before, fs.dump()) == {"/big"}
    assert values(fs, PATH, "/big/7") == [None]


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {path for path in after if before[path].since != after[path].since}


# Calls that arrive together, and see what is not committed yet.


def call_together(
    fs: ScratchClient, *calls: tuple[Operation[Any], tuple[Any, ...]]
) -> list[BaseException | Any]:
    """All in one turn of the runner; their answers."""

    async def run_all() -> list[BaseException | Any]:
        namenode = fs.namenode.namenode
        pending = [namenode.call(each, fs.caller, *arguments) for each, arguments in calls]
        return await asyncio.gather(*pending, return_exceptions=True)

    return fs.namenode.wait(run_all())


def test_calls_see_what_is_not_committed_yet(tree: ScratchClient) -> None:
    """Under the optimistic control they run on each other's changes, whose TxIDs are not known."""
    b, moved, a, d = map(FsPath.parse, ("/a/b", "/d/b", "/a", "/d"))
    name = XAttrName.parse(DATA)
    both = FLAG_CREATE | FLAG_REPLACE
    for value in (RED, BLUE):
        answers = call_together(
            tree,
            (xattrs.set_xattr, (a, name, value, both)),
            (xattrs.set_xattr, (d, name, b"other", both)),
            (rename.rename2, (b, moved, 0)),
            (attributes.set_permission, (moved, 0o700)),
            (xattrs.set_xattr, (moved, XAttrName.parse("user.local"), value, both)),
            (xattrs.get_xattrs, (moved,)),
            (rename.rename2, (moved, b, 0)),
            (xattrs.get_xattrs, (b,)),
        )
        failures = [each for each in answers if isinstance(each, BaseException)]
        # Whatever the order in which they were taken up, what is there is of one of them.
        assert all(isinstance(each, FileNotFoundException) for each in failures)
        for path in ("/a/b", "/d/b"):
            if tree.exists(path):
                check_explained(tree, path)
        if tree.exists("/d/b"):
            tree.rename2("/d/b", "/a/b")


def check_explained(fs: ScratchClient, path: str) -> None:
    """What is shown is what the operation of the highest TxID that reaches it has decided."""
    (found,) = fs.explain_xattrs(path, [DATA])
    assert found.value == fs.get_xattrs(path).get(DATA)
    assert found.way[-1].decided.value == found.value
    assert not any(fs.dump()[path].inode.stamped(1).is_unstamped for path in ("/", "/a", "/d"))


def test_a_rename_and_a_set_above_it_have_an_order(tree: ScratchClient) -> None:
    """Who comes first is told by their TxIDs, and the value is that of this order."""
    name = XAttrName.parse(DATA)
    both = FLAG_CREATE | FLAG_REPLACE
    tree.set_xattr("/a", DATA, b"0")
    source, target = FsPath.parse("/a/b"), FsPath.parse("/d/b")
    for number in range(1, 20):
        value = str(number).encode()
        calls = [
            (rename.rename2, (source, target, 0)),
            (xattrs.set_xattr, (FsPath.parse("/a"), name, value, both)),
        ]
        answers = call_together(tree, *(calls if number % 2 else reversed(calls)))
        assert answers == [None, None]
        set_at = tree.explain_xattrs("/a", [DATA])[0].reasons[0].txid
        moved = tree.explain_xattrs("/d/b", [DATA])[0]
        expected = value if set_at < moved.way[-1].renamed else str(number - 1).encode()
        assert values(tree, DATA, "/d/b", "/d/b/c") == [expected, expected]
        tree.rename2("/d/b", "/a/b")
        tree.set_xattr("/a", DATA, value)


# Why it is so.


def explain(fs: ScratchClient, path: str, name: str) -> Explanation:
    (found,) = fs.explain_xattrs(path, [name])
    assert found.value == fs.get_xattrs(path).get(name)
    return found


def causes(found: Explanation) -> list[tuple[Cause, str]]:
    return [(reason.cause, reason.path) for reason in found.reasons]


def test_explanations_name_the_operations(tree: ScratchClient) -> None:
    assert causes(explain(tree, "/a/b/c", PATH)) == []
    for name in (PATH, DATA):
        tree.set_xattr("/a", name, RED)
    found = explain(tree, "/a/b/c", PATH)
    assert causes(found) == [(Cause.SET, "/a")]
    assert [step.path for step in found.way] == ["/", "/a", "/a/b", "/a/b/c"]
    assert found.reasons[0].txid == found.way[-1].decided.txid == found.way[1].row.set
    tree.remove_xattr("/a/b", PATH)
    assert causes(explain(tree, "/a/b/c", PATH)) == [(Cause.REMOVED, "/a/b")]
    tree.unset_xattr("/a/b", PATH)
    assert causes(explain(tree, "/a/b/c", PATH)) == [(Cause.UNSET, "/a/b")]
    tree.set_xattr("/d", PATH, BLUE)
    tree.rename("/a/b", "/d/b")
    assert causes(explain(tree, "/d/b/c", PATH)) == [(Cause.RENAMED, "/d/b"), (Cause.SET, "/d")]
    kept = explain(tree, "/d/b/c", DATA)
    assert causes(kept) == [(Cause.KEPT, "/d/b")]
    assert kept.reasons[0].txid == explain(tree, "/a", DATA).reasons[0].txid
    tree.set_xattr("/d/b/c", "user.local", RED)
    assert causes(explain(tree, "/d/b/c", "user.local")) == [(Cause.SET, "/d/b/c")]
    names = [str(each.name) for each in tree.explain_xattrs("/d/b/c")]
    assert names == [DATA, "user.local", PATH]


def test_explanations_in_a_snapshot(tree: ScratchClient) -> None:
    tree.set_xattr("/a", PATH, RED)
    tree.allow_snapshot("/a/b")
    tree.create_snapshot("/a/b", "s")
    tree.set_xattr("/a", PATH, BLUE)
    found = explain(tree, "/a/b/.snapshot/s/c", PATH)
    assert causes(found) == [(Cause.ABOVE_SNAPSHOT, "/a/b/.snapshot/s")]
    assert [step.path for step in found.way] == ["/a/b/.snapshot/s", "/a/b/.snapshot/s/c"]
    clean(tree)


def test_explanations_are_for_those_who_may_look(tree: ScratchClient) -> None:
    tree.declare_xattr("trusted.t", "follow-path")
    tree.set_xattr("/a", "trusted.t", RED)
    assert tree.user("ada").explain_xattrs("/a")[0].name.name == "data"
    with pytest.raises(AccessControlException):
        tree.user("ada").explain_xattrs("/a", ["trusted.t"])
    tree.set_permission("/a/b", 0o700)
    with pytest.raises(AccessControlException):
        tree.user("ada").explain_xattrs("/a/b")
    with pytest.raises(FileNotFoundException):
        tree.explain_xattrs("/nothing")
