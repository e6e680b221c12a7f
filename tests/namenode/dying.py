"""NameNodes that commit so often and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.namenode.datanodes import FakeCluster


class Killed(Exception):
    """This NameNode has committed as often as it may."""


def survives(cluster: FakeCluster, commits: int, live: Callable[[], object]) -> bool:
    """Live with a NameNode that dies after so many commits; False if it has."""
    store, commit = cluster.namenode.store, cluster.namenode.store.commit
    done = 0

    async def dying_commit(batch: Any) -> int:
        nonlocal done
        if done >= commits:
            raise Killed
        done += 1
        return await commit(batch)

    store.commit = dying_commit  # type: ignore[method-assign]
    try:
        live()
    except Exception:
        if done < commits:
            raise
        return False
    finally:
        store.commit = commit  # type: ignore[method-assign]
    return True
