"""All snapshots there are, in pages of any size."""

from __future__ import annotations

from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.snapshot_list import SnapshotRow, list_all_snapshots
from cairnfs.testing.scratch import SUPERUSER, ScratchClient
from cairnfs.transaction.calls import Call
from cairnfs.transaction.runner import run


def caller(fs: ScratchClient, user: str) -> Caller:
    return fs.namenode.namenode.caller(user, (), "127.0.0.1")


def list_all(fs: ScratchClient, user: str, limit: int) -> list[SnapshotRow]:
    rows: list[SnapshotRow] = []
    resume = None
    while True:
        call = Call(list_all_snapshots, (caller(fs, user), resume, limit))
        page = fs.namenode.wait(run(fs.namenode.namenode.runner, call))
        assert len(page.snapshots) <= limit
        rows += page.snapshots
        resume = page.resume
        if resume is None:
            return rows


def test_pages_of_any_size(fs: ScratchClient) -> None:
    expected = []
    for n, names in enumerate(("ab", "", "c", "def")):
        fs.write(f"/d{n}/file", 10)
        fs.allow_snapshot(f"/d{n}")
        for name in names:
            fs.create_snapshot(f"/d{n}", name)
            expected.append((f"/d{n}", name.encode(), 1, 10, 30))
    fs.set_owner("/d2", "alice", "users")
    fs.delete("/d3/file")
    for limit in (1, 2, 3, 1000):
        rows = list_all(fs, SUPERUSER, limit)
        assert [
            (row.path, row.name, row.files, row.length_bytes, row.referenced_bytes) for row in rows
        ] == expected
    assert [row.name for row in list_all(fs, "alice", 1)] == [b"c"]
    for path, name, *_ in expected:
        fs.delete_snapshot(path, name.decode())
