"""A walk through the namespace core, on a file in a temporary folder.

    make demo-namespace

Makes a namespace, builds and lists a tree, moves and deletes it; then lets two
NameNodes get into each other's way, and shows what comes of it.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cairnfs.clock import SystemClock
from cairnfs.config import NameNodeSettings
from cairnfs.errors import HdfsError
from cairnfs.modes import format_mode
from cairnfs.namenode.embedded import BLOCK_SIZE_BYTES, ClientProtocol, NameNodeThread
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import OpenStore, format_namespace, sqlite_url
from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.files import CreateFlag, create
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Caller
from cairnfs.namesystem.rename import rename
from cairnfs.store.sqlite import SqliteStore
from cairnfs.transaction.runner import LoneMember

FILES = 500


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="cairnfs-demo-namespace-") as folder:
        path = Path(folder) / "namespace.db"
        url = sqlite_url(path)
        _title("An embedded namespace: one file, no server")
        with _timed(f"format {url}"):
            asyncio.run(format_namespace(url))
        with NameNodeThread(NameNodeSettings(url)) as namenode:
            _show_tree(namenode.client())
            _show_bulk(namenode.client())
        asyncio.run(_show_conflicts(path))
    print("\nDone.  README.md says what works and what does not yet.")


def _show_tree(fs: ClientProtocol) -> None:
    _title("A tree")
    fs.mkdirs("/warehouse/sales/year=2026", mode=0o750)
    fs.mkdirs("/tmp", mode=0o1777)
    for name in ("part-00000", "part-00001"):
        path = f"/warehouse/sales/year=2026/{name}.parquet"
        fs.create(path)
        block = fs.add_block(path).block
        fs.complete(path, block.with_length(48_000_000))
    fs.create_symlink("/warehouse/sales/year=2026", "/latest")
    _list(fs, "/")
    summary = fs.get_content_summary("/warehouse")
    print(
        f"\n  /warehouse: {summary.directories} directories, {summary.files} files,"
        f" {summary.length_bytes:,} bytes, {summary.space_bytes:,} with replicas"
    )
    try:
        fs.rename2("/warehouse", "/warehouse/sales/inside-itself")
    except HdfsError as error:
        print(f"  refused, as HDFS does: {error.java_class}: {error}")


def _show_bulk(fs: ClientProtocol) -> None:
    _title(f"{FILES:,} files: what changes a whole tree changes one row")
    with _timed(f"create {FILES:,} files, one caller, each on disk before its answer"):
        for number in range(FILES):
            path = f"/staging/job/file-{number:05}"
            fs.create(path)
            fs.complete(path)
    with _timed("rename the directory"):
        fs.rename("/staging/job", "/warehouse/job")
    with _timed("sum up everything (kept up to date, never walked)"):
        files = fs.get_content_summary("/").files
    with _timed("delete the directory, recursively"):
        fs.delete("/warehouse/job", recursive=True)
    print(f"  {files:,} files before, {fs.get_content_summary('/').files:,} after")


async def _show_conflicts(path: Path) -> None:
    """Two NameNodes on one store, each running before it knows of the other."""
    _title("Two runners on one store, as two NameNodes on PostgreSQL are: conflicts are resolved")
    store = SqliteStore(path, shared=True)
    opened = OpenStore(store, LoneMember(), await store.meta())
    settings = NameNodeSettings(sqlite_url(path), duties=False)
    first, second = (NameNode(settings, opened, SystemClock()) for _ in range(2))
    caller = first.caller(first.superuser)
    try:
        report = FsPath.parse("/reports/today")
        await _create(first, "first", caller, report)

        print("  both rename /reports/today, at the same moment, to different names:")
        answers = await asyncio.gather(
            first.call(rename, caller, report, FsPath.parse("/reports/by-first")),
            second.call(rename, caller, report, FsPath.parse("/reports/by-second")),
        )
        _show_answers(answers)

        print("  both create /reports/tomorrow, at the same moment:")
        tomorrow = FsPath.parse("/reports/tomorrow")
        creations = await asyncio.gather(
            _create(first, "first", caller, tomorrow),
            _create(second, "second", caller, tomorrow),
            return_exceptions=True,
        )
        _show_answers(creations)
        conflicts = sum(sum(n.statistics.conflicts.values()) for n in (first, second))
        print(
            f"  {conflicts} calls were thrown out by validation and ran again on the newer state;"
            "\n  neither caller saw an abort, and nothing was lost or done twice."
        )
    finally:
        await first.stop()
        await second.stop()


async def _create(node: NameNode, holder: str, caller: Caller, path: FsPath) -> FileStatus:
    status: FileStatus = await node.call(
        create, caller, path, 0o644, None, holder, CreateFlag.CREATE, True, 3, BLOCK_SIZE_BYTES
    )
    return status


def _show_answers(answers: Iterable[Any]) -> None:
    for name, answer in zip(("first", "second"), answers, strict=True):
        if isinstance(answer, HdfsError):
            text = type(answer).__name__
        elif isinstance(answer, bool):
            text = "renamed" if answer else "false: the source is not there any more"
        else:
            text = f"created, inode {answer.id}"
        print(f"    {name:6} -> {text}")


def _list(fs: ClientProtocol, path: str) -> None:
    listing = fs.get_listing(path)
    assert listing is not None
    for entry in listing.entries:
        letter = {1: "d", 2: "-", 3: "l"}[entry.kind]
        when = datetime.fromtimestamp(entry.mtime_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
        below = f"{path.rstrip('/')}/{entry.name.decode()}"
        shown = f"{below} -> {entry.target}" if entry.target else below
        print(
            f"  {letter}{format_mode(entry.mode)} {entry.owner:8} {entry.group:10}"
            f" {entry.length_bytes:>12,} {when} {shown}"
        )
        if entry.is_directory:
            _list(fs, below)


def _title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


@contextmanager
def _timed(what: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    elapsed_ms = (time.perf_counter() - begin) * 1000
    print(f"  {elapsed_ms:9.1f} ms  {what}")


if __name__ == "__main__":
    main()
