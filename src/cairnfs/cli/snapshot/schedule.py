"""Schedules: `24h7d4w` keeps 24 hourly, 7 daily and 4 weekly snapshots."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from cairnfs.cli.errors import CommandError
from cairnfs.cli.output import Output

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem
    from cairnfs.client.records import SnapshotSchedule

UNITS = {"h": "hourly", "d": "daily", "w": "weekly", "m": "monthly", "y": "yearly"}
_PART = re.compile(r"([0-9]{1,6})([hdwmy])")
_WHOLE = re.compile(rf"({_PART.pattern})+")


def schedule(fs: FileSystem, given: argparse.Namespace) -> int:
    if given.what == "list":
        return _list(fs, given)
    if given.directory is None:
        raise CommandError(
            f"say of which directory: cairn snapshot schedule {given.what} DIRECTORY"
        )
    if given.what == "remove":
        fs.remove_snapshot_schedule(given.directory)
        _print(f"No more snapshots of {given.directory} are taken; those that there are stay")
        return 0
    return _set(fs, given)


def _set(fs: FileSystem, given: argparse.Namespace) -> int:
    from cairnfs.client.records import SnapshotSchedule

    wanted = SnapshotSchedule(given.directory, **parse_keep(given.keep), prefix=given.prefix)
    if not given.dry_run:
        fs.set_snapshot_schedule(wanted)
        _print(f"Of {given.directory}, {describe(wanted)} snapshots are kept")
        return 0
    preview = fs.preview_snapshot_schedule(wanted)
    out = Output()
    if given.json:
        out.print_json({"kept": preview.kept, "deleted": preview.deleted})
    else:
        for name in preview.kept:
            out.print(f"keep    {name}")
        for name in preview.deleted:
            out.print(f"delete  {name}")
        out.print(f"{len(preview.kept)} kept, {len(preview.deleted)} deleted; nothing is done yet")
    out.flush()
    return 0


def _list(fs: FileSystem, given: argparse.Namespace) -> int:
    found = fs.get_snapshot_schedules()
    out = Output()
    if given.json:
        for each in found:
            counts = {name: getattr(each, name) for name in UNITS.values()}
            out.print_json({"directory": each.path, **counts, "prefix": each.prefix})
    elif not found:
        out.print("There are no schedules")
    else:
        rows = [["DIRECTORY", "KEEPS", "PREFIX"]]
        out.print_table(rows + [[each.path, describe(each), each.prefix] for each in found])
    out.flush()
    return 0


def parse_keep(text: str | None) -> dict[str, int]:
    """How many of each to keep, from "24h7d4w"."""
    if text is None or not _WHOLE.fullmatch(text):
        raise CommandError(
            f"--keep says how many snapshots, as in 24h7d4w; {text!r} does not"
            if text is not None
            else "say how many snapshots to keep: --keep 24h7d4w"
        )
    counts: dict[str, int] = {}
    for number, letter in _PART.findall(text):
        if UNITS[letter] in counts:
            raise CommandError(f"--keep {text} has {letter!r} twice")
        counts[UNITS[letter]] = int(number)
    if not any(counts.values()):
        raise CommandError(f"--keep {text} would keep none: remove the schedule instead")
    return counts


def describe(schedule: SnapshotSchedule) -> str:
    """As people say it: 24 hourly, 7 daily."""
    counts = {name: getattr(schedule, name) for name in UNITS.values()}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no"


def _print(text: str) -> None:
    out = Output()
    out.print(text)
    out.flush()
