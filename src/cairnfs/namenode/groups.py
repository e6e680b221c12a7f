"""The groups of users, from the accounts of the machine that the NameNode runs on.

As Hadoop's ShellBasedUnixGroupsMapping, which asks `id`: the primary group first.  Whoever has
no account here is in no group.
"""

from __future__ import annotations

import grp
import os
import pwd
import time
from collections.abc import Callable

KNOWN_FOR_S = 300.0  # hadoop.security.groups.cache.secs
UNKNOWN_FOR_S = 30.0  # hadoop.security.groups.negative-cache.secs
USERS_MAX = 10_000


class UnixGroups:
    """Remembers for some minutes what the system said: to ask it may take long."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}

    def of(self, user: str) -> tuple[str, ...]:
        """The names of the user's groups."""
        now_s = self._clock_s()
        known = self._known.get(user)
        if known is not None and now_s < known[0]:
            return known[1]
        groups = _look_up(user)
        if len(self._known) >= USERS_MAX:
            self._known.clear()
        self._known[user] = (now_s + (KNOWN_FOR_S if groups else UNKNOWN_FOR_S), groups)
        return groups

    def forget(self) -> None:
        """Ask the system again."""
        self._known.clear()


def _look_up(user: str) -> tuple[str, ...]:
    try:
        primary = pwd.getpwnam(user).pw_gid
        ids = os.getgrouplist(user, primary)
    except (KeyError, OSError, ValueError):  # ValueError: a NUL, or not to be encoded
        return ()
    names = (_name(id) for id in dict.fromkeys([primary, *ids]))
    return tuple(name for name in names if name is not None)


def _name(id: int) -> str | None:
    try:
        return grp.getgrgid(id).gr_name
    except KeyError:  # a group without a name
        return None
