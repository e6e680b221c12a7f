"""What happened between snapshots: five categories, their transactions, their order, and pages."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from cairnfs.errors import AccessControlException, FileNotFoundException, SnapshotException
from cairnfs.namenode.reclaiming import SETTLING_MS
from cairnfs.namesystem import snapshot_changes, snapshot_diff
from cairnfs.namesystem.snapshot_changes import Change
from cairnfs.testing.scratch import ScratchClient

Told = list[tuple[str, ...]]


def tell(changes: Iterator[Change]) -> Told:
    told = []
    for change in changes:
        paths = (change.path,) if change.other is None else (change.path, change.other)
        told.append((change.kind.name, *(b"/".join(path).decode() for path in paths)))
    return told


def last_txid(fs: ScratchClient) -> int:
    return fs.namenode.wait(fs.namenode.namenode.store.last_txid())


@pytest.fixture
def tree(fs: ScratchClient) -> Iterator[ScratchClient]:
    fs.mkdirs("/d/x/deep")
    fs.mkdirs("/d/y")
    fs.mkdirs("/outside/from/below")
    fs.write("/d/a", 10)
    fs.write("/d/x/b", 30)
    fs.write("/d/x/deep/c")
    fs.write("/outside/file", 1)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    yield fs
    for snapshot in fs.list_snapshots("/d"):
        fs.delete_snapshot("/d", snapshot.name.decode())


def test_nothing_has_happened(tree: ScratchClient) -> None:
    tree.create_snapshot("/d", "s2")
    tree.write("/outside/new", 1)
    for old, new in (("s1", "s1"), ("s1", "s2"), ("s2", "s1"), ("s1", ""), ("", "s1"), ("", "")):
        assert tell(tree.snapshot_changes("/d", old, new)) == []


def test_each_category_with_its_transaction(tree: ScratchClient) -> None:
    """Each call is one transaction; what is told of both ends of a move is the same one."""
    wanted: dict[tuple[str, ...], int] = {}

    def note(*told: tuple[str, ...]) -> None:
        wanted.update(dict.fromkeys(told, last_txid(tree)))

    tree.mkdirs("/d/new")
    note(("CREATED", "new"))
    tree.delete("/d/a")
    note(("DELETED", "a"))
    tree.set_permission("/d/x/b", 0o600)
    note(("MODIFIED", "x/b"))
    tree.rename("/d/y", "/d/z")
    note(("MOVED_OUT", "y", "z"), ("MOVED_IN", "z", "y"))
    tree.rename("/outside/from", "/d/from")
    note(("MOVED_IN", "from"), ("MOVED_IN", "from/below"))
    tree.rename("/outside/file", "/d/between")
    tree.rename("/d/between", "/d/file")
    note(("MOVED_IN", "file"))
    tree.rename("/d/x/deep", "/outside/deep")
    note(("MOVED_OUT", "x/deep"), ("MODIFIED", "x"))
    for new in ("", "s2"):
        found = list(tree.snapshot_changes("/d", "s1", new))
        assert dict(zip(tell(iter(found)), (each.txid for each in found), strict=True)) == wanted
        tree.create_snapshot("/d", f"s{2 if not new else 3}")


def test_what_leaves_is_told_first_and_what_arrives_by_its_path(tree: ScratchClient) -> None:
    tree.mkdirs("/d/z")
    tree.rename("/d/x/deep", "/d/z/deep")
    tree.rename("/d/x", "/d/z/deep/x")
    tree.write("/d/x", 1)
    wanted = [
        ("MOVED_OUT", "x/deep", "z/deep"),
        ("MOVED_OUT", "x", "z/deep/x"),
        ("CREATED", "x"),
        ("CREATED", "z"),
        ("MOVED_IN", "z/deep", "x/deep"),
        ("MODIFIED", "z/deep"),
        ("MOVED_IN", "z/deep/x", "x"),
        ("MODIFIED", "z/deep/x"),
    ]
    assert tell(tree.snapshot_changes("/d", "s1")) == wanted
    tree.create_snapshot("/d", "s2")
    assert tell(tree.snapshot_changes("/d", "s1", "s2")) == wanted
    assert tell(tree.snapshot_changes("/d", "s2", "s1")) == [
        ("DELETED", "x"),
        ("MOVED_OUT", "z/deep/x", "x"),
        ("MOVED_OUT", "z/deep", "x/deep"),
        ("DELETED", "z"),
        ("MOVED_IN", "x", "z/deep/x"),
        ("MODIFIED", "x"),
        ("MOVED_IN", "x/deep", "z/deep"),
        ("MODIFIED", "x/deep"),
    ]


def test_out_of_a_directory_that_is_deleted(tree: ScratchClient) -> None:
    tree.rename("/d/x/deep", "/d/deep")
    tree.delete("/d/x", recursive=True)
    assert tell(tree.snapshot_changes("/d", "s1")) == [
        ("MOVED_OUT", "x/deep", "deep"),
        ("DELETED", "x"),
        ("MOVED_IN", "deep", "x/deep"),
    ]


def test_whether_content_is_another_one(tree: ScratchClient) -> None:
    tree.set_permission("/d/a", 0o600)
    tree.append("/d/x/b")
    last = tree.get_block_locations("/d/x/b").blocks[-1].block
    tree.complete("/d/x/b", msgspec.structs.replace(last, length_bytes=35))
    tree.set_times("/d/x/deep/c", 7)
    found = list(tree.snapshot_changes("/d", "s1"))
    rewritten = {b"/".join(change.path): change.is_rewritten for change in found}
    assert rewritten == {b"a": False, b"x/b": True, b"x/deep/c": False}


def test_after_a_roll_back_nothing_is_different(tree: ScratchClient) -> None:
    tree.delete("/d/x", recursive=True)
    tree.write("/d/new", 3)
    tree.create_snapshot("/d", "s2")
    tree.rollback_snapshot("/d", "s1")
    assert tell(tree.snapshot_changes("/d", "s1")) == []
    assert {each[:2] for each in tell(tree.snapshot_changes("/d", "s2"))} == {
        ("DELETED", "new"),
        ("CREATED", "x"),
        ("CREATED", "x/b"),
        ("CREATED", "x/deep"),
        ("CREATED", "x/deep/c"),
    }
    for name in ("s1", "s2"):
        tree.delete_snapshot("/d", name)
    tree.delete("/d", recursive=True)  # which would need its past as long as it is there
    tree.mkdirs("/d")
    tree.allow_snapshot("/d")
    tree.clock.advance(SETTLING_MS)


def test_of_a_file(tree: ScratchClient) -> None:
    tree.set_permission("/d/a", 0o600)
    assert tell(tree.snapshot_changes("/d/a", "s1")) == [("MODIFIED", "")]
    assert tell(tree.snapshot_changes("/d/x/b", "s1")) == []


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_pages(fast_fs: ScratchClient, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page ends after so many changes, or after so many names that were looked at."""
    fs = fast_fs
    for number in range(12):
        fs.mkdirs(f"/d/{number:02}/below")
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s1")
    for number in range(0, 12, 2):
        fs.rename(f"/d/{number:02}/below", f"/d/{number + 1:02}/moved")
        fs.write(f"/d/new-{number}", 1)
    fs.create_snapshot("/d", "s2")
    changes = list(fs.snapshot_changes("/d", "s1", "s2"))
    differences = list(fs.snapshot_diff("/d", "s1", "s2"))
    assert len(changes) == 6 * 2 + 6 + 12
    assert list(fs.snapshot_changes("/d", "s1", "s2", limit)) == changes
    assert list(fs.snapshot_diff("/d", "s1", "s2", limit)) == differences
    for module in (snapshot_changes, snapshot_diff):
        monkeypatch.setattr(module, "LOOKS_MAX", limit)
    assert list(fs.snapshot_changes("/d", "s1", "s2")) == changes
    assert list(fs.snapshot_diff("/d", "s1", "s2")) == differences
    for name in ("s1", "s2"):
        fs.delete_snapshot("/d", name)


