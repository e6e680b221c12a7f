"""What is kept of a store of our own is true, and bounded, whatever clients ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cairnfs.errors import FileAlreadyExistsException
from cairnfs.namenode.embedded import ClientProtocol
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lookup import ROOT_KEY, inode_key
from cairnfs.store.base import Row
from cairnfs.store.schema import Key
from cairnfs.testing.scratch import ScratchClient, scratch_namespace
from cairnfs.transaction import known, seen_rows
from cairnfs.transaction.entries import NO_ENTRY, Entry
from cairnfs.transaction.optimistic import OptimisticRunner
from cairnfs.transaction.seen_rows import CachedRows
from cairnfs.transaction.transaction import Transaction
from cairnfs.transaction.views import Speculation


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScratchClient]:
    """A namespace of whose rows no more than two times ten are kept."""
    monkeypatch.setattr(known, "CACHE_ENTRIES_MAX", 20)
    with scratch_namespace(tmp_path) as fs:
        yield fs


def cache_of(fs: ClientProtocol) -> CachedRows:
    runner = fs.namenode.namenode.runner
    assert isinstance(runner, OptimisticRunner)
    assert runner._cache is not None
    return runner._cache


def id_of(fs: ClientProtocol, path: str) -> Any:
    status = fs.get_file_info(path)
    assert status is not None
    return status.id


def test_pages_without_entries_are_not_kept_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen_rows, "PAGED_ENTRIES_MAX", 10)
    with scratch_namespace(tmp_path) as fs:
        for number in range(20):
            fs.mkdirs(f"/empty{number}")
        for number in range(20):
            fs.get_listing(f"/empty{number}")
            fs.get_listing("/empty0", b"after %d" % number)
        assert 1 <= sum(map(len, cache_of(fs)._pages.values())) <= 10


def test_a_name_in_a_new_directory_is_known_to_be_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scratch_namespace(tmp_path) as fs:
        fs.mkdirs("/new")
        cache = cache_of(fs)
        key = inode_key(id_of(fs, "/new"), b"f")
        row, find_changed = cache._reads.row, cache._reads._find_changed

        def look(asked: Key) -> Row | None:
            assert asked[:2] != key[:2], f"the store is asked for {asked}"
            return row(asked)

        def compare(versions: dict[Key, int]) -> Any:
            assert all(asked[:2] != key[:2] for asked in versions), f"so it is for {versions}"
            return find_changed(versions)

        monkeypatch.setattr(cache._reads, "row", look)
        monkeypatch.setattr(cache._reads, "_find_changed", compare)
        assert cache.find(key) is NO_ENTRY
        fs.create("/new/f")
        fs.complete("/new/f")
        with pytest.raises(FileAlreadyExistsException):
            fs.create("/new/f")
        fs.rename("/new/f", "/new/g")
        assert fs.get_file_info("/new/f") is None
        fs.delete("/new/g")
        assert fs.get_file_info("/new/g") is None


def test_of_a_directory_whose_entries_were_dropped_nothing_is_presumed(
    small: ScratchClient,
) -> None:
    for number in range(25):
        small.mkdirs(f"/old/{number}")
    small.mkdirs("/new/f")
    id = id_of(small, "/new")
    assert id in cache_of(small)._made
    for number in range(25):  # which makes nothing, but drops rows
        assert small.get_file_info(f"/old/{number}") is not None
    assert id not in cache_of(small)._made
    assert small.get_file_info("/new/f") is not None


def test_nothing_is_presumed_of_what_one_call_has_made_if_it_is_more_than_there_is_room_for(
    small: ScratchClient,
) -> None:
    small.mkdirs("/a" + "/below" * 30)
    assert small.get_file_info("/a/below") is not None


def test_of_a_cache_that_was_cleared_nothing_is_presumed(tmp_path: Path) -> None:
    with scratch_namespace(tmp_path) as fs:
        fs.mkdirs("/new/f")
        cache_of(fs).clear()
        assert fs.get_file_info("/new/f") is not None


def test_new_inodes_that_are_gone_are_not_kept_for_ever(small: ScratchClient) -> None:
    for _ in range(50):
        small.create("/f")
        small.delete("/f")
    assert len(cache_of(small)._made) <= 10


def test_a_committed_row_is_there_when_what_was_to_replace_it_is_withdrawn(tmp_path: Path) -> None:
    """Below a new inode it would be taken for absent, were it not in the cache."""
    with scratch_namespace(tmp_path) as fs:
        fs.mkdirs("/new")
        cache, key = cache_of(fs), inode_key(id_of(fs, "/new"), b"f")
        view, inode = Speculation(cache), cache.entry(ROOT_KEY).record

        def write(record: Inode | None) -> Transaction:
            transaction = Transaction(view, 0, lambda counter: 0, from_memory=True)
            transaction.get(key)
            transaction.put(key, record)
            view.accept(transaction)
            return transaction

        made, deleted = write(inode), write(None)
        view.retire(made, 7, cache)
        view.withdraw(deleted)
        assert cache.find(key) == Entry(inode, 7)
        assert view.entry(key) == Entry(inode, 7)
