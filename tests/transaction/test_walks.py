"""Calls that look at much, on a shared store: they read each row once, and see one moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cairnfs.config import NameNodeSettings
from cairnfs.errors import StandbyException
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namenode.opening import format_namespace
from cairnfs.namesystem.inodes import ROOT_ID
from cairnfs.namesystem.lookup import inode_key
from cairnfs.namesystem.permissions import Caller
from cairnfs.store.schema import Table
from cairnfs.testing.scratch import ScratchClient, scratch_namespace
from cairnfs.transaction import walks
from cairnfs.transaction.calls import Operation, operation
from cairnfs.transaction.transaction import Transaction

FILES = 1200  # of a directory: it is read in several pages
READS_MAX = 60  # far less than there are files
LIMIT_S = 60.0

Names = list[bytes]


@pytest.fixture
def fs(tmp_path: Path, postgres_dsn: str) -> Iterator[ScratchClient]:
    with scratch_namespace(tmp_path, url=postgres_dsn) as client:
        yield client


@pytest.fixture
def changed(fs: ScratchClient) -> Iterator[ScratchClient]:
    """A directory with two snapshots, and changes between them and since."""
    fs.mkdirs("/d/below")
    fs.allow_snapshot("/d")
    for number in range(FILES):
        fs.write(f"/d/f{number:05}")
    fs.create_snapshot("/d", "s1")
    for number in range(0, FILES, 4):
        fs.delete(f"/d/f{number:05}")
        fs.rename(f"/d/f{number + 1:05}", f"/d/below/g{number:05}")
        fs.set_permission(f"/d/f{number + 2:05}", 0o600)
    fs.create_snapshot("/d", "s2")
    fs.write("/d/new")
    yield fs
    for name in ("s1", "s2"):
        fs.delete_snapshot("/d", name)


def test_what_was_read_is_not_read_again(changed: ScratchClient) -> None:
    before = changed.namenode.statistics.reads
    assert len(list(changed.snapshot_diff("/d", "s1"))) == 3 * FILES // 4 + 3
    assert changed.namenode.statistics.reads - before < READS_MAX


def test_what_was_forgotten_is(changed: ScratchClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> list[list[object]]:
        return [
            list(changed.snapshot_diff("/d", "s1", "s2")),
            list(changed.snapshot_diff("/d", "s1", "")),
            list(changed.snapshot_changes("/d", "s1", "s2")),
        ]

    found = look()
    assert [len(each) for each in found] == [902, 903, 1201]
    monkeypatch.setattr(walks, "ROWS_MAX", 100)
    assert look() == found


def test_a_page_of_a_snapshot_costs_what_one_of_now_does(changed: ScratchClient) -> None:
    def reads(path: str) -> int:
        before = changed.namenode.statistics.reads
        assert len(changed.names(path)) > FILES / 2
        return changed.namenode.statistics.reads - before

    paths = ("/d", "/d/.snapshot/s1")
    for path in paths:  # from then on it is known where the path leads
        reads(path)
    assert reads(paths[0]) == reads(paths[1])


class Walker:
    """An operation that lists the root, and waits in the middle until it is told to go on."""

    def __init__(self) -> None:
        self.runs = 0
        self.is_waiting = threading.Event()
        self.may_go_on = threading.Event()

    def operation(self) -> Operation[tuple[Names, Names]]:
        @operation(mutates=False, walks=True)
        def list_twice(tx: Transaction, caller: Caller) -> tuple[Names, Names]:
            self.runs += 1
            first = self._list(tx)
            self.is_waiting.set()
            assert self.may_go_on.wait(LIMIT_S)
            tx.need(keys=[inode_key(ROOT_ID, b"never looked for")])
            return first, self._list(tx, limit=len(first) + 5)

        return list_twice

    @staticmethod
    def _list(tx: Transaction, limit: int = 100) -> Names:
        return [key[2] for key, _ in tx.scan(Table.INODES, ROOT_ID, b"", limit)]


def test_it_sees_one_moment_and_nobody_waits_for_it(fs: ScratchClient) -> None:
    fs.mkdirs("/a")
    walker = Walker()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(fs._call, walker.operation())
        assert walker.is_waiting.wait(LIMIT_S)
        fs.delete("/a")
        fs.mkdirs("/b")
        walker.may_go_on.set()
        assert answer.result(LIMIT_S) == ([b"a"], [b"a"])
        assert pool.submit(fs._call, walker.operation()).result(LIMIT_S)[0] == [b"b"]
    assert walker.runs == 2


def test_a_namenode_that_stops_does_not_wait_for_its_end(postgres_dsn: str) -> None:
    asyncio.run(format_namespace(postgres_dsn))
    walker = Walker()
    namenode = NameNodeThread(NameNodeSettings(postgres_dsn, duties=False))
    with ThreadPoolExecutor(2) as pool:
        answer = pool.submit(namenode.client()._call, walker.operation())
        assert walker.is_waiting.wait(LIMIT_S)
        end = pool.submit(namenode.stop)
        while _serves(namenode):
            pass
        walker.may_go_on.set()
        with pytest.raises(StandbyException):
            answer.result(LIMIT_S)
        end.result(LIMIT_S)


def _serves(namenode: NameNodeThread) -> bool:
    try:
        namenode.client().get_file_info("/")
    except StandbyException:
        return False
    return True
