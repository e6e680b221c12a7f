"""Setting quotas, and asking how much of them is used.

A quota bounds the totals that each directory carries, so neither call adds
anything up (HDFS does, to answer where no quota is set).  To ask, anybody but
the superuser must be let into each directory below, and that check walks.
"""

from __future__ import annotations

import msgspec

from cairnfs.blocks.records import StorageType
from cairnfs.errors import (
    FileNotFoundException,
    IllegalArgumentException,
    UnsupportedActionException,
)
from cairnfs.namesystem.inodes import QUOTA_UNSET, Quota
from cairnfs.namesystem.lookup import (
    directory_at,
    key_of,
    resolve_link,
    resolve_to_write,
)
from cairnfs.namesystem.marks import GUARDED, mark
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.permissions import Access, Caller, check_superuser
from cairnfs.namesystem.quotas import reported_quota, subtree
from cairnfs.namesystem.subtree_access import check_subtree_access
from cairnfs.store.base import Count
from cairnfs.transaction.calls import operation
from cairnfs.transaction.transaction import Transaction

QUOTA_DONT_SET = 2**63 - 1
QUOTA_RESET = QUOTA_UNSET

_FIELD_OF_TYPE = {
    StorageType.SSD: "ssd_bytes",
    StorageType.DISK: "disk_bytes",
    StorageType.ARCHIVE: "archive_bytes",
    StorageType.PROVIDED: "provided_bytes",
    StorageType.NVDIMM: "nvdimm_bytes",
}


class QuotaUsage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is used, the path itself counted, and what may be."""

    inodes: int
    space_bytes: int
    type_bytes: tuple[int, ...]  # SSD, DISK, ARCHIVE, PROVIDED, NVDIMM
    quota: Quota


@operation()
def set_quota(
    tx: Transaction,
    caller: Caller,
    path: FsPath,
    namespace_quota: int,
    space_quota_bytes: int,
    storage_type: StorageType | None,
) -> None:
    """Limit what may be below a directory: inodes and space, or space of one storage type.

    QUOTA_DONT_SET leaves a limit as it is, QUOTA_RESET removes it.  A limit
    below what is used already is allowed: it stops growth.
    """
    check_superuser(caller, _command(namespace_quota, space_quota_bytes))
    lookup = resolve_to_write(tx, caller, path)
    _check_limits(namespace_quota, space_quota_bytes, storage_type)
    directory = directory_at(lookup)

    changes: dict[str, int] = {}
    if storage_type is not None:
        if space_quota_bytes != QUOTA_DONT_SET:
            changes[_FIELD_OF_TYPE[storage_type]] = space_quota_bytes
    else:
        if namespace_quota != QUOTA_DONT_SET:
            changes["inodes"] = namespace_quota
        if space_quota_bytes != QUOTA_DONT_SET:
            changes["space_bytes"] = space_quota_bytes
    quota = msgspec.structs.replace(directory.quota or Quota(), **changes)
    if quota == (directory.quota or Quota()):
        return
    # Whoever adds something below has to see the limit, or be seen by it.
    tx.require_alone()
    changed = msgspec.structs.replace(directory, quota=quota if quota.is_set else None)
    tx.put(key_of(directory), changed)
    mark(tx, lookup.inodes, GUARDED)


@operation(mutates=False)
def get_quota_usage(tx: Transaction, caller: Caller, path: FsPath) -> QuotaUsage:
    """How much is used of a path's quotas, set or not."""
    lookup = resolve_link(tx, caller, path)
    target = lookup.target
    if target is None:
        raise FileNotFoundException(f"File/Directory does not exist: {lookup.path}")
    rows = lookup.rows
    check_subtree_access(rows, caller, lookup.path, target, Access.READ_EXECUTE, to_delete=False)
    used = dict(subtree(rows, target))
    return QuotaUsage(
        used[Count.INODES],
        used.get(Count.SPACE_BYTES, 0),
        tuple(used.get(count, 0) for count in range(Count.SSD_BYTES, Count.NVDIMM_BYTES + 1)),
        reported_quota(target),
    )


def _check_limits(
    namespace_quota: int, space_quota_bytes: int, storage_type: StorageType | None
) -> None:
    if not (
        QUOTA_RESET <= namespace_quota <= QUOTA_DONT_SET
        and QUOTA_RESET <= space_quota_bytes <= QUOTA_DONT_SET
    ):
        raise IllegalArgumentException(
            f"Illegal value for nsQuota or ssQuota : {namespace_quota} and {space_quota_bytes}"
        )
    if storage_type is None:
        return
    if namespace_quota != QUOTA_DONT_SET:
        raise UnsupportedActionException(
            "Failed to set quota by storage type because either"
            " dfs.quota.by.storage.type.enabled is set to true or nsQuota value is illegal"
            f" {namespace_quota}"
        )
    if storage_type not in _FIELD_OF_TYPE:  # HDFS stores it, and never looks at it
        raise UnsupportedActionException(
            f"Storage type {storage_type.name} does not support quotas"
        )


def _command(namespace_quota: int, space_quota_bytes: int) -> str:
    """The name by which HDFS refuses and audits the call."""
    if space_quota_bytes == QUOTA_DONT_SET:
        return "clearQuota" if namespace_quota == QUOTA_RESET else "setQuota"
    if namespace_quota == QUOTA_DONT_SET and space_quota_bytes == QUOTA_RESET:
        return "clearSpaceQuota"
    return "setSpaceQuota"
