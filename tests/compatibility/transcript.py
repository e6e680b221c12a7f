"""Scripts of commands, what became of them, and how two such transcripts differ.

A script has a command on each line; `@alice` in front runs it for that user, `#` begins a
comment.  A transcript repeats the command and tells its exit code and what it printed:

    $ -ls /missing
    1
    ! ls: `/missing': No such file or directory

with `!` before what went to standard error.  What differs from run to run by its nature
(times, ports, ids) is replaced by words, so that transcripts of two servers can be compared.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tests.compatibility.shell import Outcome

SUPERUSER = "hdfs"


class Command(NamedTuple):
    """A line of a script."""

    text: str
    user: str
    arguments: list[str]


class Entry(NamedTuple):
    """A command and what became of it."""

    command: str
    code: int
    lines: list[str]

    def __str__(self) -> str:
        return "\n".join((f"$ {self.command}", str(self.code), *self.lines))


def read_script(path: Path) -> list[Command]:
    commands = []
    for line in path.read_text().splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        user, rest = SUPERUSER, text
        if text.startswith("@"):
            user, rest = text[1:].split(maxsplit=1)
        commands.append(Command(text, user, shlex.split(rest)))
    return commands


def write_transcript(path: Path, entries: Iterable[Entry]) -> None:
    path.write_text("\n\n".join(map(str, entries)) + "\n")


def read_transcript(path: Path) -> list[Entry]:
    entries = []
    for part in path.read_text().strip("\n").split("\n\n$ "):
        command, code, *lines = part.removeprefix("$ ").split("\n")
        entries.append(Entry(command, int(code), lines))
    return entries


def run_script(
    commands: Iterable[Command],
    run: Callable[[str, list[str]], Outcome],
    *,
    superuser: str,
    local: Path,
    uri: str,
) -> list[Entry]:
    """Run the commands; `{local}` in them is a directory for files on this machine."""
    entries = []
    for command in commands:
        arguments = [argument.replace("{local}", str(local)) for argument in command.arguments]
        user = superuser if command.user == SUPERUSER else command.user
        outcome = run(user, arguments)
        normalise = Normaliser(uri, local, superuser)
        lines = [normalise(line) for line in outcome.out.splitlines()]
        lines += [f"! {normalise(line)}" for line in outcome.err.splitlines()]
        entries.append(Entry(command.text, outcome.code, [line.rstrip() for line in lines]))
    return entries


class Normaliser:
    """Puts words for what is never twice the same."""

    def __init__(self, uri: str, local: Path, superuser: str) -> None:
        self._replacements = [
            (re.compile(re.escape(uri)), "URI"),
            (re.compile(re.escape(uri.removeprefix("hdfs://"))), "HOST"),
            (re.compile(re.escape(str(local))), "LOCAL"),
            (re.compile(rf"(?<=[\d-] ){re.escape(superuser)}(?= )"), SUPERUSER),  # of ls
            (re.compile(rf"\b{re.escape(superuser)}(?=[ :]+supergroup)"), SUPERUSER),
            (re.compile(rf"(?<=owner: ){re.escape(superuser)}$"), SUPERUSER),
            (re.compile(rf"(?<=denied for ){re.escape(superuser)}(?= since)"), SUPERUSER),
            (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?"), "TIME"),
            (re.compile(r"\(inode \d+\)"), "(inode N)"),
            (re.compile(r"DFSClient_[A-Za-z0-9_-]+"), "CLIENT"),
            (re.compile(r"blk_\d+_\d+"), "blk_N"),
            (re.compile(r"\.+ done$"), "... done"),  # as many as it took
            (re.compile(r"^(URI(?: +\d+){3} +\d+%)$"), "URI SIZES"),  # of df
            (re.compile(r" {2,}"), "  "),  # columns are as wide as the widest name
        ]

    def __call__(self, line: str) -> str:
        for pattern, word in self._replacements:
            line = pattern.sub(word, line)
        return line


def find_differences(golden: list[Entry], entries: list[Entry]) -> list[tuple[Entry, Entry]]:
    """The commands that had another outcome.

    An error may say more than HDFS's words, such as which path it is about.
    """
    assert [entry.command for entry in golden] == [entry.command for entry in entries], (
        "the golden transcript is of another script: record it again"
    )
    return [(a, b) for a, b in zip(golden, entries, strict=True) if not _is_as(a, b)]


def _is_as(golden: Entry, ours: Entry) -> bool:
    return (golden.code, len(golden.lines)) == (ours.code, len(ours.lines)) and all(
        our == theirs or (theirs.startswith("! ") and our.startswith(theirs))
        for theirs, our in zip(golden.lines, ours.lines, strict=True)
    )