def test_too_many_to_be_told_up_to_the_present(
    tree: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_changes, "PRESENT_LIMIT", 2)
    for name in "klm":
        tree.write(f"/d/{name}")
    with pytest.raises(SnapshotException, match="more than 2 changes of /d between snapshot s1"):
        list(tree.snapshot_changes("/d", "s1"))
    tree.create_snapshot("/d", "s2")
    assert len(list(tree.snapshot_changes("/d", "s1", "s2"))) == 3


# Who may see it, and what is not there.


@pytest.mark.parametrize("name", ["snapshot_changes", "snapshot_diff"])
class TestRefused:
    def test_what_cannot_be_read_below(self, tree: ScratchClient, name: str) -> None:
        """Also if it cannot be read on one side only, or nothing has changed there."""
        tree.set_owner("/d/y", "ada")
        tree.set_permission("/d/y", 0o700)
        tree.create_snapshot("/d", "s2")
        assert list(getattr(tree.user("ada"), name)("/d", "s1"))
        for old, new in (("s1", "s2"), ("s2", "s1"), ("s1", "")):
            with pytest.raises(AccessControlException, match="/d/y"):
                list(getattr(tree.user("bob"), name)("/d", old, new))
        tree.set_permission("/d/y", 0o755)
        with pytest.raises(AccessControlException, match="/d/y"):
            list(getattr(tree.user("bob"), name)("/d", "s2", ""))
        assert list(getattr(tree.user("bob"), name)("/d", "s1", ""))
        assert list(getattr(tree.user("bob"), name)("/d/x", "s1", "s2")) == []

    def test_a_page_in_the_middle(self, tree: ScratchClient, name: str) -> None:
        """Who makes up a cursor sees no more than others."""
        module = {"snapshot_changes": snapshot_changes, "snapshot_diff": snapshot_diff}[name]
        tree.write("/d/x/secret", 1)
        tree.set_permission("/d/x", 0o700)
        tree.create_snapshot("/d", "s2")
        bob = tree.user("bob")
        place: object = snapshot_changes.Position(False, (b"w",))
        if name == "snapshot_diff":
            place = snapshot_diff.Position((b"w",), (True, False))
        path = snapshot_changes.FsPath.parse("/d")
        with pytest.raises(AccessControlException, match="/d/x"):
            bob._call(getattr(module, name), path, "s1", "s2", place)

    def test_what_is_not_there(self, tree: ScratchClient, name: str) -> None:
        tree.mkdirs("/d/later")
        tree.create_snapshot("/d", "s2")
        tree.delete("/d/y")
        call = getattr(tree, name)
        for path, old, new, error, words in (
            ("/d", "nothing", "", SnapshotException, "of directory /d with name nothing"),
            ("/d", "s1", "nothing", SnapshotException, "of directory /d with name nothing"),
            ("/d", "nothing", "nothing", SnapshotException, "with name nothing"),
            ("/outside", "s1", "", SnapshotException, "neither snapshottable nor under"),
            ("/nowhere", "s1", "", FileNotFoundException, "does not exist: /nowhere"),
            ("/d/nowhere", "s1", "", FileNotFoundException, "does not exist: /d/nowhere"),
            ("/d/later", "s1", "s2", FileNotFoundException, "was not in the snapshot s1"),
            ("/d/later", "s1", "", FileNotFoundException, "/d/later was not in the snapshot s1"),
            ("/d/y", "s1", "", FileNotFoundException, "/d/y is not there now"),
        ):
            with pytest.raises(error, match=words):
                list(call(path, old, new))

    def test_what_is_gone_by_now_is_found_where_it_was(
        self, tree: ScratchClient, name: str
    ) -> None:
        tree.write("/d/x/deep/new", 1)
        tree.create_snapshot("/d", "s2")
        tree.delete("/d/x", recursive=True)
        paths = {each.path for each in getattr(tree, name)("/d/x/deep", "s1", "s2")}
        assert (b"new",) in paths
