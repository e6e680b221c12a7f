"""A whole tree, read at one moment: every inode once, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.namesystem.test_rollback import clean
from tests.namesystem.test_snapshots import Tree, build, change_something, see

from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HdfsError,
    IllegalArgumentException,
    PathIsNotDirectoryException,
)
from cairnfs.namesystem.inodes import ROOT_ID
from cairnfs.namesystem.status import describe
from cairnfs.namesystem.tree_scan import PAGE_BYTES, Detail, Found, Part, Sized
from cairnfs.namesystem.views import VIEW_LIMIT_MS, View, close_forgotten_views
from cairnfs.testing.scratch import ScratchClient, scratch_namespace
from cairnfs.transaction.calls import Call
from cairnfs.transaction.runner import run


def parts_of(fs: ScratchClient, view: View, inodes: int) -> Iterator[Sized]:
    """The parts of a whole view."""
    waiting = [Part()]
    while waiting:
        split = fs.split_part(view.number, waiting.pop(), inodes)
        yield from (sized for sized in split.parts if not sized.is_large)
        waiting += [sized.part for sized in split.parts if sized.is_large]
        if split.rest is not None:
            waiting.append(split.rest)


def read_part(
    fs: ScratchClient, view: View, part: Part, limit: int = 10_000
) -> Iterator[tuple[str, Found]]:
    cursor = None
    while True:
        page = fs.scan_part(view.number, part, cursor, limit)
        for listed in page.listed:
            above = "".join(f"/{name.decode()}" for name in listed.path or ())
            for found in listed.found:
                name = found.inode.name.decode()
                yield ("" if listed.path is None else f"{above}/{name}"), found
        cursor = page.cursor
        if cursor is None:
            return


def tree_of(found: list[tuple[str, Found]]) -> Tree:
    """As `see` shows it; each path must be there once."""
    tree: Tree = {}
    for path, each in found:
        assert path not in tree, f"{path} was read twice"
        status = describe(each.inode, each.totals)
        tree[path] = (
            *(status.kind, status.length_bytes, status.mode, status.owner, status.group),
            *(status.mtime_ms, status.replication, status.id, status.children),
        )
    return tree


def above(path: str) -> str | None:
    """The directory of what was read; that of the view is in none."""
    return path.rpartition("/")[0] if path else None


def count_part(fs: ScratchClient, view: View, part: Part, limit: int) -> Counter[str | None]:
    """How much is in each directory, as those are told who ask for no more."""
    counts: Counter[str | None] = Counter()
    cursor = None
    while True:
        page = fs.scan_part(view.number, part, cursor, limit, Detail.COUNTS)
        for listed in page.listed:
            if listed.path is None:
                counts[None] += len(listed.inodes)
            else:
                assert not listed.inodes, "inodes were sent"
                counts["".join(f"/{name.decode()}" for name in listed.path)] += listed.count
        cursor = page.cursor
        if cursor is None:
            return counts


def read_all(fs: ScratchClient, view: View, inodes: int, limit: int) -> Tree:
    found = []
    for sized in parts_of(fs, view, inodes):
        part = list(read_part(fs, view, sized.part, limit))
        found += part
        is_first = sized.part.is_first
        assert len(part) - is_first == sized.inodes
        assert count_part(fs, view, sized.part, limit) == Counter(above(path) for path, _ in part)
    return tree_of(found)


def test_a_tree_is_read_as_it_was(fs: ScratchClient) -> None:
    build(fs)
    fs.mkdirs("/d/empty")
    expected = see(fs, "/d")
    view = fs.open_view("/d")
    expected[""] = see(fs, "/d")[""]
    fs.delete("/d/x", recursive=True)
    fs.rename("/d/y", "/outside/y")
    fs.write("/d/new", 3)
    fs.set_permission("/d", 0o700)
    for inodes in (1, 2, 3, 100):
        for limit in (1, 2, 100):
            assert read_all(fs, view, inodes, limit) == expected, (inodes, limit)
    fs.close_view(view.number)
    fs.close_view(view.number)
    with pytest.raises(FileNotFoundException, match=f"no view {view.number}"):
        fs.scan_part(view.number, Part())
    clean(fs)


def test_random_trees_with_clones_and_roll_backs(tmp_path: Path) -> None:
    for seed in range(12):
        chance = random.Random(seed)
        with scratch_namespace(tmp_path / str(seed)) as fs:
            build(fs)
            fs.allow_snapshot("/d")
            views: list[tuple[View, Tree]] = []
            for step in range(60):
                with contextlib.suppress(HdfsError):
                    change_something(fs, chance, step)
                if step % 7 == 3:
                    with contextlib.suppress(HdfsError):
                        fs.create_snapshot("/d", f"s{step}")
                if step % 11 == 10:
                    taken = [info.name.decode() for info in fs.list_snapshots("/d")]
                    name = chance.choice(taken)
                    if chance.random() < 0.5:
                        fs.clone_snapshot("/d", name, f"/clone{step}")
                    else:
                        fs.rollback_snapshot("/d", name, f"before{step}")
                if step % 10 == 5:
                    path = chance.choice(["/", "/d", f"/d/.snapshot/{fs_snapshot(fs)}"])
                    view = fs.open_view(path)
                    views.append((view, see(fs, path)))
                if chance.random() < 0.1:
                    fs.reclaim()
            for view, expected in views:
                seen = read_all(fs, view, chance.choice((2, 5, 50)), chance.choice((1, 3, 1000)))
                assert without_snapshot_times(seen) == without_snapshot_times(expected), seed
                fs.close_view(view.number)
            clean(fs)


def fs_snapshot(fs: ScratchClient) -> str:
    return fs.list_snapshots("/d")[0].name.decode()


def without_snapshot_times(tree: Tree) -> Tree:
    """The directory of a snapshot is shown with the time of that."""
    return {path: shown for path, shown in tree.items() if path}


def test_large_directories_are_cut_by_names(fast_fs: ScratchClient) -> None:
    fs = fast_fs
    for n in range(50):
        fs.write(f"/big/f{n:02d}")
    fs.mkdirs("/big/sub/below")
    view = fs.open_view("/big")
    parts = list(parts_of(fs, view, 10))
    assert [sized.inodes for sized in parts] == [10] * 5 + [2]
    assert read_all(fs, view, 10, 4) == see(fs, "/big")
    fs.close_view(view.number)


def test_one_who_is_not_heard_of_loses_the_view(fast_fs: ScratchClient) -> None:
    fs = fast_fs
    build(fs)

    def close_forgotten() -> int:
        call = Call(close_forgotten_views, ())
        closed: int = fs.namenode.wait(run(fs.namenode.namenode.runner, call))
        return closed

    heard, forgotten = fs.open_view("/d"), fs.open_view("/")
    fs.clock.advance(VIEW_LIMIT_MS)
    assert close_forgotten() == 0
    assert fs.renew_view(heard.number).renewed_ms > heard.renewed_ms
    fs.clock.advance(1)
    assert close_forgotten() == 1
    assert [view.number for view in fs.list_views()] == [heard.number]
    with pytest.raises(FileNotFoundException, match="not renewed for as long as it is held"):
        fs.renew_view(forgotten.number)
    fs.close_view(heard.number)


def test_whoever_may_not_list_a_directory_does_not_read_it(fs: ScratchClient) -> None:
    build(fs)
    fs.mkdirs("/d/x/secret", 0o700)
    alice = fs.user("alice")
    view = alice.open_view("/d")
    with pytest.raises(AccessControlException, match="/d/x/secret"):
        read_all(alice, view, 100, 100)
    with pytest.raises(AccessControlException, match="opened by alice, not by bob"):
        fs.user("bob").scan_part(view.number, Part())
    assert len(read_all(fs, view, 100, 100)) == len(see(fs, "/d"))  # the superuser may
    assert alice.list_views() == fs.list_views() == [view]
    assert fs.user("bob").list_views() == []
    alice.close_view(view.number)
    with pytest.raises(AccessControlException):
        alice.open_view("/d/x/secret")


def test_what_cannot_be_read(fs: ScratchClient) -> None:
    build(fs)
    fs.write("/file")
    with pytest.raises(FileNotFoundException):
        fs.open_view("/nothing")
    with pytest.raises(PathIsNotDirectoryException):
        fs.open_view("/file")
    view = fs.open_view("/")
    for part in (Part((b"nothing",)), Part((b"file",))):
        with pytest.raises(IllegalArgumentException, match="belongs to the view"):
            fs.scan_part(view.number, part)
    with pytest.raises(IllegalArgumentException, match="not 0"):
        fs.split_part(view.number, Part(), 0)
    assert view.root.id == ROOT_ID
    fs.close_view(view.number)


def test_long_attributes_make_short_pages(fast_fs: ScratchClient) -> None:
    """A page is not longer than a message may be, whatever is on it."""
    fs = fast_fs
    names = [f"/d/f{n:02d}" for n in range(20)]
    for path in names:
        fs.write(path)
        for n in range(32):
            fs.set_xattr(path, f"user.a{n}", bytes(16_000))
    view = fs.open_view("/d")
    page = fs.scan_part(view.number, Part())
    assert page.cursor is not None
    assert len(page.data) < PAGE_BYTES + 2**20
    assert set(read_all(fs, view, 100, 100)) == {"", *(path[2:] for path in names)}
    fs.close_view(view.number)


def test_only_attributes_that_one_may_see(fs: ScratchClient) -> None:
    build(fs)
    for path in ("/d", "/d/a"):
        fs.set_xattr(path, "user.a", b"1")
        fs.set_xattr(path, "trusted.b", b"2")
    for client, count in ((fs, 2), (fs.user("alice"), 1)):
        view = client.open_view("/d")
        found = [
            inode.xattrs
            for listed in client.scan_part(view.number, Part()).listed
            for inode in listed.inodes
            if inode.xattrs is not None
        ]
        assert [len(xattrs) for xattrs in found] == [count, count]
        client.close_view(view.number)
