"""Waiting for a cluster that does not answer: a NameNode is restarted, or another one takes over.

A client waits for a NameNode that it knows.  Tasks come and go, and know none: to them, one that is
just starting is one that was never there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from cairnfs.client.namenode import NameNodeUnreachable
from cairnfs.errors import RetriableException, SafeModeException, StandbyException
from cairnfs.network.sockets import PeerTimeout

PATIENCE_S = 120.0
_PAUSE_S = 1.0
_PASSES = (
    NameNodeUnreachable,
    PeerTimeout,
    RetriableException,
    SafeModeException,
    StandbyException,
)
_R = TypeVar("_R")


def patiently(action: Callable[[], _R]) -> _R:
    """Do something that may be done again, until a cluster has answered or it takes too long."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return action()
        except _PASSES:
            if time.monotonic() > end_s:
                raise
        time.sleep(_PAUSE_S)
