"""Run commands of `hadoop fs` on a file system, and write down what its audit log says of each.

    python -m tests.observe.record_audit hdfs://127.0.0.1:29600 AUDIT_LOG OUTPUT

`golden/audit.txt` is what Apache HDFS 3.3.6 says; its file system was empty before.
"""

from __future__ import annotations

import argparse
import getpass
import re
import shlex
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.compatibility.shell import FsShell

HERE = Path(__file__).parent
SCRIPT = HERE / "audit_commands.txt"
GOLDEN = HERE / "golden" / "audit.txt"
MARK = "/end-of-command-"  # looked for after each, to tell the lines of one from the next
BEGINNING = f"{MARK}of-nobody"
WRITTEN_WITHIN_S = 20.0


def run_on(uri: str, log: Path) -> str:
    """The commands, each with the lines that it has left in the log."""
    commands = [
        line for line in SCRIPT.read_text().splitlines() if line and not line.startswith("#")
    ]
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        directory = Path(name)
        local = directory / "file"
        local.write_text("hello\n" * 3)
        shells: dict[str, FsShell] = {}
        for number, line in enumerate(commands):
            user, command = getpass.getuser(), line
            if line.startswith("@"):
                user, _, command = line[1:].partition(" ")
            if user not in shells:
                shells[user] = opened.enter_context(FsShell(uri, user, directory))
            if number == 0:
                shells[user].run("-test", "-e", BEGINNING)
            arguments = [_unescape(each) for each in _split(command)]
            shells[user].run(*(str(local) if each == "LOCAL" else each for each in arguments))
            shells[user].run("-test", "-e", f"{MARK}{number}")
    return "\n".join(_sort_out(commands, log))


def _sort_out(commands: list[str], log: Path) -> Iterator[str]:
    """The lines between one mark and the next are those of a command."""
    deadline_s = time.monotonic() + WRITTEN_WITHIN_S
    while f"{MARK}{len(commands) - 1}\t" not in log.read_text():
        assert time.monotonic() < deadline_s, "the last line is not in the log"
        time.sleep(0.1)
    lines = iter(read_lines(log))
    while f"src={BEGINNING}\t" not in next(lines):
        pass  # whoever has waited for the cluster
    for number, command in enumerate(commands):
        yield command
        for line in lines:
            if f"src={MARK}{number}\t" in line:
                break
            yield normalize(line)
        yield ""


def read_lines(log: Path) -> list[str]:
    """The lines of the audit log in a file that may have others, too."""
    text = log.read_text() if log.exists() else ""
    return [line for line in text.split("\n") if " FSNamesystem.audit: " in line]


def normalize(line: str) -> str:
    """Without the time, with one name for whoever runs the test."""
    _, _, fields = line.partition(" FSNamesystem.audit: ")
    me = re.escape(getpass.getuser())
    fields = re.sub(rf"\bugi={me} ", "ugi=SUPERUSER ", fields)
    fields = re.sub(rf"\bperm={me}:", "perm=SUPERUSER:", fields)
    return "    " + fields


def _split(command: str) -> list[str]:
    return shlex.split(command, posix=True) if '"/' in command else command.split(" ")


def _unescape(text: str) -> str:
    return text.replace("\\t", "\t").replace("\\n", "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("uri")
    parser.add_argument("log", type=Path)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    given.output.write_text(run_on(given.uri, given.log))


if __name__ == "__main__":
    main()
