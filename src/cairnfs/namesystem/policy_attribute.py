"""The storage policy of a path, kept as an attribute that follows the path.

HDFS's name for it is `system.hsm.block.storage.policy.id`, and its value one byte: the number of
the policy.  No caller sees it among the attributes.  What the numbers mean is for others to say.

Functions of a look-up: what was found along a path, or of what does not exist yet, the directories
above it.  They are asked before the transaction changes an inode of that path.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from cairnfs.namesystem.attribute_rules import AttributeKind
from cairnfs.namesystem.inheritance import (
    STORAGE_POLICY,
    decide,
    find_row,
    way_of,
    write,
    write_unset,
)
from cairnfs.namesystem.lookup import Lookup
from cairnfs.transaction.transaction import Transaction

POLICY_UNSPECIFIED = 0  # as in HDFS


class DecidedBy(enum.Enum):
    """Whose row it is that a policy comes from."""

    NOBODY = "nobody"  # no policy was ever chosen that reaches it
    ITSELF = "itself"  # the last inode that was found: it was set there, or unset
    ANCESTOR = "ancestor"  # a directory above, in a snapshot also one above that


class ResolvedPolicy(NamedTuple):
    """Which policy holds, and since which transaction: that of a set, an unset, or a rename."""

    id: int  # POLICY_UNSPECIFIED: the default one
    txid: int
    decided_by: DecidedBy


def set_policy(tx: Transaction, lookup: Lookup, id: int) -> None:
    """Choose a policy for what was found, which exists, and for all that is below it."""
    assert not lookup.missing, f"{lookup.path} does not exist"
    assert POLICY_UNSPECIFIED < id < 256, f"{id} is not the number of a policy"
    write(tx, lookup, STORAGE_POLICY, bytes((id,)))


def unset_policy(tx: Transaction, lookup: Lookup) -> None:
    """Let what was found, and all that is below it, have what the directory above it has.

    Written even if that is what it has already: it may be otherwise below.
    """
    assert not lookup.missing, f"{lookup.path} does not exist"
    write_unset(tx, lookup, STORAGE_POLICY)


def policy_of(lookup: Lookup) -> ResolvedPolicy:
    """The policy of the last inode that was found: also in a snapshot, where it is that of then.

    Of a path that does not exist, that is the directory in which it can be made: a new inode
    takes the policy of its parent.  Whatever a rename moves takes that of its destination.
    """
    txid, value = decide(lookup, STORAGE_POLICY, AttributeKind.FOLLOWS_PATH)
    id = value[0] if value else POLICY_UNSPECIFIED
    _, inodes = way_of(lookup)
    row = find_row(inodes[-1], STORAGE_POLICY)
    if not txid:
        return ResolvedPolicy(id, txid, DecidedBy.NOBODY)
    is_own = row is not None and row.set == txid
    return ResolvedPolicy(id, txid, DecidedBy.ITSELF if is_own else DecidedBy.ANCESTOR)
