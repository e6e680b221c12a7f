"""Calls that change something are tried on rows at hand: stale ones cost a second run, no more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from cairnfs.config import NameNodeSettings
from cairnfs.errors import AccessControlException, FileNotFoundException
from cairnfs.namenode.embedded import ClientProtocol, NameNodeThread, make_namespace
from cairnfs.namesystem import lookup
from cairnfs.store.base import Found, Reading
from cairnfs.store.schema import Key
from cairnfs.testing.peers import PendingCalls
from cairnfs.transaction.entries import Entry
from cairnfs.transaction.memos import Memo
from cairnfs.transaction.optimistic import OptimisticRunner
from cairnfs.transaction.seen_rows import RememberedRows
from cairnfs.transaction.trust import PAUSE_MIN
from cairnfs.transaction.views import LoadedRows


@pytest.fixture
def two(postgres_dsn: str) -> Iterator[tuple[NameNodeThread, NameNodeThread]]:
    """Two NameNodes on one database, without background work."""
    make_namespace(postgres_dsn)
    settings = NameNodeSettings(postgres_dsn, duties=False)
    with NameNodeThread(settings) as first, NameNodeThread(settings) as second:
        yield first, second


def conflicts(namenode: NameNodeThread) -> int:
    return sum(namenode.statistics.conflicts.values())


def reads(namenode: NameNodeThread) -> int:
    return namenode.statistics.reads


def runner(namenode: NameNodeThread) -> OptimisticRunner:
    found = namenode.namenode.runner
    assert isinstance(found, OptimisticRunner)
    return found


def warm(fs: ClientProtocol) -> None:
    fs.mkdirs("/d")
    fs.create("/d/first")
    fs.complete("/d/first")


def test_a_known_path_needs_no_read(two: tuple[NameNodeThread, NameNodeThread]) -> None:
    namenode, _ = two
    fs = namenode.client()
    warm(fs)
    before = reads(namenode)
    for n in range(50):
        fs.create(f"/d/{n}")
        fs.complete(f"/d/{n}")
        fs.rename(f"/d/{n}", f"/d/r{n}")
        fs.delete(f"/d/r{n}")
    # Totals are looked at once a second, whatever is remembered.
    assert reads(namenode) - before < 20
    assert conflicts(namenode) == 0


def test_a_directory_that_another_removed(two: tuple[NameNodeThread, NameNodeThread]) -> None:
    first, second = (namenode.client() for namenode in two)
    warm(first)
    second.delete("/d", recursive=True)
    with pytest.raises(FileNotFoundException):
        first.create("/d/f", create_parents=False)
    assert conflicts(two[0]) == 1
    assert first.get_file_info("/d") is None


def test_a_directory_that_another_removed_is_made_anew_meanwhile(
    two: tuple[NameNodeThread, NameNodeThread],
) -> None:
    """One call goes by the old row, the next by its absence: only one of the two is right."""
    first, second = (namenode.client() for namenode in two)
    warm(first)
    first.create("/f")
    first.complete("/f")
    kept = first.get_file_info("/f")
    second.delete("/d", recursive=True)
    calls = PendingCalls(two[0].namenode)

    async def both() -> list[bool]:
        asked: list[Any] = [calls.rename("/f", "/d/f"), calls.mkdirs("/d/a/b")]
        return await asyncio.gather(*asked)

    moved, made = two[0].wait(both())
    assert made
    assert second.get_file_info("/d/a/b") is not None
    found = second.get_file_info("/d/f" if moved else "/f")
    assert kept is not None
    assert found is not None, "the file is lost"
    assert found.id == kept.id


def test_a_directory_that_another_closed(two: tuple[NameNodeThread, NameNodeThread]) -> None:
    first, second = (namenode.client() for namenode in two)
    first.mkdirs("/d", mode=0o777)
    ada = two[0].client("ada")
    ada.create("/d/1")
    second.set_permission("/d", 0o700)
    with pytest.raises(AccessControlException):
        ada.create("/d/2")


def test_a_directory_that_another_put_there(two: tuple[NameNodeThread, NameNodeThread]) -> None:
    first, second = (namenode.client() for namenode in two)
    warm(first)
    second.rename("/d", "/e")
    second.mkdirs("/d")
    first.create("/d/f")
    assert [entry.name for entry in first.get_listing("/d").entries] == [b"f"]
    assert [entry.name for entry in first.get_listing("/e").entries] == [b"first"]


def test_a_name_that_is_taken_after_all(two: tuple[NameNodeThread, NameNodeThread]) -> None:
    first, second = (namenode.client() for namenode in two)
    warm(first)
    second.create("/d/f")
    second.complete("/d/f")
    kept = second.get_file_info("/d/f")
    with pytest.raises(FileExistsError):
        first.create("/d/f")
    assert first.get_file_info("/d/f") == kept
    first.create("/d/f", overwrite=True)
    assert second.get_file_info("/d/f") != kept


def test_wrong_guesses_make_it_look_first(two: tuple[NameNodeThread, NameNodeThread]) -> None:
    first, second = (namenode.client() for namenode in two)
    warm(first)
    for n in range(40):
        second.create(f"/d/{n}")
    for n in range(40):
        first.create(f"/d/{n}", overwrite=True)
    # Each of the 40 would conflict without it.
    assert conflicts(two[0]) < 5
    assert runner(two[0])._known.trust.next_pause > PAUSE_MIN


def test_what_does_not_commit_is_not_answered_from_memory(
    two: tuple[NameNodeThread, NameNodeThread],
) -> None:
    first, second = (namenode.client() for namenode in two)
    warm(first)
    assert first.mkdirs("/d")  # nothing to do, as far as is remembered
    second.delete("/d", recursive=True)
    assert first.mkdirs("/d")
    assert second.get_file_info("/d") is not None
    second.rename("/d", "/e")
    assert not first.delete("/d")
    with pytest.raises(FileNotFoundException):
        first.set_permission("/d", 0o700)


def test_on_a_store_of_our_own_a_name_out_of_the_cache_is_found(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    url = f"sqlite://{tmp_path_factory.mktemp('namespace')}/ns.db"
    make_namespace(url)
    with NameNodeThread(NameNodeSettings(url, duties=False)) as namenode:
        warm(namenode.client())
    with NameNodeThread(NameNodeSettings(url, duties=False)) as namenode:
        fs = namenode.client()
        fs.create("/d/second")  # the directory is known from here on, its first file is not
        kept = fs.get_file_info("/d")
        with pytest.raises(FileExistsError):
            fs.create("/d/first")
        with pytest.raises(FileExistsError):
            fs.mkdirs("/d/first")
        assert not fs.rename("/d/second", "/d/first")
        assert fs.get_file_info("/d") == kept
        names = [entry.name for entry in fs.get_listing("/d").entries]
        assert names == [b"first", b"second"]


@pytest.mark.interpreted
def test_a_way_that_was_walked_is_not_walked_again(
    two: tuple[NameNodeThread, NameNodeThread], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (namenode.client() for namenode in two)
    first.mkdirs("/a/b/c")
    first.create("/a/b/c/f")
    first.complete("/a/b/c/f")
    expected = second.get_file_info("/a/b/c/f")  # who has made nothing there

    def walk(*arguments: object) -> None:
        raise AssertionError("it is walked")

    monkeypatch.setattr(lookup, "_walk", walk)
    before = reads(two[1])
    assert second.get_file_info("/a/b/c/f") == expected
    assert second.get_file_info("/a/b/c/missing") is None
    assert reads(two[1]) == before + 2  # so it is not answered from memory


def test_what_a_commit_has_overtaken_is_not_remembered() -> None:
    key: Key = (0, 1, b"a")
    remembered = RememberedRows(10)
    older = LoadedRows(Reading(keys=[key]), Found(rows={}), remembered)
    older.entries[key] = Entry("older", 1)
    remembered.remember(key, Entry("newer", 2))
    older.memorize("way", Memo("by the older", {key: older.entries[key]}))
    assert remembered.recall("way") is None
    newer = LoadedRows(Reading(keys=[key]), Found(), remembered)
    newer.entries[key] = remembered.entry(key)
    newer.memorize("way", Memo("by the newer", {key: newer.entries[key]}))
    assert older.recall("way") is None
    assert newer.recall("way") == Memo("by the newer", {key: Entry("newer", 2)})


@pytest.mark.parametrize("change", ["chmod", "move", "replace", "delete"])
def test_a_way_that_another_has_changed_is_walked_again(
    two: tuple[NameNodeThread, NameNodeThread], change: str
) -> None:
    first, second = (namenode.client() for namenode in two)
    user = two[0].client("alice")
    first.mkdirs("/a/b/c")
    first.mkdirs("/other/c")
    for path in ("/a/b/c/f", "/other/c/f"):
        first.create(path)
        first.complete(path)
    kept, other = user.get_file_info("/a/b/c/f"), user.get_file_info("/other/c/f")
    assert user.get_file_info("/a/b/c/f") == kept
    if change == "chmod":
        second.set_permission("/a/b", 0o700)
        with pytest.raises(AccessControlException):
            user.get_file_info("/a/b/c/f")
    elif change == "move":
        second.rename("/a/b", "/moved")
        assert user.get_file_info("/a/b/c/f") is None
        assert user.get_file_info("/moved/c/f") == kept
    elif change == "replace":
        second.delete("/a/b", recursive=True)
        second.rename("/other", "/a/b")
        assert user.get_file_info("/a/b/c/f") == other
    else:
        second.delete("/a", recursive=True)
        assert user.get_file_info("/a/b/c/f") is None
