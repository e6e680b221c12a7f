"""A version that a snapshot needs goes to the past when it is superseded.

There are no snapshots yet; what is tested here is what they stand on: from
current and past rows, everything below a covered directory can be seen as of
the covering TxID, whatever has happened since.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from cairnfs.config import Control
from cairnfs.errors import HdfsError
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lookup import key_of, resolve_to_write
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.rename import RenameOption
from cairnfs.store.schema import Table
from cairnfs.testing.scratch import ScratchClient, scratch_namespace
from cairnfs.transaction.calls import operation
from cairnfs.transaction.records import decode
from cairnfs.transaction.transaction import Transaction

SEEN_AT = (
    "SELECT b, since, data FROM records WHERE t = ? AND a = ? AND since <= ? UNION ALL"
    " SELECT b, since, data FROM past WHERE t = ? AND a = ? AND since <= ? AND until > ?"
    " ORDER BY b"
)


@operation()
def cover(tx: Transaction, caller: Caller, path: FsPath, txid: int) -> int:
    """What taking a snapshot will do: note in the directory what is needed."""
    directory = resolve_to_write(tx, caller, path).target
    assert directory is not None
    tx.put(key_of(directory), msgspec.structs.replace(directory, covered_txid=txid))
    return directory.id


def rows_at(db: apsw.Connection, table: Table, a: int, txid: int) -> list[tuple[bytes, Any]]:
    found = db.execute(SEEN_AT, (table, a, txid, table, a, txid, txid)).fetchall()
    return [(b, decode(table, data)) for b, _, data in found]


def tree_at(db: apsw.Connection, id: int, txid: int) -> dict[bytes, Any]:
    """Everything below a directory, inodes and blocks, as of a TxID."""
    tree: dict[bytes, Any] = {}
    for name, inode in rows_at(db, Table.INODES, id, txid):
        assert name not in tree, f"{name!r} is there twice"
        below: Any = rows_at(db, Table.BLOCKS, inode.id, txid)
        if inode.is_directory:
            below = tree_at(db, inode.id, txid)
        tree[name] = (_without_coverage(inode), below)
    return tree


def _without_coverage(inode: Inode) -> Inode:
    return msgspec.structs.replace(inode, covered_txid=0)


def build(fs: ScratchClient) -> None:
    fs.mkdirs("/d/x/deep")
    fs.mkdirs("/d/y")
    fs.mkdirs("/outside")
    fs.write("/d/a", 10, 20)
    fs.write("/d/x/b", 30)
    fs.write("/d/x/deep/c")
    fs.write("/d/y/e", 5)
    fs.create("/d/open")
    fs.write_blocks("/d/open", 7)


def change_something(fs: ScratchClient, random: random.Random) -> None:
    directories = ["/d", "/d/x", "/d/x/deep", "/d/y", "/outside", "/outside/x", "/d/z"]
    files = [f"{directory}/{name}" for directory in directories for name in "abce"]
    anything = [*files, *directories[1:], "/d/open"]
    match random.choice(["delete", "rename", "chmod", "write", "concat", "setrep", "complete"]):
        case "delete":
            fs.delete(random.choice(anything), recursive=True)
        case "rename":
            source, target = random.choice(anything), random.choice(anything)
            fs.rename2(source, target, random.choice(list(RenameOption)))
        case "chmod":
            fs.set_permission(random.choice(anything), random.choice([0o700, 0o755]))
        case "write":
            fs.write(random.choice(files), random.randrange(100))
        case "concat":
            fs.concat(random.choice(files), [random.choice(files)])
        case "setrep":
            fs.set_replication(random.choice(files), random.choice([1, 2, 3]))
        case "complete":
            fs.abandon_block("/d/open", fs.add_block("/d/open").block)


@pytest.mark.parametrize("seed", range(12))
def test_everything_below_stays_visible_as_it_was(seed: int, tmp_path: Path) -> None:
    choice = random.Random(seed)
    with scratch_namespace(tmp_path, choice.choice(list(Control))) as fs:
        build(fs)
        before = apsw_copy(fs)
        txid = int(before.execute("SELECT txid FROM clock").get)
        id = fs._call(cover, FsPath.parse("/d"), txid)
        expected = tree_at(before, id, txid)
        assert expected
        for _ in range(60):
            fs.clock.advance(1000)
            try:
                change_something(fs, choice)
            except HdfsError:
                continue
            if choice.random() < 0.1:
                fs.reclaim()
        assert tree_at(apsw_copy(fs), id, txid) == expected
    after = apsw.Connection(str(tmp_path / "namespace"))
    assert tree_at(after, id, txid) == expected


def test_what_is_not_covered_is_not_kept(tmp_path: Path) -> None:
    with scratch_namespace(tmp_path) as fs:
        build(fs)
        fs._call(cover, FsPath.parse("/d/x"), 1_000_000)
        fs.set_permission("/d/a", 0o600)
        fs.delete("/d/y", recursive=True)
        fs.rename("/d/open", "/outside/open")
    after = apsw.Connection(str(tmp_path / "namespace"))
    assert after.execute("SELECT count(*) FROM past").get == 0


def test_coverage_is_taken_along_when_something_is_moved_out(tmp_path: Path) -> None:
    with scratch_namespace(tmp_path) as fs:
        build(fs)
        fs._call(cover, FsPath.parse("/d"), 1_000_000)
        fs.rename("/d/x", "/outside/x")
        kept_by_the_move = past_count(fs)
        fs.set_permission("/outside/x/b", 0o600)
        assert past_count(fs) == kept_by_the_move + 1


def past_count(fs: ScratchClient) -> int:
    return int(apsw_copy(fs).execute("SELECT count(*) FROM past").get)


def apsw_copy(fs: ScratchClient) -> apsw.Connection:
    """A copy of the database in memory: the file is the NameNode's alone."""

    async def copy() -> apsw.Connection:
        store: Any = fs.namenode.namenode.store
        store.write_backlog()
        into = apsw.Connection(":memory:")
        with into.backup("main", store._connection, "main") as backup:
            backup.step()
        return into

    return fs.namenode.wait(copy())
