"""The journal beside a namespace file: what is left of it after a crash, or of an accident."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.store.test_sqlite import UNDO_VERSION_10

from cairnfs.errors import SchemaVersionError, StoreUnavailableException
from cairnfs.store import sqlite_commits, sqlite_journal, sqlite_schema
from cairnfs.store.base import Scan
from cairnfs.store.batches import Batch, Put
from cairnfs.store.schema import SCHEMA_VERSION, Key
from cairnfs.store.sqlite import SqliteStore, format_file
from cairnfs.store.sqlite_change import change_of, encode_change
from cairnfs.store.sqlite_journal import Journal
from cairnfs.store.sqlite_schema import JOURNAL_SUFFIXES


def put(number: int, data: bytes = b"some data") -> Batch:
    return Batch(size=1, now_ms=0, puts=[Put(key_of(number), None, 1, data, False)])


def key_of(number: int) -> Key:
    return (0, 1, b"%04d" % number)


def journals(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in JOURNAL_SUFFIXES]


def copy_files(path: Path, folder: Path) -> Path:
    """The files as a crash would leave them."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(path.parent, folder)
    return folder / path.name


def numbers_in(path: Path) -> list[int]:
    """What a NameNode finds that is started now."""
    store = SqliteStore(path)
    found = [int(row.key[2]) for row in store.scan(Scan(0, 1, b"", 10_000))]
    asyncio.run(store.close())
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "here" / "namespace.db"
    format_file(path, {})
    return path


def commit(store: SqliteStore, *numbers: int) -> None:
    async def run() -> None:
        for number in numbers:
            await store.commit(put(number))
            await asyncio.sleep(0)

    asyncio.run(run())


def test_a_file_that_was_closed_needs_no_journal(path: Path) -> None:
    store = SqliteStore(path)
    commit(store, 1, 2)
    assert journals(path)[0].exists()
    asyncio.run(store.close())
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert numbers_in(path) == [1, 2]


