"""The entry point of `cairn`: which command is meant, and how it ends.

A command is a module with a `main` of its own, imported when it is called: `cairn --help`
imports nothing of the file system.  Invariant: a failure is one line that says what to do.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from cairnfs.cli.errors import CommandError

OLDEST_PYTHON = (3, 11)

COMMANDS = {
    # name: what it does, module, function
    "fs": ("files: the verbs of `hdfs dfs`", "fs.main", "main"),
    "admin": ("how a cluster is: report, fsck, leases, safemode, ...", "admin.main", "main"),
    "snapshot": ("snapshots: create, list, diff, rollback, clone, ...", "snapshot.main", "main"),
    "xattr": ("inherited attributes: declare, list, unset, explain", "xattr", "main"),
    "policy": ("storage policies: list, get, set, unset, satisfy, status", "policy", "main"),
    "job": ("bulk work on Spark: backup, restore, usage, rollback, ...", "job.main", "main"),
    "mover": ("bring replicas to where their policies want them", "policy", "mover"),
    "balancer": ("have DataNodes used evenly, as `hdfs balancer` does", "balancer", "main"),
    "cluster": ("a whole cluster on this machine: up, down, status", "cluster", "main"),
    "namenode": ("run a NameNode until SIGTERM", "nodes", "namenode"),
    "datanode": ("run a DataNode until SIGTERM", "nodes", "datanode"),
    "config": ("what is set and by whom: show, check", "config", "main"),
    "completion": ("a script for your shell: bash, zsh or fish", "completion", "main"),
}
HIDDEN = {
    # of those scripts
    "complete": ("paths that begin so", "complete", "main"),
}

INTERRUPTED = 130  # as shells have it: 128 and the number of SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    if sys.version_info < OLDEST_PYTHON:  # from a checkout: nothing has asked pip
        found = ".".join(map(str, sys.version_info[:3]))
        return _fail(f"needs Python 3.11 or newer, this is {found}; install one and try again")
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help", "help"):
        print(_help())
        return 0
    if name in ("-V", "--version"):
        print(_version())
        return 0
    commands = COMMANDS | HIDDEN
    if name.startswith("-"):
        return _fail(f"begin with a command, and put {name} after it; see cairn --help", 2)
    if name not in commands:
        return _fail(f"there is no command {name!r}; there are {', '.join(COMMANDS)}", 2)
    try:
        _, module, function = commands[name]
        command = getattr(importlib.import_module(f"cairnfs.cli.{module}"), function)
        return int(command(rest))
    except CommandError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get("CAIRNFS_DEBUG"):
            raise
        hint = "" if isinstance(error, OSError) else "; CAIRNFS_DEBUG=1 shows where"
        return _fail(f"{type(error).__name__}: {error}{hint}")


def _help() -> str:
    lines = ["usage: cairn COMMAND ...", "", "A distributed file system for HDFS programs.", ""]
    lines += ["commands:"]
    lines += [f"  {name:10} {summary}" for name, (summary, _, _) in COMMANDS.items()]
    lines += ["", "`cairn COMMAND --help` says more; `cairn --version` which release this is."]
    return "\n".join(lines)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    from cairnfs.build import is_compiled

    build = "compiled" if is_compiled() else "not compiled"
    try:
        return f"cairn {version('cairnfs')} ({build})"
    except PackageNotFoundError:
        return f"cairn, from a checkout ({build})"


def _fail(message: str, code: int = 1) -> int:
    print(f"cairn: {message}", file=sys.stderr)
    return code
