"""Errors of a DataNode that its clients and peers know by their Java class."""

from __future__ import annotations

from cairnfs.errors import IOException


class ReplicaNotFoundException(
    IOException,
    java_class="org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException",
):
    """There is no replica of the block here, or none that can be used so."""


class ReplicaAlreadyExistsException(
    IOException,
    java_class="org.apache.hadoop.hdfs.server.datanode.ReplicaAlreadyExistsException",
):
    """There is a replica of the block here already."""


class DiskErrorException(
    IOException, java_class="org.apache.hadoop.util.DiskChecker$DiskErrorException"
):
    """A volume cannot be used."""


class DiskOutOfSpaceException(
    DiskErrorException,
    java_class="org.apache.hadoop.util.DiskChecker$DiskOutOfSpaceException",
):
    """No volume has room for the block."""


class InconsistentFSStateException(
    IOException,
    java_class="org.apache.hadoop.hdfs.server.common.InconsistentFSStateException",
):
    """A directory holds something else than this DataNode's data."""
