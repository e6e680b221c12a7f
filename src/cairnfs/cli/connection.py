"""Which file system a command is about, and what to say when nobody answers there."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cairnfs.cli.errors import CommandError

if TYPE_CHECKING:
    from cairnfs.client.filesystem import FileSystem

VARIABLE = "CAIRN_FS"
DEFAULT_URL = "hdfs://127.0.0.1:8020"
TIMEOUT_S = 60.0


class Choice(NamedTuple):
    """A file system, and why it is this one."""

    url: str
    reason: str

    def explain_silence(self) -> str:
        """What to do when nobody answers."""
        return f"nobody answers at {self.url}, {self.reason}"


def choose(given: str | None) -> Choice:
    """The file system that was named, or that of this machine."""
    if given:
        return Choice(given, "which --fs names: is it the right address, and does it run?")
    named = os.environ.get(VARIABLE)
    if named:
        return Choice(named, f"which {VARIABLE} names: is it the right address, and does it run?")
    return _choose_local() or Choice(
        DEFAULT_URL,
        f"the default, since neither --fs nor {VARIABLE} names another: `cairn cluster up`"
        " starts one here",
    )


def connect(choice: Choice, *, timeout_s: float = TIMEOUT_S) -> FileSystem:
    """Open it; nothing is sent as yet."""
    from cairnfs.client.filesystem import connect as open_file_system
    from cairnfs.errors import IllegalArgumentException

    try:
        return open_file_system(choice.url, timeout_s=timeout_s)
    except IllegalArgumentException as error:
        raise CommandError(str(error)) from None


def run_on(choice: Choice, action: Callable[[FileSystem], int], *, if_denied: str = "") -> int:
    """Do something with a file system; what it refuses is told in one line.

    `if_denied` is what to do where rights are wanting.
    """
    from cairnfs.client.namenode import NameNodeUnreachable
    from cairnfs.errors import AccessControlException, HdfsError
    from cairnfs.network.sockets import PeerTimeout

    try:
        with connect(choice) as fs:
            return action(fs)
    except (NameNodeUnreachable, PeerTimeout) as error:
        raise CommandError(f"{choice.explain_silence()} ({error})") from None
    except AccessControlException as error:
        raise CommandError(_first_line(error) + if_denied) from None
    except HdfsError as error:
        raise CommandError(_first_line(error)) from None
    except UnicodeEncodeError as error:
        raise CommandError(f"{error.object!a} is not UTF-8, as names have to be") from None


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _choose_local() -> Choice | None:
    """The local cluster, if one was ever started."""
    from cairnfs.cli.home import home

    plan_file = home() / "cluster.json"
    try:
        plan_file.stat()
    except OSError:  # there is none, or it is somebody else's
        return None
    from cairnfs.cli.plan import Plan

    plan = Plan.read(plan_file)
    if plan is None:
        return None
    return Choice(
        f"hdfs://127.0.0.1:{plan.namenode.port}",
        f"the local cluster in {home()}: `cairn cluster up` starts it, --fs names another",
    )
