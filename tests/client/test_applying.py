"""A copy of one snapshot becomes the other one, by the changes between them, on a real cluster."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from tests.snapshots.histories import NAMES, OUTSIDE, TOP, History

import cairnfs
from cairnfs.client.applying import apply_changes
from cairnfs.client.records import ChangeKind, FileType
from cairnfs.errors import FileNotFoundException, SnapshotException

NOW = ""


class NoClock:
    def advance(self, milliseconds: int) -> None:
        pass


class Calls:
    """The calls of a history, made with the Python client."""

    def __init__(self, fs: cairnfs.FileSystem, seed: int) -> None:
        self._fs = fs
        self._random = random.Random(seed)
        self.clock = NoClock()
        for name in ("allow_snapshot", "create_snapshot", "rename", "delete", "truncate", "exists"):
            setattr(self, name, getattr(fs, name))
        for name in ("set_permission", "set_owner", "set_times", "set_replication"):
            setattr(self, name, getattr(fs, name))
        for name in ("modify_acl_entries", "remove_acl", "create_symlink", "mkdirs"):
            setattr(self, name, getattr(fs, name))
        self.rollback_snapshot = fs.rollback_snapshot

    def write(self, path: str, *lengths: int) -> None:
        with self._fs.create(path, overwrite=True) as file:
            file.write(self._random.randbytes(sum(lengths)))

    def append(self, path: str) -> None:
        with self._fs.append(path) as file:
            file.write(self._random.randbytes(3))

    def write_blocks(self, path: str, *lengths: int) -> None:
        """It was written when it was appended to."""

    def complete(self, path: str, last: None) -> None:
        """It was closed then, too."""

    def info(self, path: str) -> object:
        return self._fs.get_file_status(path)

    def names(self, path: str) -> list[str]:
        return [status.name for status in self._fs.list_status(path)]


def read_tree(fs: cairnfs.FileSystem, top: str) -> dict[str, tuple[object, ...]]:
    """All that can be seen of everything at and below a path; the top has its own time."""
    tree = {}
    todo = [""]
    while todo:
        below = todo.pop()
        path = top + below
        status = fs.get_file_link_info(path)
        assert status is not None
        tree[below] = (
            *(status.type, status.mode, status.owner, status.group, status.replication),
            status.mtime_ms if below and not status.is_symlink else 0,
            fs.get_acl_status(path).entries if status.has_acl else [],
            fs.open(path).read() if status.is_file else status.target,
        )
        if status.is_directory:
            todo += [f"{below}/{status.name}" for status in fs.list_status(path)]
    return tree


@pytest.fixture
def emptied(fs: cairnfs.FileSystem) -> Iterator[cairnfs.FileSystem]:
    yield fs
    for snapshot in fs.list_snapshots(TOP):
        fs.delete_snapshot(TOP, snapshot.status.name)
    for status in fs.list_status("/"):
        fs.delete(status.path, recursive=True)


def test_a_copy_becomes_what_the_other_snapshot_is(emptied: cairnfs.FileSystem) -> None:
    fs = emptied
    history = History(Calls(fs, 7), 7, with_clones=False)  # type: ignore[arg-type]
    for _ in range(2):
        history.run(15)
        history.snapshot()
    history.run(15)
    names = (*history.snapshots, NOW)
    applied = 0
    for number, (old, new) in enumerate(itertools.permutations(names, 2)):
        if not old:
            continue  # of the present there is no copy in an instant
        copy = f"/copy-{number}"
        new_state = f"{TOP}/.snapshot/{new}" if new else TOP
        fs.clone_snapshot(TOP, old, copy)
        applied += apply_changes(fs.snapshot_changes(TOP, old, new), fs, new_state, fs, copy)
        assert read_tree(fs, copy) == read_tree(fs, new_state)
        assert fs.get_file_status(copy).mtime_ms == fs.get_file_status(new_state).mtime_ms
    assert applied > 10


def test_names_that_were_exchanged(emptied: cairnfs.FileSystem) -> None:
    """Of directories that were turned inside out, too, and with one name taken again."""
    fs = emptied
    for name in NAMES:
        fs.mkdirs(f"{TOP}/{name}/below")
        with fs.create(f"{TOP}/{name}/file") as file:
            file.write(name.encode())
    fs.mkdirs(OUTSIDE)
    fs.allow_snapshot(TOP)
    fs.create_snapshot(TOP, "old")
    fs.rename(f"{TOP}/a", f"{TOP}/third")
    fs.rename(f"{TOP}/b", f"{TOP}/a")
    fs.rename(f"{TOP}/third", f"{TOP}/b")
    fs.rename(f"{TOP}/c/below", f"{TOP}/turned")
    fs.rename(f"{TOP}/c", f"{TOP}/turned/below")
    fs.mkdirs(f"{TOP}/c")
    fs.rename(f"{TOP}/e/file", f"{TOP}/c/saved")
    fs.delete(f"{TOP}/e", recursive=True)
    fs.create_snapshot(TOP, "new")
    changes = list(fs.snapshot_changes(TOP, "old", "new"))
    told = [(change.kind.name, change.path, change.other) for change in changes]
    assert told == [
        ("MOVED_OUT", "a", "b"),
        ("MOVED_OUT", "b", "a"),
        ("MOVED_OUT", "c/below", "turned"),
        ("MOVED_OUT", "c", "turned/below"),
        ("MOVED_OUT", "e/file", "c/saved"),
        ("DELETED", "e", None),
        ("MOVED_IN", "a", "b"),
        ("MOVED_IN", "b", "a"),
        ("CREATED", "c", None),
        ("MOVED_IN", "c/saved", "e/file"),
        ("MOVED_IN", "turned", "c/below"),
        ("MODIFIED", "turned", None),
        ("MOVED_IN", "turned/below", "c"),
        ("MODIFIED", "turned/below", None),
    ]
    assert {change.type for change in changes} == {FileType.DIRECTORY, FileType.FILE}
    for old, new in (("old", "new"), ("new", "old")):
        fs.clone_snapshot(TOP, old, f"/copy-{new}")
        state = f"{TOP}/.snapshot/{new}"
        apply_changes(fs.snapshot_changes(TOP, old, new), fs, state, fs, f"/copy-{new}")
        assert read_tree(fs, f"/copy-{new}") == read_tree(fs, state)


def test_what_is_no_copy_of_the_old_state(emptied: cairnfs.FileSystem) -> None:
    fs = emptied
    fs.mkdirs(f"{TOP}/a")
    fs.mkdirs("/other")
    fs.allow_snapshot(TOP)
    fs.create_snapshot(TOP, "old")
    fs.delete(f"{TOP}/a", recursive=True)
    changes = list(fs.snapshot_changes(TOP, "old"))
    assert [(change.kind, change.path) for change in changes] == [(ChangeKind.DELETED, "a")]
    with pytest.raises(FileNotFoundException, match="/other/a is not there to be deleted"):
        apply_changes(changes, fs, TOP, fs, "/other")
    with pytest.raises(SnapshotException, match="with name nothing"):
        list(fs.snapshot_changes(TOP, "nothing"))
