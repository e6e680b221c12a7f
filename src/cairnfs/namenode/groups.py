"""The groups of users, from the accounts of the machine that the NameNode runs on.

As Hadoop's ShellBasedUnixGroupsMapping, which asks `id`: the primary group first.  Whoever has
no account here is in no group; but whom we could not look for is not taken for one without.
"""

from __future__ import annotations

import grp
import os
import pwd
import time
from collections.abc import Callable

from cairnfs.errors import RetriableException

KNOWN_FOR_S = 300.0  # hadoop.security.groups.cache.secs
UNKNOWN_FOR_S = 30.0  # hadoop.security.groups.negative-cache.secs
USERS_MAX = 10_000
_DESCRIPTORS = 8  # more than looking for a user takes


class UnixGroups:
    """Remembers for some minutes what the system said: to ask it may take long.

    RetriableException: it can't be asked now.
    """

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
    _check_descriptors(user)
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


def _check_descriptors(user: str) -> None:
    """Without a descriptor to look with, the C library knows nobody, and does not say why."""
    opened: list[int] = []
    try:
        for _ in range(_DESCRIPTORS):
            opened.append(os.open("/", os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        message = f"The groups of {user} cannot be looked up now: {error.strerror}"
        raise RetriableException(message) from None
    finally:
        for descriptor in opened:
            os.close(descriptor)
