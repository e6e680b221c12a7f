"""Moving replicas: to another DataNode, or to another volume of this one.

A DataNode that a replica goes to is asked to *replace* it (REPLACE_BLOCK).  It asks the one that
has it for a *copy* (COPY_BLOCK), and tells the NameNodes of its own with a hint where there is
one too many now.  Whoever asks is a balancer, or a DataNode that was told to give a replica away.
Between two volumes of a DataNode nothing goes over the network.

Invariant: the old replica is there until the new one is complete; another DataNode's, until a
NameNode says that it may go.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack

from cairnfs.datanode.connection import Connection
from cairnfs.datanode.figures import BLOCKS_MOVED, DataNodeFigures
from cairnfs.datanode.move_limits import MoveLimits
from cairnfs.datanode.peers import Answering, Pool, address_of, connect
from cairnfs.datanode.reading import Reading
from cairnfs.datanode.replica import Block
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.reports import Reports
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.datanode.storage import StorageType
from cairnfs.datanode.writing import Writing
from cairnfs.errors import IOException
from cairnfs.wire.proto import data_transfer_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.transfer import Op, Status, decode_checksum, encode_request, encode_response

ANSWER_LIMIT_S = 1200.0  # a block takes its time at a low rate


class Moving:
    """Takes replicas over, gives them away, and takes them from one volume to another."""

    def __init__(
        self,
        pool: Pool,
        replicas: Replicas,
        reports: Reports,
        settings: DataNodeSettings,
        *,
        reading: Reading,
        writing: Writing,
        limits: MoveLimits,
        datanode_uuid: str,
        port: int,
        figures: DataNodeFigures,
    ) -> None:
        self._pool = pool
        self._replicas = replicas
        self._reports = reports
        self._settings = settings
        self._reading = reading
        self._writing = writing
        self._limits = limits
        self._datanode_uuid = datanode_uuid
        self._port = port  # for block transfer
        self._figures = figures
        self._lock = threading.Lock()
        self._moving: set[int] = set()  # blocks that go to another volume now

    # Operations.

    def copy_block(self, message: pb.OpCopyBlockProto, connection: Connection) -> None:
        """Send a whole replica to a DataNode that takes it over."""
        block = self._pool.block_of(message.header)
        with ExitStack() as cleanup:
            with Answering(connection):
                cleanup.enter_context(self._limits.move(f"copy {block} to {connection.peer}"))
            self._reading.send_whole(block, connection, self._limits.throttle)
        connection.send(b"\0d")  # our thread is free again

    def replace_block(self, message: pb.OpReplaceBlockProto, connection: Connection) -> None:
        """Take over a replica from another DataNode, which may then drop its own."""
        block = self._pool.block_of(message.header)
        storage_type = StorageType(message.storageType)
        with Answering(connection):
            if message.source.id.datanodeUuid == self._datanode_uuid:
                self._move_here(block, storage_type, message.storageId)
            else:
                with self._limits.move(f"receive {block} from {connection.peer}"):
                    self._take_over(message, block, storage_type)
        connection.send(encode_response())

    def _take_over(
        self, message: pb.OpReplaceBlockProto, block: Block, storage_type: StorageType
    ) -> None:
        source = address_of(message.source)
        with ExitStack() as cleanup:
            proxy = connect(source, self._settings)
            cleanup.callback(proxy.close)
            proxy.send(encode_request(Op.COPY_BLOCK, pb.OpCopyBlockProto(header=message.header)))
            response = proxy.read_message(pb.BlockOpResponseProto)
            if response.status != Status.SUCCESS:
                raise IOException(f"copy block {block} from {source}: {response.message}")
            self._writing.take_copy(
                block,
                proxy,
                decode_checksum(response.readOpChecksumInfo.checksum),
                storage_type,
                message.storageId,
                delete_hint=message.delHint,
                throttle=self._limits.throttle,
            )
            proxy.read_exactly(2)  # the source's thread is free again
        self._figures.add(BLOCKS_MOVED)

    # Commands.

    def move(
        self,
        block: Block,
        target: hdfs_pb2.DatanodeInfoProto,
        storage_type: hdfs_pb2.StorageTypeProto,
        storage_id: str,
    ) -> None:
        """Have our replica go to where a NameNode wants it."""
        if target.id.datanodeUuid == self._datanode_uuid:
            self._move_here(block, StorageType(storage_type), storage_id)
            return
        address = address_of(target)
        request = pb.OpReplaceBlockProto(
            delHint=self._datanode_uuid, storageType=storage_type, storageId=storage_id
        )
        request.header.block.CopyFrom(self._pool.encode(block))
        identity = request.source.id
        identity.ipAddr, identity.hostName = self._settings.announced_ip, ""
        identity.datanodeUuid, identity.xferPort = self._datanode_uuid, self._port
        identity.infoPort = identity.ipcPort = 0
        with ExitStack() as cleanup:
            taker = connect(address, self._settings)
            cleanup.callback(taker.close)
            taker.set_timeouts(read_s=ANSWER_LIMIT_S)
            taker.send(encode_request(Op.REPLACE_BLOCK, request))
            response = taker.read_message(pb.BlockOpResponseProto)
            if response.status != Status.SUCCESS:
                raise IOException(f"{block} could not go to {address}: {response.message}")

    def persist(self, block: Block) -> None:
        """Take our replica from memory to disk."""
        self._move_here(block, StorageType.DISK, "")

    def _move_here(self, block: Block, storage_type: StorageType, storage_id: str) -> None:
        """To another volume; the hint says that it is where it was no more."""
        with self._limits.move(f"move {block} to {storage_type.name}"):
            with self._lock:
                if block.id in self._moving:
                    raise IOException(f"{block} is being moved already")
                self._moving.add(block.id)
            try:
                moved = self._replicas.move(
                    block, storage_type, storage_id, throttle=self._limits.throttle
                )
                self._reports.received(moved.block, moved.volume, self._datanode_uuid)
                self._figures.add(BLOCKS_MOVED)
            finally:
                with self._lock:
                    self._moving.discard(block.id)
