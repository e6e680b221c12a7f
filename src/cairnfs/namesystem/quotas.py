"""Totals of directories, and the quotas that limit them.

Every directory carries the totals of everything below it, kept up by each
operation that adds or removes something.  So a content summary, a quota check
and the effect of moving a whole tree are known without adding anything up.
(Whether the caller may see all of it is another question, which for all but the
superuser takes a walk: `subtree_access`.)

What a file takes of each storage type follows from a policy: as many types as it has replicas,
wherever they really are, as in HDFS.  The file's row says which policy that is, so a policy that
changes for a whole tree changes no totals: files are charged anew when the satisfier comes to them
(`satisfying`), or when they get another block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from cairnfs.blocks.policies import choose_storage_types, policy_by_id
from cairnfs.blocks.records import StorageType
from cairnfs.errors import (
    ClusterStorageCapacityExceededException,
    DSQuotaExceededException,
    IllegalArgumentException,
    NSQuotaExceededException,
    QuotaByStorageTypeExceededException,
)
from cairnfs.namesystem.inodes import QUOTA_UNSET, ROOT_ID, Inode, Kind, Quota
from cairnfs.namesystem.layers import totals_of
from cairnfs.namesystem.paths import FsPath
from cairnfs.store.base import Count
from cairnfs.transaction.rows import Rows
from cairnfs.transaction.transaction import Counts, Transaction

ONE_FILE: Final[Counts] = ((int(Count.FILES), 1), (int(Count.INODES), 1))
ONE_DIRECTORY: Final[Counts] = ((int(Count.DIRECTORIES), 1), (int(Count.INODES), 1))
ONE_SYMLINK: Final[Counts] = ((int(Count.SYMLINKS), 1), (int(Count.INODES), 1))

INT64_END: Final = 2**63
SPACE_MAX_BYTES: Final = 2**62
COPIED_BYTES_MAX: Final = 2**60
COPIED_INODES_MAX = 2**40
_LARGE_BYTES: Final = 2**36  # less than that would take millions of calls to overflow a counter

_BYTES: Final = tuple(int(count) for count in Count if count.name.endswith("_BYTES"))
_CHILDREN: Final = int(Count.CHILDREN)
_DIRECTORY: Final = Kind.DIRECTORY
_FILE: Final = Kind.FILE
_COUNTED_THEMSELVES: Final = (int(Count.DIRECTORIES), int(Count.INODES))
_ONE_CHILD: Final = ((_CHILDREN, 1),)
_ONE_CHILD_LESS: Final = ((_CHILDREN, -1),)
_OF_KIND: Final = {Kind.FILE: ONE_FILE, Kind.DIRECTORY: ONE_DIRECTORY, Kind.SYMLINK: ONE_SYMLINK}

_TYPE_LIMITS: Final = (
    ("SSD", Count.SSD_BYTES, "ssd_bytes"),
    ("DISK", Count.DISK_BYTES, "disk_bytes"),
    ("ARCHIVE", Count.ARCHIVE_BYTES, "archive_bytes"),
    ("PROVIDED", Count.PROVIDED_BYTES, "provided_bytes"),
    ("NVDIMM", Count.NVDIMM_BYTES, "nvdimm_bytes"),
)
_OF_TYPE: Final = {StorageType[name]: int(count) for name, count, _ in _TYPE_LIMITS}


def space(length_bytes: int, charged_bytes: int, reserved_bytes: int = 0) -> Counts:
    """A change of data on DISK: its length, the space of all replicas, and what of that is free."""
    for change in (length_bytes, charged_bytes):
        if type(change) is not int or not -INT64_END <= change < INT64_END:
            raise IllegalArgumentException(f"{change!r} is not a whole number of 64 bits")
    return (
        (int(Count.LENGTH_BYTES), length_bytes),
        (int(Count.SPACE_BYTES), charged_bytes),
        (int(Count.DISK_BYTES), charged_bytes),
        (int(Count.RESERVED_BYTES), reserved_bytes),
    )


def subtree(tx: Rows, inode: Inode) -> Counts:
    """What an inode and everything below it count for in the directories above."""
    if inode.kind is _DIRECTORY:
        totals = totals_of(tx, inode).counts
        return tuple(
            (count, totals[count] + (count in _COUNTED_THEMSELVES))
            for count in range(1, len(totals))
        )
    if inode.kind is _FILE and (inode.block_count or inode.reserved_bytes):
        return _OF_KIND[inode.kind] + data_of(inode)
    return _OF_KIND[inode.kind]


def data_of(file: Inode) -> Counts:
    """What the data of a file counts for in the directories above.

    What is reserved for an open block is charged to the types of the policy as well.  Of a copy
    of such a file it stays so until the copy changes: for DISK alone there is a counter that tells
    how much to take off a whole tree that is copied.
    """
    charged_bytes = charged_space(file)
    if not file.charged_policy:
        return space(file.visible_bytes, charged_bytes, file.reserved_bytes)
    if not file.has_open_block:
        charged_bytes += file.reserved_bytes
    by_type = _spread(file.charged_policy, file.replication, charged_bytes)
    return (
        (int(Count.LENGTH_BYTES), file.visible_bytes),
        (int(Count.SPACE_BYTES), charged_bytes),
        *by_type.items(),
    )


def charged_policy(policy_id: int) -> int:
    """A policy as files remember it: those by which all is on DISK are one."""
    is_disk = all(count == Count.DISK_BYTES for count, _ in _types_of(policy_id, 16))
    return 0 if is_disk else policy_id


def recharged(file: Inode, policy_id: int) -> Inode:
    """The file as it is charged by this policy."""
    return msgspec.structs.replace(
        file, charged_policy=charged_policy(policy_id), reserved_bytes=reserved_space(file)
    )


def difference(after: Counts, before: Counts) -> Counts:
    """What has to be added to the one to have the other."""
    changes = dict(after)
    for count, number in before:
        changes[count] = changes.get(count, 0) - number
    return tuple(changes.items())


def charged_space(inode: Inode) -> int:
    """Space a file is charged for: its last block counts in full while it is written."""
    length = inode.length_bytes
    if inode.has_open_block:
        length += inode.block_size_bytes
    return length * inode.replication


def reserved_space(inode: Inode) -> int:
    """What of that is charged for the part of the open block that nothing is known to be in."""
    if not inode.has_open_block:
        return 0
    return (inode.block_size_bytes - inode.open_bytes) * inode.replication


def reported_quota(inode: Inode) -> Quota:
    """As HDFS tells it: the root's namespace quota is never unset, but the largest number."""
    quota = inode.quota or Quota()
    if inode.id == ROOT_ID and quota.inodes == QUOTA_UNSET:
        return msgspec.structs.replace(quota, inodes=2**63 - 1)
    return quota


