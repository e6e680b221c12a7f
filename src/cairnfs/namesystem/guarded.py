"""What a roll-back leaves as it is, since the user who asks for it may not change it otherwise.

These are quotas, the attributes `trusted.*`, `security.*` and `raw.*`, and a storage policy that
was chosen for something that the user may not write.  They stay as they are now, whatever they
were in the snapshot: on the directory itself, and on all below it that was there then.
"""

from __future__ import annotations

import msgspec

from cairnfs.namesystem.inheritance import (
    STORAGE_POLICY,
    inherited_names,
    name_of,
    with_decisions,
)
from cairnfs.namesystem.inodes import Inode, XAttr
from cairnfs.namesystem.lookup import Lookup
from cairnfs.namesystem.permissions import Access, Caller, has_permission
from cairnfs.namesystem.xattrs import is_guarded


def keep_guarded(caller: Caller, now: Inode, then: Inode) -> Inode:
    """Return an inode as it was, but for what the caller may not change of it now."""
    keeps_policy = not _may_write(caller, now)

    def is_kept(xattr: XAttr) -> bool:
        name = name_of(xattr)
        return is_guarded(name) or (keeps_policy and name == STORAGE_POLICY)

    kept = [xattr for xattr in now.xattrs or () if is_kept(xattr)]
    gone_back = [xattr for xattr in then.xattrs or () if not is_kept(xattr)]
    xattrs = tuple(sorted((*gone_back, *kept), key=name_of))
    return msgspec.structs.replace(then, quota=now.quota, xattrs=xattrs or None)


def keep_guarded_of(caller: Caller, lookup: Lookup, now: Inode, then: Inode) -> Inode:
    """As `keep_guarded`, of what was found at a path: with what it inherits from above it."""
    kept = keep_guarded(caller, now, then)
    names = [name for name in inherited_names(lookup.inodes[0]) if is_guarded(name)]
    return with_decisions(lookup, kept, names)


def _may_write(caller: Caller, inode: Inode) -> bool:
    return (
        caller.is_superuser
        or caller.user == inode.owner
        or has_permission(caller, inode, Access.WRITE)
    )
