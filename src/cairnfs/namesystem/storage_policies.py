"""The calls about storage policies: choosing one for a path, and asking which it has.

A policy is an attribute that follows the path (`policy_attribute`): what is chosen for a directory
holds for everything below, whatever was chosen there before, and what is moved takes that of the
directory it comes into.  In HDFS the nearest directory with a policy of its own wins.
"""

from __future__ import annotations

from types import NoneType

from cairnfs.blocks.policies import POLICIES, StoragePolicy, policy_by_name
from cairnfs.blocks.records import StorageType
from cairnfs.errors import FileNotFoundException, HadoopIllegalArgumentException
from cairnfs.namesystem.inodes import Inode
from cairnfs.namesystem.lookup import Lookup, resolve_link, resolve_to_write
from cairnfs.namesystem.marks import GUARDED, mark
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_access
from cairnfs.namesystem.policy_attribute import set_policy, unset_policy
from cairnfs.namesystem.policy_changes import (
    note_choice,
    policy_id_at,
    policy_id_of,
    request_scan,
)
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction


@operation(mutates=False)
def get_storage_policy(tx: Transaction, caller: Caller, path: FsPath) -> int:
    """The number of the policy that a path has; 0 if none was chosen for it or above it."""
    lookup = resolve_link(tx, caller, path)
    target = lookup.target
    if target is None:
        raise FileNotFoundException(f"File/Directory does not exist: {lookup.path}")
    check_access(caller, target, Access.READ, lookup.path)
    return policy_id_of(lookup)


@operation()
def set_storage_policy(tx: Transaction, caller: Caller, path: FsPath, name: str) -> None:
    """Choose a policy for a path and everything below it."""
    policy = policy_by_name(name)
    if policy is None:
        known = ", ".join(each.name for each in POLICIES)
        raise HadoopIllegalArgumentException(
            f"Cannot find a block policy with the name {name}; {path} can have one of {known}"
        )
    lookup, inode = _resolve_to_choose(tx, caller, path)
    if inode.is_file and policy.copy_on_create_file:
        raise HadoopIllegalArgumentException(
            f"Policy {_describe(policy)} cannot be set after file creation."
        )
    note_choice(tx, lookup, policy_id_of(lookup), policy.id)
    set_policy(tx, lookup, policy.id)
    _mark_if_foreign(tx, lookup)


@operation()
def unset_storage_policy(tx: Transaction, caller: Caller, path: FsPath) -> None:
    """Let a path and everything below it have the policy of the directory above it."""
    lookup, _ = _resolve_to_choose(tx, caller, path)
    note_choice(tx, lookup, policy_id_of(lookup), policy_id_at(lookup.inodes[:-1]))
    unset_policy(tx, lookup)
    _mark_if_foreign(tx, lookup)


@operation(stored_reply=NoneType)
def satisfy_storage_policy(tx: Transaction, caller: Caller, path: FsPath) -> None:
    """Have all blocks at and below a path brought to where they belong.

    What a change of policy asks for is done without: this is for blocks that found no room there
    when they were written.
    """
    _, inode = _resolve_to_choose(tx, caller, path)
    request_scan(tx, inode)


def _resolve_to_choose(tx: Transaction, caller: Caller, path: FsPath) -> tuple[Lookup, Inode]:
    lookup = resolve_to_write(tx, caller, path)
    inode = lookup.target
    if inode is None:
        raise FileNotFoundException(f"File/Directory does not exist: {lookup.path}")
    check_access(caller, inode, Access.WRITE, lookup.path)
    return lookup, inode


def _mark_if_foreign(tx: Transaction, lookup: Lookup) -> None:
    """Have a roll-back of a directory of another user find what was chosen for this one's."""
    root, owner = lookup.inodes[0], lookup.inodes[-1].owner
    if any(above.owner not in (owner, root.owner) for above in lookup.ancestors):
        mark(tx, lookup.inodes, GUARDED)


def _describe(policy: StoragePolicy) -> str:
    """As Hadoop's BlockStoragePolicy shows itself."""

    def names(types: tuple[StorageType, ...]) -> str:
        return f"[{', '.join(type.name for type in types)}]"

    return (
        f"BlockStoragePolicy{{{policy.name}:{policy.id},"
        f" storageTypes={names(policy.storage_types)},"
        f" creationFallbacks={names(policy.creation_fallbacks)},"
        f" replicationFallbacks={names(policy.replication_fallbacks)}}}"
    )
