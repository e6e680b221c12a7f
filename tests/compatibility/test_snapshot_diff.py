"""The same small histories on Apache HDFS and here: the same differences are told.

Through the Python client from both, and through Hadoop's DistributedFileSystem from CairnFS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.client.real_hdfs import JARS, RealHdfs
from tests.scenarios.jvm import Jvm

import cairnfs
from cairnfs.client.records import DiffEntry
from cairnfs.testing.cluster import Cluster

pytestmark = pytest.mark.java

Fs = cairnfs.FileSystem
History = Callable[[Fs, str], object]
Told = set[tuple[str, str, str | None]]


def write(fs: Fs, path: str) -> None:
    fs.create(path).close()


def created_and_deleted(fs: Fs, top: str) -> None:
    write(fs, f"{top}/new")
    fs.mkdirs(f"{top}/x/made/deeper")
    fs.delete(f"{top}/y/file")
    fs.delete(f"{top}/x/deep", recursive=True)


def made_and_removed_again(fs: Fs, top: str) -> None:
    write(fs, f"{top}/x/short")
    fs.delete(f"{top}/x/short")


def modified(fs: Fs, top: str) -> None:
    fs.set_permission(f"{top}/x", 0o700)
    fs.set_permission(f"{top}/y/file", 0o600)
    fs.set_owner(f"{top}/x/file", "ada")
    fs.set_replication(f"{top}/x/deep/file", 2)


def only_times(fs: Fs, top: str) -> None:
    fs.set_times(f"{top}/x/file", 1000, 1000)


def renamed_here(fs: Fs, top: str) -> None:
    fs.rename(f"{top}/y/file", f"{top}/y/other")


def renamed_elsewhere(fs: Fs, top: str) -> None:
    fs.rename(f"{top}/x/deep", f"{top}/y/moved")
    write(fs, f"{top}/y/moved/new")
    fs.set_permission(f"{top}/y/moved/file", 0o600)


def moved_in_and_out(fs: Fs, top: str) -> None:
    fs.mkdirs(f"{top}-outside/come/below")
    fs.rename(f"{top}-outside/come", f"{top}/come")
    fs.rename(f"{top}/x/deep", f"{top}-outside/gone")


def exchanged(fs: Fs, top: str) -> None:
    fs.rename(f"{top}/x", f"{top}/between")
    fs.rename(f"{top}/y", f"{top}/x")
    fs.rename(f"{top}/between", f"{top}/y")


def renamed_and_made_again(fs: Fs, top: str) -> None:
    fs.rename(f"{top}/x/file", f"{top}/x/before")
    write(fs, f"{top}/x/file")
    fs.set_permission(f"{top}/x/before", 0o600)


def into_what_is_new(fs: Fs, top: str) -> None:
    fs.mkdirs(f"{top}/new")
    fs.rename(f"{top}/x", f"{top}/new/x")
    fs.rename(f"{top}/new/x/deep", f"{top}/new/deep")


def chained(fs: Fs, top: str) -> None:
    fs.rename(f"{top}/y", f"{top}/z")
    fs.rename(f"{top}/z/file", f"{top}/x/from-y")
    fs.rename(f"{top}/x/from-y", f"{top}/last")
    fs.rename(f"{top}/z", f"{top}/x/y")


def out_of_what_is_deleted(fs: Fs, top: str) -> None:
    fs.rename(f"{top}/x/deep", f"{top}/deep")
    fs.delete(f"{top}/x", recursive=True)


def overwritten(fs: Fs, top: str) -> None:
    fs.rename(f"{top}/x/file", f"{top}/y/file", overwrite=True)
    fs.create(f"{top}/x/deep/file", overwrite=True).close()


HISTORIES: list[History] = [
    created_and_deleted,
    made_and_removed_again,
    modified,
    only_times,
    renamed_here,
    renamed_elsewhere,
    moved_in_and_out,
    exchanged,
    renamed_and_made_again,
    into_what_is_new,
    chained,
    out_of_what_is_deleted,
    overwritten,
]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fs]:
    with (
        Cluster(tmp_path_factory.mktemp("cairn") / "cluster", datanodes=1) as cluster,
        cairnfs.connect(cluster.uri) as fs,
    ):
        fs.cluster = cluster  # type: ignore[attr-defined]
        yield fs


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fs]:
    if not JARS.is_dir():
        pytest.skip("there is no Apache HDFS to compare with")
    with (
        RealHdfs(tmp_path_factory.mktemp("apache"), datanodes=1) as hdfs,
        cairnfs.connect(hdfs.uri) as fs,
    ):
        yield fs


@pytest.fixture(scope="module")
def java(ours: Fs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    directory: Path = tmp_path_factory.mktemp("java")
    with Jvm(ours.cluster, directory) as java:  # type: ignore[attr-defined]
        yield java


def live(fs: Fs, history: History, top: str) -> None:
    """A tree, a snapshot of it, what happens to it, and another snapshot."""
    fs.mkdirs(f"{top}/x/deep")
    fs.mkdirs(f"{top}/y")
    for path in ("x/file", "x/deep/file", "y/file"):
        write(fs, f"{top}/{path}")
    fs.allow_snapshot(top)
    fs.create_snapshot(top, "s1")
    history(fs, top)
    fs.create_snapshot(top, "s2")


COMPARED = (("s1", "s2"), ("s2", "s1"), ("s1", ""), ("s2", ""), ("", "s1"))


def told(entries: list[DiffEntry]) -> Told:
    assert len(entries) == len(set(map(repr, entries)))
    return {(entry.kind, entry.path, entry.target) for entry in entries}


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_what_hdfs_tells(history: History, ours: Fs, theirs: Fs) -> None:
    top = f"/{history.__name__}"
    for fs in (ours, theirs):
        live(fs, history, top)
    for old, new in COMPARED:
        wanted = told(theirs.get_snapshot_diff_report(top, old, new).entries)
        assert told(ours.get_snapshot_diff_report(top, old, new).entries) == wanted, (old, new)
        assert told(list(ours.snapshot_diff(top, old, new))) == wanted, (old, new)
        assert told(list(theirs.snapshot_diff(top, old, new))) == wanted, (old, new)


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_what_hadoops_client_is_told(history: History, ours: Fs, java: Jvm) -> None:
    top = f"/java-{history.__name__}"
    live(ours, history, top)
    for old, new in COMPARED:
        report = java.fs.getSnapshotDiffReport(java.path(top), old, new)
        found = set()
        for entry in report.getDiffList():
            target = entry.getTargetPath()
            found.add(
                (
                    entry.getType().getLabel(),
                    bytes(entry.getSourcePath()).decode() or ".",
                    None if target is None else bytes(target).decode(),
                )
            )
        assert found == told(list(ours.snapshot_diff(top, old, new))), (old, new)
