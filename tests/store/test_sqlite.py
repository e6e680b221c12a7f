"""What becomes of a namespace file: full, read-only, moved, replaced, damaged, of the future."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import pytest

from cairnfs.errors import SchemaVersionError, StoreUnavailableException
from cairnfs.store import sqlite_commits, sqlite_file, sqlite_journal, sqlite_schema
from cairnfs.store.base import Count, Reading, Row, Scan
from cairnfs.store.batches import Batch, Member, Put, Touch
from cairnfs.store.schema import NUMBER, PAIR, SCHEMA_VERSION, Key, Table
from cairnfs.store.sqlite import SqliteStore, format_file

A: Key = (0, 1, b"a")
B: Key = (0, 1, b"b")
C: Key = (0, 1, b"c")


def put(key: Key, data: bytes = b"") -> Batch:
    return Batch(size=1, now_ms=0, puts=[Put(key, None, 1, data, False)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "namespace.db"
    format_file(path, {})
    return path


def test_a_full_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(descriptor: int, data: bytes, at: int) -> int:
        if len(data) > 1000:
            return os.pwrite(descriptor, data[: len(data) // 2], at)
        raise OSError(errno.ENOSPC, "No space left on device")

    async def check() -> None:
        store = SqliteStore(path)
        await store.commit(put(A))
        monkeypatch.setattr(sqlite_journal, "pwrite", half)
        with pytest.raises(
            StoreUnavailableException, match=r"no space left .* nothing was changed"
        ):
            await store.commit(put(B, b"x" * 1_000_000))
        assert (await store.read(Reading(keys=[A, B]))).rows == {A: Row(A, 1, b"")}
        monkeypatch.undo()
        assert await store.commit(put(B, b"x" * 1_000_000)) == 1
        await store.close()

    asyncio.run(check())


def test_a_disk_that_has_no_room_for_the_tables(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits go to the journal until it is noticed; then callers are told."""
    monkeypatch.setattr(sqlite_commits, "JOURNALED_CALLS_MAX", 3)

    async def check() -> None:
        store = SqliteStore(path)
        ((pages,),) = store._connection.execute("PRAGMA page_count").fetchall()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        keys: list[Key] = [(0, 1, NUMBER.pack(number)) for number in range(3)]
        for key in keys:
            batch = put(key, b"x" * 100_000)
            batch.touches = [Touch(7, [1] * len(Count), 0, 1)]
            await store.commit(batch)
        for _ in range(5):
            await asyncio.sleep(0)  # its tables are tried
        for _ in range(2):
            with pytest.raises(StoreUnavailableException, match="no space left"):
                await store.commit(put(B))
            with pytest.raises(StoreUnavailableException, match="no space left"):
                store.commit_now(put(B))
        assert len((await store.read(Reading(keys=[*keys, B]))).rows) == 3
        assert store.totals(7).counts[Count.CHILDREN] == 3
        store._connection.execute("PRAGMA max_page_count = 1000000")
        assert await store.commit(put(B)) == 3
        await store.close()
        store = SqliteStore(path)
        assert len((await store.read(Reading(keys=[*keys, B]))).rows) == 4
        assert store.totals(7).counts[Count.CHILDREN] == 3
        await store.close()

    asyncio.run(check())


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 3000])
def test_others_have_their_turns_while_rows_are_counted(path: Path, count: int) -> None:
    async def check() -> None:
        store = SqliteStore(path)
        keys: list[Key] = [(1, number // 3, NUMBER.pack(number)) for number in range(count)]
        puts = [Put(key, None, 1, b"", False) for key in keys]
        others = [Put(key, None, 1, b"", False) for key in (A, (2, 0, b""))]
        await store.commit(Batch(size=1, now_ms=0, puts=puts + others))
        turns = 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(take_turns())
        assert await store.count_rows(1) == count
        assert turns >= count // 1000
        other.cancel()
        await store.close()

    asyncio.run(check())


def test_an_outcome_is_never_unknown(path: Path) -> None:
    """So nothing is remembered for `settle`, which nobody has a reason to call."""

    async def check() -> None:
        store = SqliteStore(path)
        batch = put(A)
        batch.member = Member(0, 1, 1)
        await store.commit(batch)
        with pytest.raises(AssertionError, match="never unknown"):
            await store.settle(batch.member)
        await store.close()

    asyncio.run(check())


# Files that are not where they were.


@pytest.mark.parametrize("with_wal", [False, True])
def test_a_file_moved_away_and_brought_back(path: Path, with_wal: bool) -> None:
    files = [path, wal_of(path)] if with_wal else [path]

    async def check() -> None:
        store = SqliteStore(path)
        await store.commit(put(A))
        for file in files:
            file.rename(away(file))
        for _ in range(2):
            with pytest.raises(StoreUnavailableException, match="is gone; bring it back; nothing"):
                await store.commit(put(B))
            with pytest.raises(StoreUnavailableException, match="is gone"):
                await store.reserve("inode id", 1)
        assert not path.exists()
        for file in files:
            away(file).rename(file)
        assert (await store.read(Reading(keys=[A, B]))).rows == {A: Row(A, 1, b"")}
        assert await store.commit(put(B)) == 1
        await store.close()
        assert await keys_in(path) == [A, B]

    asyncio.run(check())


def test_a_file_that_was_moved_away_is_complete_by_itself(path: Path) -> None:
    async def check() -> None:
        store = SqliteStore(path)
        await store.commit(put(A))
        path.rename(away(path))
        with pytest.raises(StoreUnavailableException):
            await store.commit(put(B))
        await store.close()
        assert await keys_in(away(path)) == [A]

    asyncio.run(check())


@pytest.mark.parametrize("notices", [True, False])
def test_a_file_replaced_by_another_gets_nothing_of_the_old_one(path: Path, notices: bool) -> None:
    """Neither commits, nor the log that the old one has left behind."""

    async def check() -> None:
        other = path.with_name("other.db")
        format_file(other, {}, [Put((0, 2, b"other"), None, 1, b"", False)])
        store = SqliteStore(path)
        await store.commit(put(A))
        path.rename(away(path))
        other.rename(path)
        for _ in range(2 * notices):
            text = "was replaced by another file; restart the NameNode; nothing was changed"
            with pytest.raises(StoreUnavailableException, match=text):
                await store.commit(put(B))
        await store.close()
        assert await keys_in(path) == [(0, 2, b"other")]
        assert await keys_in(away(path)) == [A]

    asyncio.run(check())


def test_a_file_removed_and_made_anew_is_another_one(path: Path) -> None:
    """Even where file systems give the inode of a removed file to the next."""

    async def check() -> None:
        store = SqliteStore(path)
        path.unlink()
        with pytest.raises(StoreUnavailableException, match="is gone"):
            await store.commit(put(A))
        assert not path.exists()
        for _ in range(3):
            path.touch()
            with pytest.raises(StoreUnavailableException, match="was replaced"):
                await store.commit(put(A))
            path.unlink()
        await store.close()

    asyncio.run(check())


def test_without_its_log_no_commit_would_survive(path: Path) -> None:
    async def check() -> None:
        store = SqliteStore(path)
        await store.commit(put(A))
        wal_of(path).unlink()
        with pytest.raises(StoreUnavailableException, match="-wal is gone"):
            await store.commit(put(B))
        await store.close()
        assert await keys_in(path) == [A]

    asyncio.run(check())


@pytest.mark.parametrize("suffix", ["", "-wal", "-redo1"])
def test_a_folder_that_was_quiet_for_long_is_looked_at_all_the_same(
    path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as it is, nobody looks for each file; that one is taken away, everybody sees."""

    async def check() -> None:
        store = await open_in_quiet(path, monkeypatch)
        folder, look = str(path.parent), os.stat

        def look_at_nothing_else(path: str | Path) -> os.stat_result:
            assert str(path) == folder, f"looks for {path}"
            return look(path)

        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", look_at_nothing_else)
            await store.commit(put(B))

        file = path.with_name(path.name + suffix)
        file.rename(away(file))
        if suffix == "-redo1":  # what was in it is in the tables before anything else
            await store.commit(put(C))
            await store.close()
            assert await keys_in(path) == [A, B, C]
        else:
            for _ in range(2):
                with pytest.raises(StoreUnavailableException, match="is gone"):
                    await store.commit(put(C))
            away(file).rename(file)
            await store.commit(put(C))
            await store.close()

    asyncio.run(check())


def test_a_copy_that_is_brought_back_with_its_times_is_seen(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `cp -a` and others do: also the directory has the time that it had."""

    async def check() -> None:
        copy = tmp_path / "backup" / path.name
        copy.parent.mkdir()
        shutil.copy2(path, copy)
        store = await open_in_quiet(path, monkeypatch)
        was = path.parent.stat()
        path.unlink()
        shutil.copy2(copy, path)
        os.utime(path.parent, ns=(was.st_atime_ns, was.st_mtime_ns))
        with pytest.raises(StoreUnavailableException, match="was replaced"):
            await store.commit(put(B))
        await store.close()

    asyncio.run(check())


def test_a_folder_that_has_just_changed_may_change_again_unseen(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time may be the same: so each file is looked for, until that can't be."""

    async def check() -> None:
        store = SqliteStore(path)
        folder, look = str(path.parent), os.stat
        seen = look(folder)
        monkeypatch.setattr(os, "stat", lambda path: seen if str(path) == folder else look(path))
        await store.commit(put(A))
        await store.commit(put(B))
        path.rename(away(path))
        with pytest.raises(StoreUnavailableException, match="is gone"):
            await store.commit(put(C))
        await store.close()

    asyncio.run(check())


async def open_in_quiet(path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteStore:
    """A store with a commit, in a folder that was seen twice as it is, long enough apart."""
    monkeypatch.setattr(sqlite_file, "monotonic", count(step=10).__next__)
    store = SqliteStore(path)
    await store.commit(put(A))  # which makes the journal
    for number in (1, 2):
        await store.commit(put((0, 3, b"%d" % number)))
    return store


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def away(path: Path) -> Path:
    return path.with_name(f"away-{path.name}")


async def keys_in(path: Path) -> list[Key]:
    store = SqliteStore(path)
    keys = [row.key for a in (1, 2) for row in store.scan(Scan(0, a, b"", 9))]
    await store.close()
    return keys


# Files that cannot be read or written.


def test_a_read_only_connection(path: Path) -> None:
    async def check() -> None:
        store = SqliteStore(path)
        store._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreUnavailableException, match="read-only"):
            await store.reserve("inode id", 1)
        with pytest.raises(StoreUnavailableException, match="read-only"):
            store.commit_now(put(A))
        assert (await store.read(Reading(keys=[A]))).rows == {}
        await store.close()

    asyncio.run(check())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write read-only files")
def test_a_read_only_file(path: Path) -> None:
    path.chmod(0o444)
    with pytest.raises(StoreUnavailableException, match="read-only"):
        SqliteStore(path)


# Past rows as they lay in version 4.
UNDO_VERSION_5 = (
    "DROP TABLE past; CREATE TABLE past ("
    " t INTEGER NOT NULL, a INTEGER NOT NULL, b BLOB NOT NULL,"
    " until INTEGER NOT NULL, since INTEGER NOT NULL, id INTEGER, data BLOB NOT NULL,"
    " PRIMARY KEY (t, a, b, until)) WITHOUT ROWID;"
    " CREATE INDEX past_by_until ON past (until);"
    " CREATE INDEX past_by_id ON past (id, t) WHERE id IS NOT NULL;"
)

UNDO_VERSION_10 = (
    "DROP INDEX past_by_holder; ALTER TABLE past DROP COLUMN holder;"
    " CREATE INDEX past_by_until ON past (until);"
)
UNDO_VERSION_6 = "ALTER TABLE totals DROP COLUMN reserved_bytes;"

# What versions 4 to 6 have added.
UNDO_VERSION_4 = (
    UNDO_VERSION_6
    + UNDO_VERSION_5
    + (
        "ALTER TABLE totals DROP COLUMN snapshots; ALTER TABLE totals DROP COLUMN changed;"
        " DROP INDEX past_by_until; DROP INDEX past_by_id"
    )
)


def test_version_1_is_brought_to_ours(path: Path) -> None:
    async def check() -> None:
        store = SqliteStore(path)
        store._connection.execute("UPDATE meta SET value = '1' WHERE name = 'schema version'")
        store._connection.execute("DELETE FROM counters WHERE name = 'storage'; DROP TABLE journal")
        store._connection.execute(UNDO_VERSION_4)
        await store.close()
        store = SqliteStore(path)
        assert (await store.meta())["schema version"] == str(SCHEMA_VERSION)
        assert await store.reserve("storage", 5) == 1
        await store.close()

    asyncio.run(check())


def test_past_rows_of_version_4_are_found_again(path: Path) -> None:
    rows = [
        (0, 7, b"b", 5, 2, 70, b"x"),
        (0, 7, b"a", 9, 3, 71, b"y"),
        (100, 7, b"", 4, 1, None, b"z"),
    ]

    async def check() -> None:
        store = SqliteStore(path)
        store._connection.execute("UPDATE meta SET value = '4' WHERE name = 'schema version'")
        store._connection.execute(UNDO_VERSION_6 + UNDO_VERSION_5)
        store._connection.executemany("INSERT INTO past VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        add_moment(store, 3)
        await store.close()
        store = SqliteStore(path)
        found = await store.scan_past(3, (0, (0, 0, b"")), 100, 10)
        assert [(*row.key, *row[1:-1]) for row in found] == sorted(rows, key=lambda row: row[3])
        then = await store.read(Reading(past={4: Reading(keys=[(0, 7, b"a")], ids=[(0, 70)])}))
        assert then.past[4].rows[0, 7, b"a"].data == b"y"
        assert [row.data for row in then.past[4].ids[0, 70]] == [b"x"]
        await store.close()

    asyncio.run(check())


def add_moment(store: SqliteStore, txid: int) -> None:
    """A snapshot of a TxID, as a row that earlier versions have as well."""
    row = (int(Table.MOMENTS), 0, PAIR.pack(txid, 16385), None, 1, b"")
    store._connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", row)


def test_past_rows_of_version_9_are_kept_for_the_latest_moment(path: Path) -> None:
    rows = [(b"a", 5, 2), (b"b", 9, 3), (b"c", 9, 7), (b"d", 4, 4)]

    async def check() -> None:
        store = SqliteStore(path)
        store._connection.execute("UPDATE meta SET value = '9' WHERE name = 'schema version'")
        store._connection.execute(UNDO_VERSION_10)
        for txid in (2, 4, 6, 30):
            add_moment(store, txid)
        for b, until, since in rows:
            row = (0, 7, b, until, since, None, b"")
            store._connection.execute("INSERT INTO past VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        await store.close()
        store = SqliteStore(path)
        assert await store.past_holders() == [4, 6]
        start = (0, (0, 0, b""))
        assert [row.key[2] for row in await store.scan_past(4, start, 99, 9)] == [b"a"]
        assert [row.key[2] for row in await store.scan_past(6, start, 99, 9)] == [b"b"]
        assert await store.count_past() == 2
        await store.close()

    asyncio.run(check())


def test_totals_of_version_5_have_nothing_reserved(path: Path) -> None:
    async def check() -> None:
        store = SqliteStore(path)
        for covered in (0, 1):
            touch = Touch(7, [1] * len(Count), 0, 1, covered)
            await store.commit(Batch(1, 0, touches=[touch]))
        store.write_backlog()
        db = store._connection
        db.execute("UPDATE meta SET value = '5' WHERE name = 'schema version'")
        db.execute(UNDO_VERSION_10 + UNDO_VERSION_6)
        add_moment(store, 1)
        db.execute("UPDATE past SET data = CAST(replace(data, ',1}', '}') AS BLOB) WHERE t = 100")
        await store.close()
        store = SqliteStore(path)
        asked = Reading(totals=[7])
        found = await store.read(Reading(totals=[7], past={1: asked}))
        assert found.totals[7].counts == (*[2] * (len(Count) - 1), 0)
        assert found.past[1].totals[7].counts == (*[1] * (len(Count) - 1), 0)
        await store.close()

    asyncio.run(check())


def test_leases_of_version_2_are_found_in_order(path: Path) -> None:
    async def check() -> None:
        store = SqliteStore(path)
        leased = (16390, 255, 1 << 40)
        puts = [Put((2, id, b""), None, 1, b"x", False) for id in leased]
        await store.commit(Batch(1, 0, puts=puts))
        store.write_backlog()
        store._connection.execute("UPDATE meta SET value = '2' WHERE name = 'schema version'")
        store._connection.execute("DROP TABLE journal")
        store._connection.execute(UNDO_VERSION_4)
        await store.close()
        store = SqliteStore(path)
        scan = Scan(2, 0, b"", 10)
        rows = (await store.read(Reading(scans=[scan]))).scans[scan]
        assert [NUMBER.unpack(row.key[2])[0] for row in rows] == sorted(leased)
        await store.close()

    asyncio.run(check())


def test_a_newer_file_is_left_alone(path: Path) -> None:
    async def check() -> None:
        store = SqliteStore(path)
        store._connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema version'")
        await store.close()
        before = path.read_bytes()
        with pytest.raises(SchemaVersionError, match="99"):
            SqliteStore(path)
        assert path.read_bytes() == before

    asyncio.run(check())


@pytest.mark.parametrize("content", [b"", b"not a database, and longer than a header" * 20])
def test_another_kind_of_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(StoreUnavailableException, match="not a CairnFS namespace file"):
        SqliteStore(path)


def test_a_file_that_exists_is_not_formatted(path: Path) -> None:
    with pytest.raises(FileExistsError):
        format_file(path, {})


def test_a_file_in_use_by_another_process(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from cairnfs.store.sqlite import SqliteStore\n"
        "store = SqliteStore(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(StoreUnavailableException, match="in use by another process"):
            SqliteStore(path)
        other.communicate(b"")
    asyncio.run(SqliteStore(path).close())


READS: list[Callable[[SqliteStore], Awaitable[object]]] = [
    lambda store: store.meta(),
    lambda store: store.read(Reading(keys=[A])),
    lambda store: store.read(Reading(ids=[(0, 1)])),
    lambda store: store.read(Reading(scans=[Scan(0, 1, b"", 9)])),
    lambda store: store.read(Reading(totals=[1])),
    lambda store: store.find_replies(b"client", 1),
]


@pytest.mark.parametrize("read", READS)
def test_a_read_that_fails_is_said_in_our_words(
    path: Path, read: Callable[[SqliteStore], Awaitable[object]]
) -> None:
    async def check() -> None:
        store = SqliteStore(path)
        await read(store)
        for table in ("meta", "records", "totals", "replies", "clock"):
            store._connection.execute(f"ALTER TABLE {table} RENAME TO lost_{table}")
        with pytest.raises(StoreUnavailableException, match=r"namespace\.db: .*no such table"):
            await read(store)
        await store.close()

    asyncio.run(check())


def test_a_damaged_file_is_refused(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\x55" * (len(content) - 100))
    with pytest.raises(StoreUnavailableException, match="damaged"):
        SqliteStore(path)


# Formatting.


def test_formatting_writes_the_first_rows(tmp_path: Path) -> None:
    async def check() -> None:
        path = tmp_path / "namespace.db"
        format_file(path, {}, [Put(A, 7, 1, b"data", False)])
        store = SqliteStore(path)
        assert await store.last_txid() == 1
        assert store.rows_of_id(0, 7) == [Row(A, 1, b"data")]
        await store.close()

    asyncio.run(check())


def test_formatting_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "namespace.db"
    twice = [Put(A, None, 1, b"", False)] * 2
    with pytest.raises(StoreUnavailableException, match="UNIQUE"):
        format_file(path, {}, twice)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sqlite_schema, "COUNTERS", {"interrupted": object()})
    with pytest.raises(TypeError):
        format_file(path, {})
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    format_file(path, {})
    assert [file.name for file in tmp_path.iterdir()] == ["namespace.db"]


def test_the_log_of_a_file_that_was_moved_away_is_not_overwritten(path: Path) -> None:
    path.rename(away(path))
    wal_of(path).write_bytes(b"commits")
    with pytest.raises(FileExistsError, match="-wal exists already"):
        format_file(path, {})
    assert wal_of(path).read_bytes() == b"commits"


def test_reading_the_file_in_this_process_gives_it_to_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "namespace.db"
    format_file(path, {})
    store = SqliteStore(path)
    path.read_bytes()  # closing it drops the locks that SQLite holds
    program = (
        "import sys; from pathlib import Path; from cairnfs.store.sqlite import SqliteStore;"
        "SqliteStore(Path(sys.argv[1]))"
    )
    other = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert other.returncode != 0
    assert "in use by another process" in other.stderr
    asyncio.run(store.close())
