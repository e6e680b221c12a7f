"""Errors that cross a wire, each with the Java class a Hadoop client expects.

One entry per class serves both wires: the RPC header carries `java_class`,
WebHDFS the same with `http_status`; a client rebuilds the class by name.
Invariant: `str(error)` is the message, and a Java class names one class here.

Where Hadoop's class extends IOException, ours does too, since some operations
(the old rename) answer "false" to any IOException; `http_status` follows the
order of WebHDFS's ExceptionHandler: 404, else 403 for an IOException, 400 for
an illegal argument or unsupported operation, else 500.
"""

from __future__ import annotations

import errno as codes

_CLASSES: dict[str, type[HdfsError]] = {}


class HdfsError(Exception):
    """Any error a caller is told about."""

    java_class: str = "java.lang.RuntimeException"
    http_status: int = 500

    def __init_subclass__(
        cls, *, java_class: str | None = None, http_status: int | None = None
    ) -> None:
        super().__init_subclass__()
        if http_status is not None:
            cls.http_status = http_status
        if java_class is not None:
            assert java_class not in _CLASSES, java_class
            cls.java_class = java_class
            _CLASSES[java_class] = cls

    def __init__(self, message: str = "") -> None:
        super().__init__(message)

    @property
    def exception_name(self) -> str:
        """The class without its package or outer class, as WebHDFS's JSON has it."""
        return self.java_class.rpartition(".")[2].rpartition("$")[2]


def error_class(java_class: str) -> type[HdfsError] | None:
    """The class registered for a Java class, if there is one."""
    return _CLASSES.get(java_class)


def rebuild_error(java_class: str, message: str) -> HdfsError:
    """The error a server sent, as our class for it or as a RemoteError."""
    known = _CLASSES.get(java_class)
    return RemoteError(message, java_class) if known is None else known(message)


# java.lang and java.io


class IOException(HdfsError, OSError, java_class="java.io.IOException", http_status=403):
    """A call failed for a reason without a class of its own.

    `errno` of the classes below is that of Python's error which they are, for whoever goes by
    it; the message stays Hadoop's.
    """


class FileNotFoundException(
    IOException,
    FileNotFoundError,
    java_class="java.io.FileNotFoundException",
    http_status=404,
):
    """The path, or a parent it needs, does not exist."""

    errno = codes.ENOENT


class EOFException(IOException, EOFError, java_class="java.io.EOFException"):
    """The data ended before it was expected to."""


class IllegalArgumentException(
    HdfsError,
    ValueError,
    java_class="java.lang.IllegalArgumentException",
    http_status=400,
):
    """An argument is out of its bounds."""


class UnsupportedOperationException(
    HdfsError,
    NotImplementedError,
    java_class="java.lang.UnsupportedOperationException",
    http_status=400,
):
    """The call is known, but not offered."""


class SecurityException(
    HdfsError,
    PermissionError,
    java_class="java.lang.SecurityException",
    http_status=403,
):
    """The caller could not be authenticated."""


class RemoteError(IOException):
    """An error of a class unknown here; it keeps its Java class."""

    def __init__(self, message: str = "", java_class: str = "java.io.IOException") -> None:
        super().__init__(message)
        self.java_class = java_class


# Arguments and paths


class HadoopIllegalArgumentException(
    IllegalArgumentException,
    java_class="org.apache.hadoop.HadoopIllegalArgumentException",
):
    """An argument is out of the bounds Hadoop sets."""


class InvalidPathException(
    HadoopIllegalArgumentException,
    java_class="org.apache.hadoop.fs.InvalidPathException",
):
    """The text is not a path, or not one that may be created."""


class FileAlreadyExistsException(
    IOException,
    FileExistsError,
    java_class="org.apache.hadoop.fs.FileAlreadyExistsException",
):
    """Something is already at the path."""

    errno = codes.EEXIST


class ParentNotDirectoryException(
    IOException,
    NotADirectoryError,
    java_class="org.apache.hadoop.fs.ParentNotDirectoryException",
):
    """An ancestor of a path to be created is not a directory."""

    errno = codes.ENOTDIR


class PathIsNotDirectoryException(
    IOException,
    NotADirectoryError,
    java_class="org.apache.hadoop.fs.PathIsNotDirectoryException",
):
    """A directory was needed; the message is "`PATH': Is not a directory"."""

    errno = codes.ENOTDIR


class PathIsDirectoryException(
    IOException,
    IsADirectoryError,
    java_class="org.apache.hadoop.fs.PathIsDirectoryException",
):
    """A file was needed; the message is "`PATH': Is a directory"."""

    errno = codes.EISDIR


class PathIsNotEmptyDirectoryException(
    IOException, java_class="org.apache.hadoop.fs.PathIsNotEmptyDirectoryException"
):
    """A directory with children was to be deleted without recursion."""

    errno = codes.ENOTEMPTY


class UnresolvedLinkException(
    IOException, java_class="org.apache.hadoop.fs.UnresolvedLinkException"
):
    """The client must follow a symbolic link."""


class UnresolvedPathException(
    UnresolvedLinkException,
    java_class="org.apache.hadoop.hdfs.protocol.UnresolvedPathException",
):
    """As above; the message is the path to try instead."""


