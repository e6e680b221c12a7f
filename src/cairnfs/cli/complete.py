"""`cairn complete [--fs URL] [--] START`: the paths on the cluster that begin so, for shells.

Hidden, since only the scripts of `cairn completion` call it.  Invariant: whatever goes wrong,
it is silent, and it ends soon: somebody has pressed a key and waits.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

LIMIT_S = 1.5
MATCHES_MAX = 500


def main(arguments: Sequence[str]) -> int:
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    words = list(arguments)
    url = None
    if words[:1] == ["--fs"]:
        url = words[1] if len(words) > 1 else None
        del words[:2]
    if words[:1] == ["--"]:
        del words[0]
    try:
        _print_matches(words[0] if words else "", url)
    except Exception:
        return 1
    return 0


def _print_matches(start: str, url: str | None) -> None:
    from cairnfs.cli.connection import choose
    from cairnfs.cli.fs.items import Paths

    directory, slash, name = start.rpartition("/")
    paths = Paths(choose(url))
    prefix = directory + slash
    count = 0
    for child in paths.find(prefix or ".").children():
        if not child.name.startswith(name) or (child.name.startswith(".") and not name):
            continue
        print(f"{prefix}{child.name}{'/' if child.is_directory else ''}")
        count += 1
        if count >= MATCHES_MAX:
            break
    sys.stdout.flush()


def _give_up(number: int, frame: object) -> NoReturn:
    os._exit(1)
