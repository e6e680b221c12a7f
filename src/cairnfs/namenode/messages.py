"""Records of the namespace as Hadoop's messages, and back.

The fields are filled as PBHelperClient and FSDirStatAndListingOp do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cairnfs.blocks.policies import StoragePolicy
from cairnfs.blocks.records import StorageType
from cairnfs.namenode.responses import NOTHING, encode_first_field, encode_status
from cairnfs.namesystem.acl_operations import AclStatus
from cairnfs.namesystem.answers import ContentSummary
from cairnfs.namesystem.inodes import AclEntry, Inode, Quota
from cairnfs.namesystem.listings import Listing, Page, describe_page
from cairnfs.namesystem.quota_operations import QuotaUsage
from cairnfs.namesystem.status import describe
from cairnfs.store.base import Totals
from cairnfs.wire.framing import encode_varint
from cairnfs.wire.proto import acl_pb2, hdfs_pb2
from cairnfs.wire.protocols import as_text

_LONG_MASK = 2**64 - 1
_SIGN_BIT = 2**63

_QUOTA_TYPES = (
    StorageType.SSD,
    StorageType.DISK,
    StorageType.ARCHIVE,
    StorageType.PROVIDED,
    StorageType.NVDIMM,
)


# Numbers: Java's longs are signed, the fields that carry them are not.


def to_unsigned(value: int) -> int:
    return value & _LONG_MASK


def to_signed(value: int) -> int:
    return value - 2**64 if value & _SIGN_BIT else value


# Listings


def encode_listing(listing: Listing | None) -> bytes:
    """The response to getListing."""
    if listing is None:
        return NOTHING
    entries = (encode_first_field(encode_status(status)) for status in listing.entries)
    return _encode_entries(b"".join(entries), listing.remaining)


def encode_page(page: Page | None) -> bytes:
    """The same from records; what was encoded before is not encoded again."""
    if page is None:
        return NOTHING
    if not page.tells_names or any(page.policies):
        statuses = b"".join(encode_first_field(encode_status(each)) for each in describe_page(page))
        return _encode_entries(statuses, page.remaining)
    return _ENCODED.encode(page)


def _encode_entries(entries: bytes, remaining: int) -> bytes:
    return encode_first_field(entries + b"\x10" + encode_varint(remaining))


class EncodedEntries:
    """Entries of listings as bytes, as long as the records that they are of are the newest.

    That is when they are the same objects: so there is nothing to be made invalid.
    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._known: dict[int, tuple[Inode, Totals | None, bytes]] = {}

    def join(self, inodes: Iterable[Inode], totals: Mapping[bytes, Totals]) -> bytes:
        """The entries of these inodes, one after the other."""
        known = self._known
        entries = []
        for inode in inodes:
            found = known.get(inode.id)
            if (
                found is None
                or found[0] is not inode
                or (found[1] is not None and found[1] != totals[inode.name])
            ):
                found = self._encode(inode, totals.get(inode.name))
            entries.append(found[2])
        return b"".join(entries)

    def _encode(self, inode: Inode, totals: Totals | None) -> tuple[Inode, Totals | None, bytes]:
        if len(self._known) >= self._entries_max:
            self._known.clear()
        encoded = encode_first_field(encode_status(describe(inode, totals, inode.name)))
        self._known[inode.id] = entry = (inode, totals, encoded)
        return entry