class DirectoryListingStartAfterNotFoundException(
    IOException,
    java_class="org.apache.hadoop.fs.DirectoryListingStartAfterNotFoundException",
):
    """A listing was to go on after an inode that is gone."""


# Who may


class AccessControlException(
    IOException,
    PermissionError,
    java_class="org.apache.hadoop.security.AccessControlException",
):
    """The caller lacks a permission."""

    errno = codes.EACCES


class AuthorizationException(
    AccessControlException,
    java_class="org.apache.hadoop.security.authorize.AuthorizationException",
):
    """The caller may not act at all, or not for another user."""


class SnapshotAccessControlException(
    AccessControlException,
    java_class="org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException",
):
    """Snapshots are read-only."""


class InvalidToken(
    IOException,
    java_class="org.apache.hadoop.security.token.SecretManager$InvalidToken",
):
    """A token is unknown, expired or forged."""


class AclException(IOException, java_class="org.apache.hadoop.hdfs.protocol.AclException"):
    """An access control list would break its rules."""


class XAttrNotFoundException(
    IOException,
    java_class="org.apache.hadoop.hdfs.protocol.XAttrNotFoundException",
):
    """An extended attribute that was asked for is not there."""

    errno = codes.ENODATA


class SnapshotException(
    IOException, java_class="org.apache.hadoop.hdfs.protocol.SnapshotException"
):
    """A snapshot does not exist, or forbids what was asked."""


# Writing


class AlreadyBeingCreatedException(
    IOException,
    java_class="org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException",
):
    """Another client holds the lease on the file."""


class RecoveryInProgressException(
    IOException,
    java_class="org.apache.hadoop.hdfs.protocol.RecoveryInProgressException",
):
    """The file's lease is being recovered; try again."""


class LeaseExpiredException(
    IOException,
    java_class="org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException",
):
    """The client no longer holds the lease."""


class NotReplicatedYetException(
    IOException,
    java_class="org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException",
):
    """The last block has too few replicas as yet; the client tries again."""


class UnsupportedActionException(
    IOException,
    java_class="org.apache.hadoop.hdfs.server.namenode.UnsupportedActionException",
):
    """The NameNode's settings forbid the action."""


# Limits


class ClusterStorageCapacityExceededException(
    IOException,
    java_class="org.apache.hadoop.fs.ClusterStorageCapacityExceededException",
):
    """There is no room for more."""

    errno = codes.ENOSPC


class QuotaExceededException(
    ClusterStorageCapacityExceededException,
    java_class="org.apache.hadoop.hdfs.protocol.QuotaExceededException",
):
    """A directory's quota would be exceeded."""

    errno = codes.EDQUOT


class NSQuotaExceededException(
    QuotaExceededException,
    java_class="org.apache.hadoop.hdfs.protocol.NSQuotaExceededException",
):
    """Too many files and directories."""


class DSQuotaExceededException(
    QuotaExceededException,
    java_class="org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
):
    """Too much space, counting replicas."""


class QuotaByStorageTypeExceededException(
    QuotaExceededException,
    java_class="org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException",
):
    """Too much space of one storage type."""


class FSLimitException(
    QuotaExceededException,
    java_class="org.apache.hadoop.hdfs.protocol.FSLimitException",
):
    """A fixed limit of the file system, which Hadoop counts among the quotas."""


class PathComponentTooLongException(
    FSLimitException,
    java_class="org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
):
    """A name is longer than 255 bytes."""


class MaxDirectoryItemsExceededException(
    FSLimitException,
    java_class="org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException",
):
    """A directory has as many children as it may."""


# Try again, or elsewhere


class SafeModeException(
    IOException, java_class="org.apache.hadoop.hdfs.server.namenode.SafeModeException"
):
    """The name space is read-only for now."""


class StandbyException(IOException, java_class="org.apache.hadoop.ipc.StandbyException"):
    """Another NameNode should be asked."""


class RetriableException(IOException, java_class="org.apache.hadoop.ipc.RetriableException"):
    """The same call may succeed later."""


class StoreUnavailableException(RetriableException):
    """The database is gone, read-only or full; to clients, a RetriableException."""


# RPC and DataNodes


class RpcNoSuchMethodException(
    IOException, java_class="org.apache.hadoop.ipc.RpcNoSuchMethodException"
):
    """The protocol has no such call."""


class RpcNoSuchProtocolException(
    IOException, java_class="org.apache.hadoop.ipc.RpcNoSuchProtocolException"
):
    """The server does not speak the protocol."""


class UnregisteredNodeException(
    IOException, java_class="org.apache.hadoop.hdfs.protocol.UnregisteredNodeException"
):
    """A DataNode must register before it reports."""


class BlockMissingException(IOException, java_class="org.apache.hadoop.hdfs.BlockMissingException"):
    """No replica of a block can be read."""


class DisallowedDatanodeException(
    IOException,
    java_class="org.apache.hadoop.hdfs.server.protocol.DisallowedDatanodeException",
):
    """A DataNode is not among those let in."""


class IncorrectVersionException(
    IOException,
    java_class="org.apache.hadoop.hdfs.server.common.IncorrectVersionException",
):
    """Two nodes are of versions that do not go together."""


# Not for any wire


class SchemaVersionError(Exception):
    """The database was written by a newer version; its operator must upgrade."""
