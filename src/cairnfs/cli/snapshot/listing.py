"""Which directories have snapshots, and which snapshots a directory has."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from cairnfs.cli.output import Output

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem


def list_snapshots(fs: FileSystem, given: argparse.Namespace) -> int:
    out = Output()
    if given.directory is None:
        _list_directories(fs, given, out)
    else:
        _list_one(fs, given, out)
    out.flush()
    return 0


def _list_directories(fs: FileSystem, given: argparse.Namespace, out: Output) -> None:
    found = fs.get_snapshottable_directories()
    if given.json:
        for each in found:
            out.print_json(
                {
                    "directory": each.status.path,
                    "owner": each.status.owner,
                    "snapshots": each.snapshots,
                    "snapshots_max": each.snapshots_max,
                }
            )
    elif not found:
        out.print(f"No directory of {fs.user} may have snapshots; `cairn snapshot allow DIRECTORY`")
    else:
        rows = [["DIRECTORY", "OWNER", "SNAPSHOTS"]]
        rows += [[each.status.path, each.status.owner, str(each.snapshots)] for each in found]
        out.print_table(rows, frozenset((2,)))


def _list_one(fs: FileSystem, given: argparse.Namespace, out: Output) -> None:
    found = sorted(fs.list_snapshots(given.directory), key=lambda each: each.status.mtime_ms)
    if given.json:
        for each in found:
            out.print_json(
                {
                    "name": each.status.name,
                    "path": each.status.path,
                    "id": each.id,
                    "changed_ms": each.status.mtime_ms,
                    "is_deleted": each.is_deleted,
                }
            )
    elif not found:
        out.print(f"{given.directory} has no snapshots; `cairn snapshot create {given.directory}`")
    else:
        rows = [["NAME", "TAKEN", "PATH"]]
        rows += [[each.status.name, when(each.status.mtime_ms), each.status.path] for each in found]
        out.print_table(rows)


def when(time_ms: int) -> str:
    """A time as people read it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1000))
