"""What it costs to find a value: the rows of the path, in one read, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from cairnfs.config import NameNodeSettings
from cairnfs.namenode.embedded import ClientProtocol, NameNodeThread, make_namespace
from cairnfs.namenode.opening import sqlite_url
from cairnfs.store.base import Found, Reading, Row
from cairnfs.store.schema import Key, Table
from cairnfs.transaction.optimistic import OptimisticRunner

DEPTHS = (5, 50)


def path_of_depth(depth: int) -> str:
    return "".join(f"/{number}" for number in range(depth))


def build(fs: ClientProtocol, depth: int) -> str:
    """A path on which attributes of both kinds were set and moved in several places."""
    path = path_of_depth(depth)
    fs.mkdirs(path)
    fs.declare_xattr("user.path", "follow-path")
    fs.declare_xattr("user.data", "stay-with-data")
    for name in ("user.path", "user.data"):
        fs.set_xattr("/", name, b"root")
        fs.set_xattr(path_of_depth(depth // 2), name, b"middle")
    fs.rename2("/0/1", "/moved")
    fs.rename2("/moved", "/0/1")
    return path


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_file_is_asked_for_each_row_of_the_path_once(
    tmp_path: Path, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = NameNodeSettings(_make(tmp_path), duties=False)
    with NameNodeThread(settings) as namenode:
        path = build(namenode.client(), depth)
    with NameNodeThread(settings) as namenode:  # which has seen nothing yet
        runner = namenode.namenode.runner
        assert isinstance(runner, OptimisticRunner)
        assert runner._cache is not None
        reads = runner._cache._reads
        asked: list[Key] = []
        row = reads.row

        def counted(key: Key) -> Row | None:
            asked.append(key)
            return row(key)

        monkeypatch.setattr(reads, "row", counted)
        found = namenode.client().get_xattrs(path)
        assert found == {"user.path": b"root", "user.data": b"middle"}
        assert len(asked) == len(set(asked)) == depth + 1
        assert {key[0] for key in asked} == {Table.INODES}


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_database_is_asked_once(
    postgres_dsn: str, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_namespace(postgres_dsn)
    with NameNodeThread(NameNodeSettings(postgres_dsn, duties=False)) as namenode:
        fs = namenode.client()
        path = build(fs, depth)
        fs.get_file_info(path)  # where the path leads is known from now on
        store = namenode.namenode.store
        readings: list[Reading] = []
        read = store.read

        async def counted(reading: Reading) -> Found:
            readings.append(reading)
            return await read(reading)

        monkeypatch.setattr(store, "read", counted)
        fs.get_file_info(path)
        (without,) = readings
        assert fs.get_xattrs(path) == {"user.path": b"root", "user.data": b"middle"}
        _, with_attributes = readings
        assert set(with_attributes.keys) == set(without.keys)
        assert len(set(with_attributes.keys)) == depth + 1


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_set_and_a_rename_of_what_is_known_read_nothing(postgres_dsn: str, depth: int) -> None:
    """But totals, which are looked at now and then."""
    make_namespace(postgres_dsn)
    with NameNodeThread(NameNodeSettings(postgres_dsn, duties=False)) as namenode:
        fs = namenode.client()
        path = build(fs, depth)
        fs.create(f"{path}/f")
        before = namenode.statistics.reads
        for number in range(20):
            fs.set_xattr(path, "user.data", str(number).encode())
            fs.rename(f"{path}/f", f"{path}/g")
            fs.rename(f"{path}/g", f"{path}/f")
        assert namenode.statistics.reads - before < 20  # of 60 calls
        assert fs.get_xattrs(f"{path}/f")["user.data"] == b"19"


def _make(directory: Path) -> str:
    url = sqlite_url(directory / "namespace")
    make_namespace(url)
    return url
