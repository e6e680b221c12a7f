"""How often a shared store is asked: as often for much as for little.

An operation runs again, and all of its rows are read again, each time that it lacks one: whoever
asks for rows one by one takes the square of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.namesystem.test_quotas_by_type import scan, set_policy
from tests.namesystem.test_rollback import clean

from cairnfs.errors import SnapshotException
from cairnfs.namesystem import subtree_access
from cairnfs.namesystem.job_output import OutputMode
from cairnfs.namesystem.satisfying import scan_subtree
from cairnfs.testing.scratch import ScratchClient, scratch_namespace

SIZES = (2, 4, 12)  # the first one finds things for the first time, and does not count


class Reads:
    """How often the store was asked for each call, of each size."""

    def __init__(self, fs: ScratchClient) -> None:
        self._statistics = fs.namenode.namenode.statistics
        self._asked: dict[str, list[int]] = {}

    def count(self, name: str, call: Callable[[], object]) -> int:
        before = self._statistics.reads
        call()
        asked = self._statistics.reads - before
        self._asked.setdefault(name, []).append(asked)
        return asked

    def check(self) -> None:
        assert all(few == many for _, few, many in self._asked.values()), self._asked


@pytest.fixture
def fs(tmp_path: Path, postgres_dsn: str) -> Iterator[ScratchClient]:
    """On PostgreSQL, and where storage policies are used."""
    with scratch_namespace(tmp_path, url=postgres_dsn) as client:
        client.mkdirs("/warm")
        set_policy(client, "/warm", "WARM")
        scan(client)
        yield client
        clean(client)


def write_all(fs: ScratchClient, directory: str, count: int) -> None:
    for number in range(count):
        fs.write(f"{directory}/f{number}", 1)


def test_output_is_committed(fs: ScratchClient) -> None:
    reads = Reads(fs)
    for size in SIZES:
        to = f"/{size}/to"
        write_all(fs, to, size)

        def commit(mode: OutputMode, size: int = size, to: str = to) -> None:
            fs.commit_output(f"/{size}/from", to, mode)

        for number in range(size):
            fs.write(f"/{size}/from/new{number}", 1)
        reads.count("add", partial(commit, OutputMode.ADD))
        write_all(fs, f"/{size}/from", size)
        reads.count("replace", partial(commit, OutputMode.REPLACE))
        fs.allow_snapshot(to)
        fs.create_snapshot(to, "s")
        fs.rollback_snapshot(to, "s")
        write_all(fs, f"/{size}/from", size)
        reads.count("replace what comes from a snapshot", partial(commit, OutputMode.REPLACE))
        for number in range(size):
            fs.write(f"/{size}/from/p={number}/f", 1)
        reads.count("replace partitions", partial(commit, OutputMode.REPLACE_PARTITIONS))
    reads.check()


def test_files_are_made_one(fs: ScratchClient) -> None:
    reads = Reads(fs)
    for size in SIZES:
        write_all(fs, f"/{size}", size)
        fs.write(f"/{size}/target", 1, replication=2)
        sources = [f"/{size}/f{number}" for number in range(size)]
        reads.count("concat", partial(fs.concat, f"/{size}/target", sources))
    reads.check()


def test_a_page_is_looked_at_by_the_satisfier(fs: ScratchClient) -> None:
    reads = Reads(fs)
    namenode = fs.namenode
    for size in SIZES:
        top = f"/{size}"
        write_all(fs, top, size)
        for number in range(size):
            fs.write(f"{top}/d{number}/f", 1)
        fs.allow_snapshot(top)
        fs.create_snapshot(top, "s")
        inode_id = fs.info(top).id

        def step(inode_id: int = inode_id) -> None:
            assert namenode.wait(namenode.namenode.call(scan_subtree, inode_id)).is_done

        set_policy(fs, top, "COLD")
        reads.count("of rows", step)
        fs.rollback_snapshot(top, "s")
        set_policy(fs, top, "ALL_SSD")
        reads.count("of what comes from a snapshot", step)
        scan(fs)
    reads.check()


def test_who_is_not_the_superuser_deletes_many_directories(fs: ScratchClient) -> None:
    """Each of them has to let the caller do so."""
    reads = Reads(fs)
    fs.mkdirs("/home")
    fs.set_owner("/home", "alice", None)
    alice = fs.user("alice")
    for size in SIZES:
        for number in range(size):
            alice.mkdirs(f"/home/{size}/{number}/below")
        reads.count("look", partial(alice.get_content_summary, f"/home/{size}"))
        reads.count("delete", partial(alice.delete, f"/home/{size}", recursive=True))
    reads.check()


def test_more_directories_than_are_read_at_once(
    fs: ScratchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time that something is lacking, twice as much is read."""
    monkeypatch.setattr(subtree_access, "_PAGE", 2)
    monkeypatch.setattr(subtree_access, "_BATCH", 2)
    reads = Reads(fs)
    fs.mkdirs("/home")
    fs.set_owner("/home", "alice", None)
    alice = fs.user("alice")
    asked = []
    for size in (12, 100):
        for number in range(size):
            alice.mkdirs(f"/home/{size}/{number}/below")
        asked.append(reads.count("delete", partial(alice.delete, f"/home/{size}", recursive=True)))
    assert asked[0] < asked[1] <= asked[0] + 12