def test_wherever_the_journal_ends_what_is_whole_is_there(path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    ends = []
    for number in range(3):
        commit(store, number)
        ends.append(journals(path)[0].stat().st_size)
    for length in range(ends[-1] + 1):
        crashed = copy_files(path, tmp_path / "crashed")
        with journals(crashed)[0].open("r+b") as file:
            file.truncate(length)
        assert numbers_in(crashed) == [number for number in range(3) if ends[number] <= length]
    asyncio.run(store.close())


def test_a_damaged_commit_is_not_passed_over(path: Path, tmp_path: Path) -> None:
    """Unless it is the last one, which nobody can tell from one that was torn."""
    store = SqliteStore(path)
    commit(store, 0, 1)
    begin_of_last = journals(path)[0].stat().st_size
    commit(store, 2)
    for at in range(begin_of_last):
        crashed = copy_files(path, tmp_path / "crashed")
        content = bytearray(journals(crashed)[0].read_bytes())
        content[at] ^= 1
        journals(crashed)[0].write_bytes(content)
        for _ in range(2):
            with pytest.raises(StoreUnavailableException, match=r"damaged.*bring back a copy"):
                SqliteStore(crashed)
    asyncio.run(store.close())


def test_a_journal_that_was_made_and_not_written(path: Path) -> None:
    journals(path)[0].write_bytes(bytes(4096))
    journals(path)[1].touch()
    assert numbers_in(path) == []


def test_the_journal_of_a_later_state_is_refused(path: Path, tmp_path: Path) -> None:
    copied = copy_files(path, tmp_path / "copied")
    store = SqliteStore(path)
    for number in (1, 2, 3):
        commit(store, number)
        store.write_backlog()
    commit(store, 4)
    for journal, of_copy in zip(journals(path), journals(copied), strict=True):
        if journal.exists():
            shutil.copy(journal, of_copy)
    with pytest.raises(StoreUnavailableException, match="after TxID 0 is not in it"):
        SqliteStore(copied)
    asyncio.run(store.close())


def test_both_files_are_read_after_a_crash_in_the_middle(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is left of earlier times, behind newer commits, is not."""
    monkeypatch.setattr(sqlite_commits, "JOURNALED_CALLS_MAX", 4)
    store = SqliteStore(path)
    for number in range(60):
        commit(store, number)
        crashed = copy_files(path, tmp_path / "crashed")
        assert numbers_in(crashed) == list(range(number + 1))
    assert all(journal.exists() for journal in journals(path))
    assert max(journal.stat().st_size for journal in journals(path)) < 2000  # written over
    asyncio.run(store.close())


def test_bytes_of_a_caller_are_not_taken_for_a_commit(path: Path, tmp_path: Path) -> None:
    """However much they look like one, and whatever is left of what they were in."""
    forged = encode_change(change_of(put(99), 1, [], []))
    other = Journal(tmp_path / "other")
    other.append(forged)
    record = (tmp_path / "other-redo1").read_bytes()[12:]
    store = SqliteStore(path)
    asyncio.run(store.commit(put(1, record * 50)))
    store.write_backlog()
    commit(store, 2)  # over the beginning of it
    assert record in journals(path)[0].read_bytes() + journals(path)[1].read_bytes()
    assert numbers_in(copy_files(path, tmp_path / "crashed")) == [1, 2]
    asyncio.run(store.close())
    other.close()


def test_a_journal_that_is_removed_takes_nothing_along(path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    commit(store, 1)
    journals(path)[0].unlink()
    commit(store, 2)
    assert numbers_in(copy_files(path, tmp_path / "crashed")) == [1, 2]
    asyncio.run(store.close())
    assert numbers_in(path) == [1, 2]


def obstruct(path: Path, kind: str) -> None:
    match kind:
        case "file":
            path.write_bytes(b"notes of somebody")
        case "directory":
            path.mkdir()
        case "link":
            path.symlink_to("nowhere")


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
@pytest.mark.parametrize("number", [0, 1])
def test_what_takes_the_journals_place_has_to_be_moved_away(
    path: Path, tmp_path: Path, kind: str, number: int
) -> None:
    """Before the first commit, or before the journal's other file is made."""
    store = SqliteStore(path)
    place = journals(path)[number]
    obstruct(place, kind)
    expected = []
    if number == 1:
        commit(store, 1)
        store.write_backlog()
        expected = [1]
    refusal = f"{place} is in the way of the journal of {path}; move it away; nothing was changed"
    for _ in range(2):
        with pytest.raises(StoreUnavailableException, match=refusal):
            commit(store, 2)
    place.rename(tmp_path / "away")
    commit(store, 3)
    assert numbers_in(copy_files(path, tmp_path / "crashed")) == [*expected, 3]
    asyncio.run(store.close())
    assert numbers_in(path) == [*expected, 3]


def test_a_journal_is_replaced_by_a_directory(path: Path, tmp_path: Path) -> None:
    """The other one takes its turn; if that cannot be made either, commits are refused."""
    store = SqliteStore(path)
    commit(store, 1)
    first, second = journals(path)
    first.unlink()
    first.mkdir()
    commit(store, 2)
    second.unlink()
    second.mkdir()
    for _ in range(3):
        with pytest.raises(StoreUnavailableException, match="is in the way of the journal"):
            commit(store, 3)
    first.rmdir()
    second.rmdir()
    commit(store, 4)
    assert numbers_in(copy_files(path, tmp_path / "crashed")) == [1, 2, 4]
    asyncio.run(store.close())
    assert numbers_in(path) == [1, 2, 4]


def test_what_takes_the_journals_place_does_not_hinder_a_stop(path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    commit(store, 1)
    journals(path)[1].mkdir()
    asyncio.run(store.close())
    for kind in ("directory", "file"):
        if kind == "file":
            journals(path)[1].rmdir()
            obstruct(journals(path)[1], "file")
        for _ in range(2):
            with pytest.raises(StoreUnavailableException, match=f"{journals(path)[1]} .* move"):
                SqliteStore(path)
    journals(path)[1].unlink()
    assert numbers_in(path) == [1]


def test_a_sync_that_fails_is_not_answered_and_not_found_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(path)
    commit(store, 1)

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("cairnfs.store.sqlite_journal.fdatasync", fail)
    with pytest.raises(StoreUnavailableException, match="Input/output error; nothing was changed"):
        commit(store, 2)
    assert numbers_in(copy_files(path, tmp_path / "crashed")) == [1]
    monkeypatch.undo()
    commit(store, 3)
    assert numbers_in(copy_files(path, tmp_path / "crashed")) == [1, 3]
    asyncio.run(store.close())


@pytest.mark.parametrize("then", ["journal", "turn", "begin", "tables"])
def test_what_was_refused_and_could_not_be_wiped_does_not_come_back(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """Or it would have the TxIDs of what was answered later."""
    store = SqliteStore(path)
    commit(store, 1)

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    def write_records_only(descriptor: int, data: bytes, at: int) -> int:
        if not any(data):
            raise OSError(5, "Input/output error")
        return os.pwrite(descriptor, data, at)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_journal, "fdatasync", fail)
        patch.setattr(sqlite_journal, "pwrite", write_records_only)
        with pytest.raises(StoreUnavailableException, match="unless this NameNode ends"):
            asyncio.run(store.commit(Batch(3, 0, puts=put(2).puts)))
        for again in (commit, lambda store, number: store.commit_now(put(number))):
            with pytest.raises(StoreUnavailableException, match=r"error; nothing was changed$"):
                again(store, 3)
        assert numbers_in(copy_files(path, tmp_path / "crashed")) == [1, 2]
    if then == "turn":
        store._commits._begin_settling()
        store._commits._finish_settling()
    elif then == "begin":
        store.write_backlog()
    elif then == "tables":
        store.commit_now(put(3))
    commit(store, 4)
    later = [3, 4] if then == "tables" else [4]
    assert numbers_in(copy_files(path, tmp_path / "crashed")) == [1, *later]
    asyncio.run(store.close())
    assert numbers_in(path) == [1, *later]


def test_a_journal_that_has_lost_its_beginning_is_not_passed_over(
    path: Path, tmp_path: Path
) -> None:
    """A crash does not take it: it is on disk before anything else."""
    store = SqliteStore(path)
    commit(store, *range(9))
    for lost in (12, 200):
        crashed = copy_files(path, tmp_path / "crashed")
        with journals(crashed)[0].open("r+b") as file:
            file.write(bytes(lost))
        for _ in range(2):
            with pytest.raises(StoreUnavailableException, match=r"damaged.*bring back a copy"):
                SqliteStore(crashed)
    os.truncate(journals(path)[0], 0)
    commit(store, 9)
    with pytest.raises(StoreUnavailableException, match=r"damaged.*bring back a copy"):
        SqliteStore(copy_files(path, tmp_path / "crashed"))
    asyncio.run(store.close())
    assert numbers_in(path) == [*range(10)]


def test_the_beginning_of_a_new_journal_is_on_disk_before_any_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def note(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        if len(sizes) == 1:
            raise OSError(5, "Input/output error")

    store = SqliteStore(path)
    monkeypatch.setattr(sqlite_journal, "fdatasync", note)
    with pytest.raises(
        StoreUnavailableException, match=r"Input/output error; nothing was changed$"
    ):
        commit(store, 1)
    commit(store, 2)
    assert sizes[:2] == [12, 12]
    assert sizes[2] > 12
    asyncio.run(store.close())
    assert numbers_in(path) == [2]


def test_a_file_that_is_in_the_way_is_left_alone(path: Path) -> None:
    store = SqliteStore(path)
    journals(path)[0].write_text("not ours")
    with pytest.raises(StoreUnavailableException, match="is in the way of the journal"):
        commit(store, 1)
    asyncio.run(store.close())
    assert journals(path)[0].read_text() == "not ours"
    journals(path)[0].unlink()
    assert numbers_in(path) == []


def test_a_new_journal_that_may_not_be_found_again_takes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []

    def sync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        if len(synced) < 3:
            raise OSError(5, "Input/output error")

    store = SqliteStore(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", sync)
        for _ in range(2):
            with pytest.raises(StoreUnavailableException, match="error; nothing was changed"):
                commit(store, 1)
        commit(store, 2)
    assert synced == [str(path.parent)] * 3
    asyncio.run(store.close())
    assert numbers_in(path) == [2]


class FailingSyncs(apsw.VFS):
    """A system whose next syncs of SQLite's log fail, after all was written."""

    def __init__(self) -> None:
        super().__init__("failing", "unix", makedefault=True)
        self.left = 0

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> FailingFile:
        return FailingFile(self, name, flags)


class FailingFile(apsw.VFSFile):
    """One of its files."""

    def __init__(
        self, system: FailingSyncs, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__("unix", name, flags)  # type: ignore[arg-type]
        self._system = system
        self._is_log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)

    def xSync(self, flags: int) -> None:
        if self._is_log and self._system.left:
            self._system.left -= 1
            raise apsw.IOError("the disk does not answer")
        super().xSync(flags)


@pytest.fixture
def failing_syncs() -> Iterator[FailingSyncs]:
    system = FailingSyncs()
    yield system
    system.unregister()


@pytest.mark.parametrize("failures", [1, 2])
def test_a_commit_to_the_tables_that_was_refused_does_not_come_back(
    path: Path, tmp_path: Path, failing_syncs: FailingSyncs, failures: int
) -> None:
    """SQLite's log has all of it: a later commit in the journal would be taken for the same."""
    store = SqliteStore(path)
    commit(store, 1)
    failing_syncs.left = failures
    with pytest.raises(StoreUnavailableException, match="does not answer; nothing was changed"):
        store.commit_now(put(2))
    assert failing_syncs.left == 0
    if failures == 1:
        assert numbers_in(copy_files(path, tmp_path / "crashed")) == [1]
    commit(store, 3, 4)
    assert numbers_in(copy_files(path, tmp_path / "crashed")) == [1, 3, 4]
    asyncio.run(store.close())
    assert numbers_in(path) == [1, 3, 4]


def test_the_journal_is_beside_the_file_that_a_link_leads_to(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "links" / "other.db"
    link.parent.mkdir()
    link.symlink_to(path)
    store = SqliteStore(link)
    commit(store, 1, 2)
    assert numbers_in(copy_files(path, tmp_path / "crashed")) == [1, 2]
    asyncio.run(store.close())
    assert numbers_in(link) == [1, 2]


def test_a_journal_beside_a_link_is_not_passed_over(path: Path, tmp_path: Path) -> None:
    """Where earlier versions have put it."""
    link = tmp_path / "links" / "other.db"
    link.parent.mkdir()
    link.symlink_to(path)
    journals(link)[0].write_bytes(b"")
    with pytest.raises(StoreUnavailableException, match=f"move it to {journals(path)[0]}"):
        SqliteStore(link)


def test_a_file_with_two_names_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other.db").hardlink_to(path)
    with pytest.raises(StoreUnavailableException, match="has another name"):
        SqliteStore(path)


def set_version(store: SqliteStore, version: int) -> None:
    """As an earlier version has left the file."""
    store._connection.execute(UNDO_VERSION_10)
    statement = "UPDATE meta SET value = ? WHERE name = 'schema version'"
    store._connection.execute(statement, (str(version),))


def test_the_journal_of_version_8_is_read(path: Path, tmp_path: Path) -> None:
    """Some of that version have such a journal already."""
    store = SqliteStore(path)
    set_version(store, 8)
    commit(store, 1, 2)
    crashed = copy_files(path, tmp_path / "crashed")
    asyncio.run(store.close())
    opened = SqliteStore(crashed)
    assert asyncio.run(opened.meta())["schema version"] == str(SCHEMA_VERSION)
    assert opened.clock() == 2
    commit(opened, 3)
    asyncio.run(opened.close())
    assert numbers_in(crashed) == [1, 2, 3]


def test_versions_that_may_not_know_of_the_journal_refuse_the_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to version 8: they would go on without what is in it alone."""
    store = SqliteStore(path)
    commit(store, 1, 2)
    crashed = copy_files(path, tmp_path / "crashed")
    asyncio.run(store.close())
    before = journals(crashed)[0].read_bytes()
    monkeypatch.setattr(sqlite_schema, "SCHEMA_VERSION", 8)
    refusal = f"{crashed} has schema version {SCHEMA_VERSION}, but .* only up to 8: upgrade CairnFS"
    with pytest.raises(SchemaVersionError, match=refusal):
        SqliteStore(crashed)
    monkeypatch.undo()
    assert journals(crashed)[0].read_bytes() == before
    assert numbers_in(crashed) == [1, 2]


@pytest.mark.parametrize("version", [7, 8])
def test_what_an_older_version_has_left_in_its_table_is_found(path: Path, version: int) -> None:
    store = SqliteStore(path)
    for number in (1, 2):
        change = change_of(put(number), number - 1, [], [])
        insert = "INSERT INTO journal (data) VALUES (?)"
        store._connection.execute(insert, (encode_change(change),))
    set_version(store, version)
    asyncio.run(store.close())
    for _ in range(2):
        assert numbers_in(path) == [1, 2]
    store = SqliteStore(path)
    assert store._fetch("SELECT count(*) FROM journal") == [(0,)]
    assert store.clock() == 2
    asyncio.run(store.close())