@lru_cache(maxsize=1024)
def negative(counts: Counts) -> Counts:
    return tuple([(count, -change) for count, change in counts])


def _times(counts: Counts, times: int) -> Counts:
    return tuple([(count, change * times) for count, change in counts])


def add_entry(
    tx: Transaction, path: FsPath, ancestors: Sequence[Inode], counts: Counts, *, skip: int = 0
) -> None:
    """An entry appears in the last of `ancestors`: check quotas, add it to all of them.

    The first `skip` directories hold the same before and after (a move below
    them): they are neither checked nor changed.
    """
    check_quotas(tx, path, ancestors, counts, skip)
    _change_entries(tx, ancestors, counts, skip, _ONE_CHILD)


def add_chain(
    tx: Transaction, path: FsPath, ancestors: Sequence[Inode], chain: Sequence[Inode]
) -> None:
    """New directories, each in the one before it, the first in the last of `ancestors`.

    As `add_entry` for each of them, but in a time that grows with their number, not its square.
    """
    if any(directory.quota is not None for directory in ancestors):
        for number in range(1, len(chain) + 1):  # told is the first that is one too many
            check_quotas(tx, path, ancestors, _times(ONE_DIRECTORY, number), 0)
    counts = _times(ONE_DIRECTORY, len(chain))
    tx.add_to_each([directory.id for directory in ancestors[:-1]], counts)
    for below, directory in zip(
        range(len(chain), 0, -1), (ancestors[-1], *chain[:-1]), strict=True
    ):
        holds = _ONE_CHILD + _times(ONE_DIRECTORY, below)
        tx.add(directory.id, holds, mtime_ms=tx.now_ms)


