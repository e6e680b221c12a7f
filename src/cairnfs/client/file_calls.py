"""What a writer asks the NameNode about its file."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from cairnfs.client.namenode import NameNodes
from cairnfs.client.pipeline import Target
from cairnfs.errors import IOException, NotReplicatedYetException, SafeModeException
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2

log = logging.getLogger(__name__)

_PAUSE_S = 0.002  # DataNodes report within milliseconds; HDFS's own client begins with 400
_PAUSE_MAX_S = 0.4
_WORD_AFTER_S = 5.0
_NO_DATANODES = "There are 0 datanode(s) running"
_R = TypeVar("_R")

LAZY_PERSIST_ID = 15  # HdfsConstants.MEMORY_STORAGE_POLICY_ID


class FileCalls:
    """One file that this client has the lease of."""

    def __init__(
        self,
        namenodes: NameNodes,
        client_name: str,
        path: str,
        status: hdfs_pb2.HdfsFileStatusProto,
        patience_s: float,
    ) -> None:
        self.path = path
        self.is_lazy = status.storagePolicy == LAZY_PERSIST_ID
        self.client_name = client_name
        self._namenodes = namenodes
        self.id = status.fileId
        self.block_size_bytes = status.blocksize
        self._patience_s = patience_s

    def add_block(
        self,
        previous: hdfs_pb2.ExtendedBlockProto | None,
        excluded: Iterable[hdfs_pb2.DatanodeInfoProto],
    ) -> hdfs_pb2.LocatedBlockProto:
        """The next block, after `previous`."""
        request = pb.AddBlockRequestProto(
            src=self.path,
            clientName=self.client_name,
            previous=previous,
            excludeNodes=excluded,
            fileId=self.id,
        )

        return self._until(
            lambda: self._namenodes.call("addBlock", request, pb.AddBlockResponseProto).block
        )

    def complete(self, last: hdfs_pb2.ExtendedBlockProto | None) -> None:
        """Close the file, as soon as its last block is known to be written."""
        request = pb.CompleteRequestProto(
            src=self.path, clientName=self.client_name, last=last, fileId=self.id
        )

        def attempt() -> None:
            if not self._namenodes.call("complete", request, pb.CompleteResponseProto).result:
                raise NotReplicatedYetException(
                    f"Unable to close file {self.path}: its last block has not been reported yet"
                )

        self._until(attempt)

    def _until(self, attempt: Callable[[], _R]) -> _R:
        """Try again, at growing intervals, while DataNodes have yet to report."""
        began_s = time.monotonic()
        pause_s = _PAUSE_S
        is_told = False
        while True:
            try:
                return attempt()
            except IOException as error:
                waited_s = time.monotonic() - began_s
                if not _will_pass(error) or waited_s > self._patience_s:
                    raise
                if waited_s > _WORD_AFTER_S and not is_told:
                    is_told = True
                    log.warning("waiting for up to %.0f s: %s", self._patience_s, error)
            time.sleep(pause_s)
            pause_s = min(_PAUSE_MAX_S, pause_s * 1.5)

    def abandon_block(self, block: hdfs_pb2.ExtendedBlockProto) -> None:
        """Nothing was written of it, and nothing will be."""
        request = pb.AbandonBlockRequestProto(
            b=block, src=self.path, holder=self.client_name, fileId=self.id
        )
        self._namenodes.call("abandonBlock", request, pb.AbandonBlockResponseProto)

    def fsync(self, last_block_bytes: int = -1) -> None:
        """Have the NameNode keep the blocks so far, and the length of the last if given."""
        request = pb.FsyncRequestProto(
            src=self.path,
            client=self.client_name,
            lastBlockLength=last_block_bytes,
            fileId=self.id,
        )
        self._namenodes.call("fsync", request, pb.FsyncResponseProto)

    # Mending a pipeline

    def update_block_for_pipeline(
        self, block: hdfs_pb2.ExtendedBlockProto
    ) -> hdfs_pb2.LocatedBlockProto:
        """The block with a new generation stamp, under which the pipeline goes on."""
        request = pb.UpdateBlockForPipelineRequestProto(block=block, clientName=self.client_name)
        return self._namenodes.call(
            "updateBlockForPipeline", request, pb.UpdateBlockForPipelineResponseProto
        ).block

    def update_pipeline(
        self,
        old: hdfs_pb2.ExtendedBlockProto,
        new: hdfs_pb2.ExtendedBlockProto,
        targets: Sequence[Target],
    ) -> None:
        """The block has the new generation stamp from now on, at these DataNodes alone."""
        request = pb.UpdatePipelineRequestProto(
            clientName=self.client_name,
            oldBlock=old,
            newBlock=new,
            newNodes=[target.datanode.id for target in targets],
            storageIDs=[target.storage_id for target in targets],
        )
        self._namenodes.call("updatePipeline", request, pb.UpdatePipelineResponseProto)

    def get_additional_datanode(
        self,
        block: hdfs_pb2.ExtendedBlockProto,
        existing: Sequence[Target],
        excluded: Iterable[hdfs_pb2.DatanodeInfoProto],
    ) -> hdfs_pb2.LocatedBlockProto:
        """The DataNodes of a pipeline, with one more."""
        request = pb.GetAdditionalDatanodeRequestProto(
            src=self.path,
            blk=block,
            existings=[target.datanode for target in existing],
            excludes=excluded,
            numAdditionalNodes=1,
            clientName=self.client_name,
            existingStorageUuids=[target.storage_id for target in existing],
            fileId=self.id,
        )
        return self._namenodes.call(
            "getAdditionalDatanode", request, pb.GetAdditionalDatanodeResponseProto
        ).block


def _will_pass(error: IOException) -> bool:
    """Whether it is DataNodes that are late: with a block, or at a NameNode just restarted."""
    late = isinstance(error, NotReplicatedYetException | SafeModeException)
    return late or _NO_DATANODES in str(error)
