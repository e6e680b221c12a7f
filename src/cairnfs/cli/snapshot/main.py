"""`cairn snapshot ACTION`: the command line, and the connection that all actions share."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence

from cairnfs.cli.connection import choose, run_on

# name: what it does, module, function
ACTIONS = {
    "allow": ("let snapshots be taken of a directory", "changing", "allow"),
    "disallow": ("no longer, once there are none left", "changing", "disallow"),
    "create": ("take a snapshot, of several directories at one moment", "changing", "create"),
    "list": ("directories with snapshots, or the snapshots of one", "listing", "list_snapshots"),
    "rename": ("give a snapshot another name", "changing", "rename"),
    "delete": ("delete snapshots", "changing", "delete"),
    "diff": ("what changed from one snapshot to another, or to now", "diff", "diff"),
}

_IF_DENIED = (
    "; directories are made snapshottable by the superuser, snapshots taken by a directory's"
    " owner (HADOOP_USER_NAME=...)"
)


def main(arguments: Sequence[str]) -> int:
    given = make_parser().parse_args(arguments)
    _, module, function = ACTIONS[given.action]
    action = getattr(importlib.import_module(f"cairnfs.cli.snapshot.{module}"), function)
    return run_on(choose(given.fs), lambda fs: int(action(fs, given)), if_denied=_IF_DENIED)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cairn snapshot",
        description="Snapshots of directories, and what can be done with them.",
        epilog="A snapshot is read as DIRECTORY/.snapshot/NAME.  The cluster is what --fs or"
        " CAIRN_FS names, else the local one.",
        allow_abbrev=False,
    )
    parser.add_argument("--fs", metavar="URL", help="the file system: hdfs://host:8020")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    parsers = {
        name: actions.add_parser(name, help=what, description=what, allow_abbrev=False)
        for name, (what, _, _) in ACTIONS.items()
    }
    for each in parsers.values():
        # After the action too; what was said before it stays.
        each.add_argument("--fs", metavar="URL", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        each.add_argument("--json", action="store_true", help="for programs")
    for name in ("allow", "disallow"):
        parsers[name].add_argument("directories", nargs="+", metavar="DIRECTORY")
    parsers["create"].add_argument("directories", nargs="+", metavar="DIRECTORY")
    parsers["create"].add_argument("--name", help="of the snapshot (the time)")
    parsers["list"].add_argument("directory", nargs="?", metavar="DIRECTORY")
    for name in ("rename", "delete", "diff"):
        parsers[name].add_argument("directory", metavar="DIRECTORY")
    parsers["rename"].add_argument("old", metavar="OLD-NAME")
    parsers["rename"].add_argument("new", metavar="NEW-NAME")
    parsers["delete"].add_argument("names", nargs="+", metavar="NAME")
    parsers["diff"].add_argument("old", metavar="OLD", help="a snapshot; . is the present")
    parsers["diff"].add_argument("new", nargs="?", default=".", metavar="NEW", help="(.)")
    return parser
