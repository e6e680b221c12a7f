"""`cairn snapshot ACTION`: the command line, and the connection that all actions share."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence

from cairnfs.cli.connection import choose, run_on
from cairnfs.cli.subcommands import make_parsers

# name: what it does, module, function
ACTIONS = {
    "allow": ("let snapshots be taken of a directory", "changing", "allow"),
    "disallow": ("no longer, once there are none left", "changing", "disallow"),
    "create": ("take a snapshot, of several directories at one moment", "changing", "create"),
    "list": ("directories with snapshots, or the snapshots of one", "listing", "list_snapshots"),
    "rename": ("give a snapshot another name", "changing", "rename"),
    "delete": ("delete snapshots", "changing", "delete"),
    "diff": ("what changed from one snapshot to another, or to now", "diff", "diff"),
    "rollback": ("make a directory or file what it was, in place", "going_back", "rollback"),
    "space": ("what each snapshot takes, and what only it holds", "space", "space"),
    "root": ("of everything: create, status, rollback, finalize", "root", "root"),
    "schedule": ("have snapshots taken and deleted: set, list, remove", "schedule", "schedule"),
    "clone": ("a directory that begins as a snapshot, to write to", "going_back", "clone"),
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
    parser, parsers = make_parsers(
        "cairn snapshot",
        "Snapshots of directories, and what can be done with them.",
        "A snapshot is read as DIRECTORY/.snapshot/NAME.",
        "action",
        {name: what for name, (what, _, _) in ACTIONS.items()},
    )
    for name in ("allow", "disallow"):
        parsers[name].add_argument("directories", nargs="+", metavar="DIRECTORY")
    parsers["create"].add_argument("directories", nargs="+", metavar="DIRECTORY")
    parsers["create"].add_argument("--name", help="of the snapshot (the time)")
    parsers["list"].add_argument("directory", nargs="?", metavar="DIRECTORY")
    for name in ("rename", "delete", "diff", "clone"):
        parsers[name].add_argument("directory", metavar="DIRECTORY")
    parsers["rollback"].add_argument("path", metavar="PATH", help="of a directory or file")
    for name in ("rollback", "clone"):
        parsers[name].add_argument("name", metavar="NAME", help="of the snapshot")
    parsers["clone"].add_argument("destination", metavar="DESTINATION", help="is not there yet")
    parsers["rename"].add_argument("old", metavar="OLD-NAME")
    parsers["rename"].add_argument("new", metavar="NEW-NAME")
    parsers["delete"].add_argument("names", nargs="+", metavar="NAME")
    parsers["root"].add_argument("what", choices=("create", "status", "rollback", "finalize"))
    parsers["root"].add_argument("--name", help="of create: the snapshot's (the time)")
    for name in ("delete", "root"):
        what = "of finalize: until" if name == "root" else "until"
        parsers[name].add_argument(
            "--wait", action="store_true", help=f"{what} everything is reclaimed, on CairnFS"
        )
    parsers["diff"].add_argument(
        "old", metavar="OLD", help="a snapshot; . is the present, :origin what a clone began as"
    )
    parsers["diff"].add_argument("new", nargs="?", default=".", metavar="NEW", help="(.)")
    parsers["diff"].add_argument(
        "--changes", action="store_true", help="in five categories with TxIDs, in order to apply"
    )
    parsers["space"].add_argument("directory", metavar="DIRECTORY")
    parsers["space"].add_argument("names", nargs="*", metavar="NAME", help="(all)")
    _add_schedule(parsers["schedule"])
    return parser


def _add_schedule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("set", "list", "remove"))
    parser.add_argument("directory", nargs="?", metavar="DIRECTORY", help="of set and remove")
    parser.add_argument(
        "--keep", metavar="24h7d4w", help="how many hourly, daily, weekly, monthly (m), yearly (y)"
    )
    parser.add_argument("--prefix", default="auto", help="of the snapshots' names (auto)")
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be deleted")
