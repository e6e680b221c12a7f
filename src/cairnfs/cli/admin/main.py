"""`cairn admin ACTION`: the command line, and the connection that all actions share."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence

from cairnfs.cli.connection import choose, run_on
from cairnfs.cli.subcommands import make_parsers

# name: what it does, module, function
ACTIONS = {
    "report": ("room, blocks, and every DataNode", "report", "report"),
    "fsck": ("look at all blocks below a path; exit code 1 if any is lost", "fsck", "fsck"),
    "leases": ("files that are open for writing: by whom, and why", "leases", "leases"),
    "safemode": ("get, enter, leave, or wait until it is off", "report", "safe_mode"),
    "decommission": ("let a DataNode go when others have its blocks", "leaving", "decommission"),
    "recommission": ("let a DataNode stay after all", "leaving", "recommission"),
    "namenodes": ("which of the NameNodes that the URL names answer", "report", "namenodes"),
}

_IF_DENIED = "; be the user who runs the NameNode, or one of its supergroup (HADOOP_USER_NAME=...)"


def main(arguments: Sequence[str]) -> int:
    given = make_parser().parse_args(arguments)
    _, module, function = ACTIONS[given.action]
    action = getattr(importlib.import_module(f"cairnfs.cli.admin.{module}"), function)
    return run_on(choose(given.fs), lambda fs: int(action(fs, given)), if_denied=_IF_DENIED)


def make_parser() -> argparse.ArgumentParser:
    parser, parsers = make_parsers(
        "cairn admin",
        "How a cluster is, and what its administrator does with it.",
        "All of it works with an Apache HDFS, too.",
        "action",
        {name: what for name, (what, _, _) in ACTIONS.items()},
    )
    parsers["fsck"].add_argument("path", nargs="?", default="/", help="where to begin (/)")
    parsers["leases"].add_argument("path", nargs="?", default="/", help="where to begin (/)")
    parsers["safemode"].add_argument("what", choices=("get", "enter", "leave", "wait"))
    for name in ("decommission", "recommission"):
        add = parsers[name].add_argument
        add("datanode", help="its host, or host:port if there are several on it")
        add("--exclude-file", metavar="FILE", help="what the NameNode's --excluded-hosts names")
        add("--wait", action="store_true", help="until that is done")
    return parser
