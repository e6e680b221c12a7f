"""Random histories of one tree with snapshots, and what it was at each of them.

A state is read through `.snapshot`, as anybody sees it: so whether changes lead from one state
to another does not depend on how they were found.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from cairnfs.errors import HdfsError
from cairnfs.namesystem.inodes import Kind
from cairnfs.namesystem.snapshot_changes import Change, ChangeKind
from cairnfs.testing.scratch import ScratchClient

TOP = "/d"
NAMES = ("a", "b", "c", "e")
OUTSIDE = "/outside"
NOW = ""  # as the name of a snapshot
LEAVING = (ChangeKind.MOVED_OUT, ChangeKind.DELETED)

Names = tuple[bytes, ...]


class Seen(NamedTuple):
    """All that can be seen of an inode, without what is below it."""

    kind: Kind
    mode: int
    owner: str
    group: str
    mtime_ms: int
    replication: int
    length_bytes: int
    blocks: tuple[object, ...]
    acl: tuple[object, ...]
    target: str | None


State = dict[Names, Seen]


def where(name: str, top: str = TOP) -> str:
    """The tree in a snapshot, or now."""
    return f"{top}/.snapshot/{name}" if name else top


def read_ids(fs: ScratchClient, top: str) -> dict[int, str]:
    """The path of each inode at and below a path."""
    paths: dict[int, str] = {}
    todo = [top]
    while todo:
        path = todo.pop()
        status = fs.info(path)
        if status.kind is not Kind.SYMLINK:  # which calls would follow
            paths[status.id] = path
        if status.is_directory:
            todo += [f"{path}/{name}" for name in fs.names(path)]
    return paths


def read_state(fs: ScratchClient, top: str) -> State:
    """Everything at and below a path."""
    state: State = {}
    todo: list[tuple[str, Names]] = [(top, ())]
    while todo:
        path, names = todo.pop()
        status = fs.info(path)
        acl = fs.get_acl_status(path).entries if status.has_acl else ()
        blocks: tuple[object, ...] = ()
        if status.kind is Kind.FILE:
            located = fs.get_block_locations(path)
            blocks = tuple((each.block.id, each.block.length_bytes) for each in located.blocks)
        state[names] = Seen(
            status.kind,
            status.mode,
            status.owner,
            status.group,
            status.mtime_ms,
            status.replication,
            status.length_bytes,
            blocks,
            tuple(acl),
            status.target,
        )
        if status.is_directory:
            todo += [(f"{path}/{name}", (*names, name.encode())) for name in fs.names(path)]
    return state


def apply(before: State, after: State, changes: Iterable[Change]) -> State:
    """One change after the other; whatever is not as it has to be for one, fails."""
    state = dict(before)
    aside: dict[int, State] = {}

    def check_free(path: Names) -> None:
        assert path not in state, f"{path} is still there"
        assert state[path[:-1]].kind is Kind.DIRECTORY, f"no directory for {path}"

    for change in changes:
        path = change.path
        if change.kind in LEAVING:
            below = {each[len(path) :]: state[each] for each in state if each[: len(path)] == path}
            assert below, f"{path} is not there to be taken away"
            for each in below:
                del state[path + each]
            if change.other is not None:
                aside[change.inode_id] = below
        elif change.kind is ChangeKind.MOVED_IN and change.other is not None:
            check_free(path)
            for each, seen in aside.pop(change.inode_id).items():
                state[path + each] = seen
        elif change.kind is ChangeKind.MODIFIED:
            assert path in state, f"{path} is not there to be modified"
            if change.inode_kind is not Kind.DIRECTORY:
                assert state[path] != after[path], f"{path} is not modified"
            state[path] = after[path]
        else:
            check_free(path)
            state[path] = after[path]
    assert not aside, f"{aside} were never moved in"
    return state


def without_root_time(state: State) -> State:
    """Taking a snapshot touches the directory, which is no change."""
    return {**state, (): state[()]._replace(mtime_ms=0)}


class History:
    """A tree that changes at random."""

    def __init__(
        self, fs: ScratchClient, seed: int, *, top: str = TOP, with_clones: bool = True
    ) -> None:
        self.fs = fs
        self.top = top
        self.tops = (top, OUTSIDE)
        self.with_clones = with_clones
        self.went_back = False
        self.random = random.Random(seed)
        self.snapshots: list[str] = []
        for path in self.tops:
            if not fs.exists(path):
                self.fill(path)
        fs.allow_snapshot(top)

    def fill(self, path: str) -> None:
        for name in NAMES[:3]:
            self.fs.mkdirs(f"{path}/{name}/{name}")
            self.fs.write(f"{path}/{name}/e", 1)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            with suppress(HdfsError):  # some are refused
                self.step()

    def step(self) -> None:
        choice = self.random.choices(
            (
                self.make,
                self.write,
                self.remove,
                self.rename,
                self.exchange,
                self.set,
                self.go_back,
            ),
            (5, 6, 4, 10, 3, 5, 1),
        )[0]
        self.fs.clock.advance(self.random.choice((0, 1, 1000)))
        choice()

    def snapshot(self) -> None:
        name = f"s{len(self.snapshots)}"
        self.fs.create_snapshot(self.top, name)
        self.snapshots.append(name)

    def path(self) -> str:
        """A place in the tree, now and then outside of it."""
        top = self.random.choices(self.tops, (9, 1))[0]
        depth = self.random.choice((1, 1, 2, 2, 3))
        return "/".join((top, *(self.random.choice(NAMES) for _ in range(depth))))

    def existing(self) -> str:
        """Something that is there, if there is anything."""
        path = self.random.choices(self.tops, (9, 1))[0]
        for _ in range(self.random.choice((1, 1, 2, 3))):
            names = self.fs.names(path) if self.fs.info(path).is_directory else []
            if not names:
                break
            path = f"{path}/{self.random.choice(names)}"
        return path

    def make(self) -> None:
        self.fs.mkdirs(self.path())

    def write(self) -> None:
        path = self.path()
        if self.random.random() < 0.3:
            path = self.existing()
            self.fs.append(path)
            self.fs.complete(path, self.fs.write_blocks(path, self.random.randint(1, 9)))
        else:
            self.fs.write(path, *([self.random.randint(1, 9)] * self.random.randint(0, 2)))

    def remove(self) -> None:
        path = self.existing()
        if path not in self.tops:
            self.fs.delete(path, recursive=True)

    def rename(self) -> None:
        path = self.existing()
        if path not in self.tops:
            self.fs.rename(path, self.path())

    def exchange(self) -> None:
        """Two places, by way of a third name."""
        one, other = self.existing(), self.existing()
        if f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/"):
            return
        if set(self.tops) & {one, other}:
            return
        if self.fs.rename(one, f"{self.top}/between"):
            self.fs.rename(other, one)
            self.fs.rename(f"{self.top}/between", other)
            self.fs.delete(f"{self.top}/between", recursive=True)

    def set(self) -> None:
        path = self.existing()
        self.random.choice(
            (
                lambda: self.fs.set_permission(path, self.random.choice((0o700, 0o755, 0o644))),
                lambda: self.fs.set_owner(path, self.random.choice(("ada", "bob"))),
                lambda: self.fs.set_times(path, self.random.randint(1, 9)),
                lambda: self.fs.set_replication(path, self.random.choice((1, 2, 3))),
                lambda: self.fs.modify_acl_entries(path, "user:ada:rwx"),
                lambda: self.fs.remove_acl(path),
                lambda: self.fs.truncate(path, self.random.randint(0, 9)),
                lambda: self.fs.create_symlink("/elsewhere", f"{path}/link"),
            )
        )()

    def go_back(self) -> None:
        """In place, or to a directory that begins as it was."""
        if not self.snapshots:
            return
        name = self.random.choice(self.snapshots)
        if self.random.random() < 0.5:
            self.fs.rollback_snapshot(self.top, name)
            self.went_back = True
        elif self.with_clones:
            self.fs.clone_snapshot(self.top, name, self.path())
