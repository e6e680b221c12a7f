"""Taking snapshots, renaming and deleting them, and where that is allowed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnfs.cli.errors import CommandError
from cairnfs.cli.output import Output
from cairnfs.cli.snapshot.work import wait_until_reclaimed
from cairnfs.errors import FileNotFoundException

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem


def allow(fs: FileSystem, given: argparse.Namespace) -> int:
    for directory in given.directories:
        fs.allow_snapshot(directory)
        tell(given, {"directory": directory}, f"Snapshots of {directory} may be taken")
    return 0


def disallow(fs: FileSystem, given: argparse.Namespace) -> int:
    for directory in given.directories:
        fs.disallow_snapshot(directory)
        tell(given, {"directory": directory}, f"No more snapshots of {directory} may be taken")
    return 0


def create(fs: FileSystem, given: argparse.Namespace) -> int:
    directories = given.directories
    try:
        if len(directories) == 1:
            paths = [fs.create_snapshot(directories[0], given.name)]
        else:
            paths = fs.create_snapshots(directories, given.name)
    except FileNotFoundException as error:
        last = directories[-1]
        if len(directories) == 1 or "/" in last or given.name is not None:
            raise
        raise CommandError(
            f"{error}; if {last!r} is meant to be the snapshot's name: --name {last}"
        ) from None
    for path in paths:
        tell(given, {"snapshot": path}, f"Created snapshot {path}")
    return 0


def rename(fs: FileSystem, given: argparse.Namespace) -> int:
    fs.rename_snapshot(given.directory, given.old, given.new)
    tell(
        given,
        {"directory": given.directory, "old_name": given.old, "new_name": given.new},
        f"Renamed snapshot {given.old} of {given.directory} to {given.new}",
    )
    return 0


def delete(fs: FileSystem, given: argparse.Namespace) -> int:
    for name in given.names:
        fs.delete_snapshot(given.directory, name)
        tell(
            given,
            {"directory": given.directory, "deleted": name},
            f"Deleted snapshot {name} of {given.directory}",
        )
    if given.wait:
        wait_until_reclaimed(fs)
    return 0


def tell(given: argparse.Namespace, record: dict[str, object], text: str) -> None:
    out = Output()
    if given.json:
        out.print_json(record)
    else:
        out.print(text)
    out.flush()
