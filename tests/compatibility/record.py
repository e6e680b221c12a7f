"""Run a script on a file system and write down what happens: `golden/` is from HDFS.

    python -m tests.compatibility.record fsshell.txt hdfs://127.0.0.1:29200 [--superuser NAME]

The file system must be empty but for what its own start makes.
"""

from __future__ import annotations

import argparse
import getpass
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.compatibility.shell import FsShell, Outcome
from tests.compatibility.transcript import Entry, read_script, run_script, write_transcript

HERE = Path(__file__).parent
SCRIPTS = ("fsshell.txt", "snapshots.txt", "xattrs.txt", "policies.txt")
GOLDEN = HERE / "golden"
BIG_BYTES = 300_000
BLOCK_BYTES = 1 << 20


def run_on(uri: str, superuser: str, script: str) -> list[Entry]:
    """What becomes of a script on the file system at `uri`."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        directory = Path(name)
        local = directory / "local"
        make_local_files(local)
        shells: dict[str, FsShell] = {}

        def run(user: str, arguments: list[str]) -> Outcome:
            if user not in shells:
                shells[user] = opened.enter_context(FsShell(uri, user, directory))
            return shells[user].run(*arguments)

        return run_script(
            read_script(HERE / script), run, superuser=superuser, local=local, uri=uri
        )


def make_local_files(local: Path) -> None:
    """Files to be put; always the same, so that checksums are."""
    local.mkdir()
    (local / "small").write_text("hello\n" * 3)
    (local / "moved").write_text("moved\n")
    (local / "big").write_bytes(bytes(n * 7 % 251 for n in range(BIG_BYTES)))
    for name in ("block1", "block2"):
        (local / name).write_text(f"{name}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("script", choices=SCRIPTS)
    parser.add_argument("uri")
    parser.add_argument("--superuser", default=getpass.getuser())
    given = parser.parse_args()
    entries = run_on(given.uri, given.superuser, given.script)
    write_transcript(GOLDEN / given.script, entries)


if __name__ == "__main__":
    main()
