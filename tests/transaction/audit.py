"""A look at the whole namespace when the NameNodes of a test are gone."""

from __future__ import annotations

from cairnfs.config import NameNodeSettings
from cairnfs.store.schema import FIRST_INODE_ID
from cairnfs.testing.invariants import check_invariants, check_no_leftovers
from cairnfs.testing.peers import LocalPeer
from cairnfs.transaction.numbers import RANGE

NAMENODES_MAX = 8
IDS_MAX = 500  # of each NameNode: tests are small


def audit(url: str) -> None:
    """The namespace is consistent, and nothing is left that cannot be reached."""
    ranges = [FIRST_INODE_ID + RANGE * number for number in range(NAMENODES_MAX)]
    ids = [id for first in ranges for id in range(first, first + IDS_MAX)]
    with LocalPeer(NameNodeSettings(url, duties=False)) as peer:
        namenode = peer.thread.namenode
        peer.thread.wait(check_invariants(namenode.store))
        peer.thread.wait(namenode.duties.reclaim_everything())
        peer.thread.wait(check_invariants(namenode.store))
        peer.thread.wait(check_no_leftovers(namenode.store, ids))