def remove_entry(
    tx: Transaction, ancestors: Sequence[Inode], counts: Counts, *, skip: int = 0
) -> None:
    """An entry disappears from the last of `ancestors`."""
    _change_entries(tx, ancestors, negative(counts), skip, _ONE_CHILD_LESS)


def touch(tx: Transaction, directory: Inode) -> None:
    """A directory changes, but not what it holds: its time alone."""
    tx.add(directory.id, (), mtime_ms=tx.now_ms)


def charge(tx: Transaction, path: FsPath, ancestors: Sequence[Inode], counts: Counts) -> None:
    """Add to every directory of the path, if their quotas allow it."""
    check_quotas(tx, path, ancestors, counts, 0)
    tx.add_to_each([directory.id for directory in ancestors], counts)


def refund(tx: Transaction, ancestors: Sequence[Inode], counts: Counts) -> None:
    """Subtract from every directory of the path."""
    tx.add_to_each([directory.id for directory in ancestors], negative(counts))


def change_file(
    tx: Transaction, path: FsPath, ancestors: Sequence[Inode], before: Inode, after: Inode
) -> Inode:
    """A file has other data: the directories above are charged for it, if their quotas allow it.

    Returns the file as it is to be kept: it tells what is reserved for its open block.  (One that
    was opened before that was counted has nothing reserved until it changes.)
    """
    after = msgspec.structs.replace(after, reserved_bytes=reserved_space(after))
    if before.charged_policy or after.charged_policy:
        counts = difference(data_of(after), data_of(before))
        charged_bytes = dict(counts)[Count.SPACE_BYTES]
    else:
        charged_bytes = charged_space(after) - charged_space(before)
        counts = space(
            after.visible_bytes - before.visible_bytes,
            charged_bytes,
            after.reserved_bytes - before.reserved_bytes,
        )
    if charged_bytes > 0:
        _check_capacity(tx, path, ancestors, charged_bytes)
        charge(tx, path, ancestors, counts)
    else:
        tx.add_to_each([directory.id for directory in ancestors], counts)
    return after


def change_data(tx: Transaction, path: FsPath, ancestors: Sequence[Inode], counts: Counts) -> None:
    """The same data takes more space, or less, or other types."""
    if any(change for _, change in counts):
        charged_bytes = dict(counts).get(Count.SPACE_BYTES, 0)
        if charged_bytes > 0:
            _check_capacity(tx, path, ancestors, charged_bytes)
        charge(tx, path, ancestors, counts)


@lru_cache(maxsize=1024)
def _types_of(policy_id: int, replication: int) -> tuple[tuple[int, int], ...]:
    """How many of so many replicas belong on each type that can have a quota."""
    policy = policy_by_id(policy_id)
    assert policy is not None, f"there is no storage policy {policy_id}"
    types = choose_storage_types(policy, replication, is_new_block=True)
    counts = Counter(_OF_TYPE[type] for type in types if type in _OF_TYPE)
    return tuple(counts.items())


def _spread(policy_id: int, replication: int, charged_bytes: int) -> dict[int, int]:
    """The space of all replicas by types."""
    each_bytes = charged_bytes // replication
    return {count: number * each_bytes for count, number in _types_of(policy_id, replication)}


def _check_capacity(
    tx: Transaction, path: FsPath, ancestors: Sequence[Inode], charged_bytes: int
) -> None:
    """The whole file system is limited to what a counter can hold."""
    if charged_bytes >= _LARGE_BYTES:
        root = ancestors[0].id
        count = int(Count.SPACE_BYTES)
        used = tx.totals(root).counts[count] + tx.added(root).get(count, 0)
        if used + charged_bytes > SPACE_MAX_BYTES:
            raise ClusterStorageCapacityExceededException(
                f"{path} would need {_binary(charged_bytes)} more, but no file system holds"
                f" more than {_binary(SPACE_MAX_BYTES)}"
            )
        tx.bound(root, count, SPACE_MAX_BYTES)


