"""DataNodes that are to leave, and those that are to stay after all.

A NameNode reads who is to leave from a file, as in HDFS (dfs.hosts.exclude there,
--excluded-hosts here); it is written here, and the NameNodes are told to read it again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cairnfs.cli.admin.report import Node, list_datanodes
from cairnfs.cli.connection import Choice, choose, connect
from cairnfs.cli.errors import CommandError
from cairnfs.cli.home import excluded_hosts_file, home
from cairnfs.cli.output import Output

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem

POLL_S = 0.5
WORD_AFTER_S = 20.0
WORD_EVERY_S = 60.0


def decommission(fs: FileSystem, given: argparse.Namespace) -> int:
    """Put a DataNode on the list."""
    node = find_datanode(fs, given.datanode)
    file = _exclude_file(given, fs)
    lines = _read(file)
    fs.refresh_nodes()  # whoever may not do this is refused before anything is written
    if not any(_names(line, node) for line in lines):
        _write(file, [*lines, node.info.address])
    _refresh(fs)
    if given.wait:
        _wait(fs, node, "DECOMMISSIONED")
    _tell(fs, node, given, "DECOMMISSIONED", "; `cairn admin report` shows how far it is")
    return 0


def recommission(fs: FileSystem, given: argparse.Namespace) -> int:
    """Take a DataNode off the list."""
    node = find_datanode(fs, given.datanode)
    file = _exclude_file(given, fs)
    lines = _read(file)
    fs.refresh_nodes()  # as above
    _write(file, [line for line in lines if not _names(line, node)])
    _refresh(fs)
    if given.wait:
        _wait(fs, node, "NORMAL")
    _tell(fs, node, given, "NORMAL", " now; it will be in service at its next heartbeat")
    return 0


def find_datanode(fs: FileSystem, text: str) -> Node:
    """The one DataNode that is meant."""
    nodes = list_datanodes(fs)
    found = [node for node in nodes if text in _words(node)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(node.info.address for node in found or nodes) or "none"
    problem = "several DataNodes are" if found else "no DataNode is"
    raise CommandError(f"{problem} {text!r}; there are: {known}")


def _words(node: Node) -> tuple[str, ...]:
    info = node.info
    return (info.ip, info.hostname, info.address, f"{info.hostname}:{info.port}", info.uuid)


def _names(line: str, node: Node) -> bool:
    return line.partition("#")[0].strip() in _words(node)


def _exclude_file(given: argparse.Namespace, fs: FileSystem) -> Path:
    if given.exclude_file:
        return Path(given.exclude_file)
    local = choose(None)
    file = excluded_hosts_file(home())
    if local.url == fs.url and file.exists():
        return file
    raise CommandError(
        "the NameNode reads who is to leave from the file that its --excluded-hosts names: run"
        " this where that file is, and name it with --exclude-file"
    )


def _read(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except FileNotFoundError:
        raise CommandError(f"{file} does not exist; is it what --excluded-hosts names?") from None
    except OSError as error:
        raise CommandError(f"{file} cannot be read ({error.strerror})") from None


def _write(file: Path, lines: list[str]) -> None:
    """Replace the file, whole or not at all."""
    temporary = file.with_name(f"{file.name}.tmp")
    try:
        temporary.write_text("".join(f"{line}\n" for line in lines))
        os.replace(temporary, file)
    except OSError as error:
        raise CommandError(f"{file} cannot be written ({error.strerror})") from None


def _refresh(fs: FileSystem) -> None:
    """Tell every NameNode: any of them may be the one that sees to it."""
    for address in fs.url.partition("://")[2].split(","):
        with connect(Choice(f"hdfs://{address}", "")) as one:
            one.refresh_nodes()


def _wait(fs: FileSystem, node: Node, state: str) -> None:
    """Until it is so; whoever waits for long is told what for, now and then."""
    word_s = time.monotonic() + WORD_AFTER_S
    while (now := _again(fs, node)).info.state != state:
        if time.monotonic() > word_s:
            others = sum(each.info.state == "NORMAL" for each in list_datanodes(fs))
            _say_what_for(now, others)
            word_s += WORD_EVERY_S
        time.sleep(POLL_S)


def _say_what_for(node: Node, others: int) -> None:
    print(
        f"{node.info.address} is still {node.state}: each replica it has needs a place on another"
        f" DataNode, where no other of the same block is; {others} are in service",
        file=sys.stderr,
        flush=True,
    )


def _again(fs: FileSystem, node: Node) -> Node:
    return next(each for each in list_datanodes(fs) if each.info.uuid == node.info.uuid)


def _tell(
    fs: FileSystem, node: Node, given: argparse.Namespace, goal: str, until_then: str
) -> None:
    now = _again(fs, node)
    out = Output()
    if given.json:
        out.print_json({"datanode": now.info.address, "state": now.info.state})
    else:
        hint = "" if now.info.state == goal else until_then
        out.print(f"{now.info.address} is {now.state}{hint}")
    out.flush()
