"""What a NameNode answers most, as bytes.

Statuses are encoded one attribute after the other into a message that is kept for it, and put into
responses as the bytes they are.
"""

from __future__ import annotations

from typing import Final

from cairnfs.namesystem.answers import FileStatus
from cairnfs.namesystem.inodes import Kind
from cairnfs.wire.framing import encode_delimited, encode_varint
from cairnfs.wire.proto import hdfs_pb2

NOTHING: Final = b""  # a message without fields that are set


def encode_bool(value: bool) -> bytes:
    return b"\x08\x01" if value else b"\x08\x00"


def encode_nothing(result: object) -> bytes:
    return NOTHING


# Statuses

_SYMLINK: Final = Kind.SYMLINK
_HAS_ACL: Final = int(hdfs_pb2.HdfsFileStatusProto.HAS_ACL)
_SNAPSHOT_ENABLED: Final = int(hdfs_pb2.HdfsFileStatusProto.SNAPSHOT_ENABLED)
_STATUS: Final = hdfs_pb2.HdfsFileStatusProto()
_STATUS_PERMISSION: Final = _STATUS.permission
_alike: tuple[object, ...] = ()


def encode_status(status: FileStatus) -> bytes:
    """The message HdfsFileStatusProto."""
    global _alike
    message = _STATUS
    kind = status.kind
    message.path = status.name
    message.length = status.length_bytes
    message.modification_time = status.mtime_ms
    message.access_time = status.atime_ms
    message.fileId = status.id
    message.childrenNum = status.children
    # Most statuses differ from the one before in nothing but these.
    alike = (
        kind,
        status.mode,
        status.owner,
        status.group,
        status.replication,
        status.block_size_bytes,
        status.storage_policy,
        status.has_acl,
        status.is_snapshottable,
    )
    if alike != _alike:
        _alike = ()  # should one of them be refused
        message.fileType = kind  # type: ignore[assignment]  # the numbers are the same
        _STATUS_PERMISSION.perm = status.mode
        message.owner = status.owner
        message.group = status.group
        message.block_replication = status.replication
        message.blocksize = status.block_size_bytes
        message.storagePolicy = status.storage_policy
        flags = _HAS_ACL if status.has_acl else 0
        message.flags = flags | _SNAPSHOT_ENABLED if status.is_snapshottable else flags
        _alike = alike
    if kind is _SYMLINK:
        message.symlink = (status.target or "").encode()
        encoded = message.SerializeToString()
        message.ClearField("symlink")
        return encoded
    return message.SerializeToString()


def encode_found_status(status: FileStatus | None) -> bytes:
    """The response to getFileInfo and its like."""
    if status is None:
        return NOTHING
    encoded = encode_status(status)
    return b"\n" + encode_varint(len(encoded)) + encoded


def encode_first_field(message: bytes) -> bytes:
    """A message that has another one, or a text, in its field 1."""
    return b"\n" + encode_delimited(message)


def fill_status(message: hdfs_pb2.HdfsFileStatusProto, status: FileStatus) -> None:
    """The same where a message that has other fields as well is built: what it said before goes."""
    message.ParseFromString(encode_status(status))