def test_many_may_have_snapshots(fs: ScratchClient) -> None:
    """Whether something of them is below: asked by a roll-back, and by a delete it hinders."""
    reads = Reads(fs)
    fs.write("/d/f", 1)
    fs.allow_snapshot("/d")
    fs.create_snapshot("/d", "s")
    for size in SIZES:
        paths = [f"/other/{size}/{number}/a/b" for number in range(size)]
        for path in paths:
            fs.mkdirs(path)
            fs.allow_snapshot(path)
        reads.count("take", partial(fs.create_snapshots, paths, "s"))
        reads.count("roll back", partial(fs.rollback_snapshot, "/d", "s"))

        def delete(below: str = f"/other/{size}") -> None:
            with pytest.raises(SnapshotException, match=f"since {below}/0/a/b is snapshottable"):
                fs.delete(below, recursive=True)

        reads.count("delete", delete)
        reads.count("list", fs.list_snapshottable)
        for path in paths:
            fs.write(f"{path}/f", 1)
        together = partial(fs.rollback_snapshots, paths, "s", "before")
        reads.count("roll back together", together)
        assert not any(fs.names(path) for path in paths)
    reads.check()


def test_a_shared_file_has_many_blocks(fs: ScratchClient) -> None:
    reads = Reads(fs)
    for size in SIZES:
        file, copied = f"/{size}/f", f"/copy{size}/f"
        fs.mkdirs(f"/{size}")
        fs.write(file, *[1] * size)
        fs.allow_snapshot(f"/{size}")
        fs.create_snapshot(f"/{size}", "s")
        fs.clone_snapshot(f"/{size}", "s", f"/copy{size}")
        fs.allow_snapshot(file)
        fs.create_snapshot(file, "s")
        fs.truncate(file, 1)
        locate = partial(fs.get_block_locations, copied, 0, size)
        reads.count("read from a snapshot", locate)
        reads.count("get a row", partial(fs.set_permission, copied, 0o600))
        reads.count("read what is shared", locate)
        reads.count("roll back", partial(fs.rollback_snapshot, file, "s"))
        reads.count("clone", partial(fs.clone_snapshot, file, "s", f"/clone{size}"))
    reads.check()


def test_much_below_has_snapshots_of_its_own(fs: ScratchClient) -> None:
    reads = Reads(fs)
    for size in SIZES:
        top = f"/{size}"
        paths = [f"{top}/{number % 2}/{number}" for number in range(size)]
        for path in paths:
            fs.write(f"{path}/f", 1)
            fs.allow_snapshot(path)
        fs.create_snapshots(paths, "own")
        fs.allow_snapshot(top)
        fs.create_snapshot(top, "s")
        for path in paths:
            fs.delete(f"{path}/f")
        reads.count("roll back", partial(fs.rollback_snapshot, top, "s"))
        assert all(fs.names(path) == ["f"] for path in paths)
        assert all(fs.exists(f"{path}/.snapshot/own/f") for path in paths)
    reads.check()


def test_what_is_new_is_looked_for_in_many_layers(fs: ScratchClient) -> None:
    """Something that may have snapshots, in a directory that was rolled back again and again."""
    reads = Reads(fs)
    for size in SIZES:
        top = f"/{size}"
        fs.mkdirs(top)
        fs.allow_snapshot(top)
        for number in range(size):
            fs.mkdirs(f"{top}/d{number}")
            fs.create_snapshot(top, f"s{number}")
            fs.rollback_snapshot(top, f"s{number}")
        fs.create_snapshot(top, "last")
        fs.mkdirs(f"{top}/new")
        fs.allow_snapshot(f"{top}/new")
        reads.count("roll back", partial(fs.rollback_snapshot, top, "last"))
        assert not fs.exists(f"{top}/new")
    reads.check()