class EncodedPages:
    """Whole listings as bytes, for pages that are the same once more.

    They are compared: that is quick where their records are the same objects, and a tenth of the
    time that it takes to encode them where they are not.
    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._entries = EncodedEntries(entries_max)
        self._known: dict[tuple[int, bytes], tuple[Page, bytes]] = {}  # by how they begin
        self._count = 0  # entries in them

    def encode(self, page: Page) -> bytes:
        """The response to getListing, of a page without policies."""
        assert page.tells_names
        assert not any(page.policies)
        if not page.inodes:
            return _encode_entries(b"", page.remaining)
        first = page.inodes[0]
        beginning = first.parent_id, first.name
        found = self._known.get(beginning)
        if found is not None and found[0] == page:
            return found[1]
        encoded = _encode_entries(self._entries.join(page.inodes, page.totals), page.remaining)
        self._count += len(page.inodes) - (0 if found is None else len(found[0].inodes))
        if self._count > self._entries_max:
            self._known.clear()
            self._count = len(page.inodes)
        self._known[beginning] = page, encoded
        return encoded


ENCODED_ENTRIES_MAX = 50_000  # as whole pages, and one by one
_ENCODED = EncodedPages(ENCODED_ENTRIES_MAX)


# Space


def to_content_summary(summary: ContentSummary) -> hdfs_pb2.ContentSummaryProto:
    message = hdfs_pb2.ContentSummaryProto()
    message.length = summary.length_bytes
    message.fileCount = summary.files
    message.directoryCount = summary.directories
    message.quota = to_unsigned(summary.quota.inodes)
    message.spaceConsumed = summary.space_bytes
    message.spaceQuota = to_unsigned(summary.quota.space_bytes)
    message.snapshotLength = 0
    message.snapshotFileCount = 0
    message.snapshotDirectoryCount = 0
    message.snapshotSpaceConsumed = 0
    is_file = summary.files == 1 and not summary.directories
    message.erasureCodingPolicy = "Replicated" if is_file else ""
    _add_types(message.typeQuotaInfos, summary.quota, summary.type_bytes)
    return message


def to_quota_usage(usage: QuotaUsage) -> hdfs_pb2.QuotaUsageProto:
    message = hdfs_pb2.QuotaUsageProto()
    message.fileAndDirectoryCount = usage.inodes
    message.quota = to_unsigned(usage.quota.inodes)
    message.spaceConsumed = usage.space_bytes
    message.spaceQuota = to_unsigned(usage.quota.space_bytes)
    _add_types(message.typeQuotaInfos, usage.quota, usage.type_bytes)
    return message


def _add_types(
    message: hdfs_pb2.StorageTypeQuotaInfosProto, quota: Quota, used: tuple[int, ...]
) -> None:
    """Tell of each storage type, if there is anything to tell of any."""
    limits = (
        quota.ssd_bytes,
        quota.disk_bytes,
        quota.archive_bytes,
        quota.provided_bytes,
        quota.nvdimm_bytes,
    )
    if not any(used) and all(limit < 0 for limit in limits):
        return
    for type, limit, consumed in zip(_QUOTA_TYPES, limits, used, strict=True):
        info = message.typeQuotaInfo.add()
        info.type = type.value  # type: ignore[assignment]
        info.quota = to_unsigned(limit)
        info.consumed = consumed


def to_storage_policy(policy: StoragePolicy) -> hdfs_pb2.BlockStoragePolicyProto:
    message = hdfs_pb2.BlockStoragePolicyProto()
    message.policyId = policy.id
    message.name = policy.name
    message.creationPolicy.storageTypes.extend(policy.storage_types)  # type: ignore[arg-type]
    message.creationFallbackPolicy.storageTypes.extend(policy.creation_fallbacks)  # type: ignore[arg-type]
    message.replicationFallbackPolicy.storageTypes.extend(policy.replication_fallbacks)  # type: ignore[arg-type]
    return message


# Access control lists


def from_acl_entries(entries: Iterable[acl_pb2.AclEntryProto]) -> list[AclEntry]:
    return [
        AclEntry(entry.scope, entry.type, as_text(entry.name) or None, entry.permissions)
        for entry in entries
    ]


def to_acl_status(status: AclStatus) -> acl_pb2.GetAclStatusResponseProto:
    response = acl_pb2.GetAclStatusResponseProto()
    message = response.result
    message.owner = status.owner
    message.group = status.group
    message.sticky = bool(status.mode & 0o1000)
    message.permission.perm = status.mode
    for entry in status.entries:
        added = message.entries.add()
        added.type = entry.type  # type: ignore[assignment]
        added.scope = entry.scope  # type: ignore[assignment]
        added.permissions = entry.permission  # type: ignore[assignment]
        if entry.name is not None:
            added.name = entry.name
    return response