def check_copied(tx: Transaction, path: FsPath, ancestors: Sequence[Inode], counts: Counts) -> None:
    """What comes from a snapshot costs next to nothing, and can be doubled again and again.

    So it may make of a file system only what can be counted, and leaves room for what is written.
    """
    root = ancestors[0].id
    used, added = tx.totals(root).counts, tx.added(root)
    for count, change in counts:
        limit = COPIED_BYTES_MAX if count in _BYTES else COPIED_INODES_MAX
        if change > 0 and used[count] + added.get(count, 0) + change > limit:
            what = "bytes" if count in _BYTES else "files and directories"
            raise ClusterStorageCapacityExceededException(
                f"{path} would have {change} {what} more: with what comes from snapshots, no file"
                f" system holds more than {limit}"
            )


def _change_entries(
    tx: Transaction, ancestors: Sequence[Inode], counts: Counts, skip: int, child: Counts
) -> None:
    """Add to the directories behind the first `skip`, and to the children of the last."""
    last = len(ancestors) - 1
    if skip < last:
        tx.add_to_each([directory.id for directory in ancestors[skip:last]], counts)
    tx.add(ancestors[last].id, child if skip > last else child + counts, mtime_ms=tx.now_ms)


def check_quotas(
    tx: Transaction, path: FsPath, ancestors: Sequence[Inode], counts: Counts, skip: int = 0
) -> None:
    """Every directory behind the first `skip` has room for it; the nearest is asked first."""
    for depth in range(len(ancestors) - 1, skip - 1, -1):
        directory = ancestors[depth]
        if directory.quota is not None:
            _check_quota(tx, directory, directory.quota, counts, path, depth)


def check_content(text: str, quota: Quota, before: Sequence[int], after: Sequence[int]) -> None:
    """A directory may have other content, by its own quota: no more than that, or than before."""

    def exceeds(count: int, limit: int, own: int) -> int:
        total = after[count] + own
        is_too_much = limit != QUOTA_UNSET and total > limit and after[count] > before[count]
        return total if is_too_much else 0

    _refuse_excess(text, quota, exceeds)


def _check_quota(
    tx: Transaction, directory: Inode, quota: Quota, counts: Counts, path: FsPath, depth: int
) -> None:
    changes = dict(counts)
    used = tx.totals(directory.id).counts
    added = {} if tx.is_new(directory.id) else tx.added(directory.id)

    def exceeds(count: int, limit: int, own: int) -> int:
        change = changes.get(count, 0) + added.get(count, 0)
        if limit == QUOTA_UNSET or change <= 0:
            return 0
        total = used[count] + change
        if total + own > limit:
            return total + own
        tx.bound(directory.id, count, limit - own)
        return 0

    _refuse_excess(path.text_to(depth), quota, exceeds)


def _refuse_excess(text: str, quota: Quota, exceeds: Callable[[int, int, int], int]) -> None:
    """Raise an error if a count of the directory at this path would exceed its quota.

    `exceeds` is given a count, its limit, and how much of that the directory itself takes.  It
    returns what the count would come to, or 0 if that is allowed.
    """
    # The directory itself counts for one of its own quota.
    if total := exceeds(Count.INODES, quota.inodes, 1):
        raise NSQuotaExceededException(
            f"The NameSpace quota (directories and files) of directory {text}"
            f" is exceeded: quota={quota.inodes} file count={total}"
        )
    if total := exceeds(Count.SPACE_BYTES, quota.space_bytes, 0):
        raise DSQuotaExceededException(
            f"The DiskSpace quota of {text} is exceeded: quota ="
            f" {quota.space_bytes} B = {_binary(quota.space_bytes)} but diskspace consumed ="
            f" {total} B = {_binary(total)}"
        )
    for name, count, field in _TYPE_LIMITS:
        limit = getattr(quota, field)
        if total := exceeds(count, limit, 0):
            raise QuotaByStorageTypeExceededException(
                f"Quota by storage type : {name} on path : {text} is exceeded."
                f" quota = {_binary(limit)} but space consumed = {_binary(total)}"
            )


def _binary(number: int) -> str:
    """As Hadoop's StringUtils writes sizes: "3 MB" if it is just that, else "3.00 MB"."""
    power = max(0, number.bit_length() - 1) // 10
    unit = ("B", "KB", "MB", "GB", "TB", "PB", "EB")[power]
    whole, rest = divmod(number, 1 << 10 * power)
    return f"{number / (1 << 10 * power):.2f} {unit}" if rest else f"{whole} {unit}"
