"""A table of commands, run with Hadoop's shell and with `cairn fs`, one after the other."""

from __future__ import annotations

import bz2
import getpass
import gzip
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.cli.cairn_shell import run_cairn
from tests.compatibility.record import make_local_files
from tests.compatibility.shell import FsShell, Outcome
from tests.compatibility.transcript import Command, Entry, find_differences, read_script, run_script

from cairnfs.client.filesystem import connect
from cairnfs.testing.cluster import Cluster

TABLE = Path(__file__).parent / "commands.txt"

_PROGRAM = re.compile(r"^Usage: (hadoop fs \[generic options\]|cairn fs \[--fs URL\])")

Run = Callable[[str, list[str]], Outcome]


def compare(cluster: Cluster, directory: Path) -> list[tuple[Entry, Entry]]:
    """The commands that end, or print, otherwise than Hadoop's; its outcome and ours."""
    commands = [
        command._replace(
            arguments=[each.replace("{uri}", cluster.uri) for each in command.arguments]
        )
        for command in read_script(TABLE)
    ]
    with ExitStack() as opened:
        shells: dict[str, FsShell] = {}

        def run_hadoop(user: str, arguments: list[str]) -> Outcome:
            if user not in shells:
                shells[user] = opened.enter_context(FsShell(cluster.uri, user, directory))
            return shells[user].run(*arguments)

        theirs = _run_table(commands, cluster, directory / "hadoop", run_hadoop)
    ours = _run_table(
        commands,
        cluster,
        directory / "cairn",
        lambda user, arguments: run_cairn(cluster.uri, user, arguments),
    )
    return find_differences([comparable(e) for e in theirs], [comparable(e) for e in ours])


_MAY_BE_LONG = "WARNING: the waiting time may be long for DECREASING the number of replications."


def comparable(entry: Entry) -> Entry:
    """The same of two shells that differ in name, and in how much they say.

    Of a refused command line, what it printed and which verb it was that refused: Hadoop shows
    how all verbs are called then, we show how this one is.
    """
    lines = [_PROGRAM.sub("Usage:", line) for line in entry.lines]
    lines = [line.partition("; there are ")[0] for line in lines]
    lines = [line for line in lines if not line.startswith("! Moved: ")]  # Hadoop logs that
    # Whether there was anything to wait for depends on how soon DataNodes have done it.
    text = "\n".join(lines).replace(f" ...\n{_MAY_BE_LONG}\n... done", " ... done")
    lines = text.split("\n") if text else []
    if entry.code == -1:
        refused = next(line for line in lines if line.startswith("!"))
        verb = refused.removeprefix("! ").removeprefix("-").partition(":")[0]
        lines = [*(line for line in lines if not line.startswith("!")), f"! {verb}"]
    return entry._replace(lines=lines)


def _run_table(commands: list[Command], cluster: Cluster, local: Path, run: Run) -> list[Entry]:
    _remove_everything(cluster)
    make_local_files(local)
    (local / "packed.gz").write_bytes(
        gzip.compress(b"one\n", mtime=0) + gzip.compress(b"two\n", mtime=0)
    )
    (local / "packed.bz2").write_bytes(bz2.compress(b"three\n"))
    for name in ("tree", "movedtree"):
        (local / name / "below").mkdir(parents=True)
        (local / name / "below" / "leaf").write_text("leaf\n")
    (local / "old").write_text("old\n")
    (local / "old").chmod(0o604)
    os.utime(local / "old", (1_500_000_000, 1_400_000_000))
    return run_script(commands, run, superuser=getpass.getuser(), local=local, uri=cluster.uri)


def _remove_everything(cluster: Cluster) -> None:
    with connect(cluster.uri) as fs:
        for status in fs.list_status("/"):
            fs.delete(status.path, recursive=True)
