"""Do what a NameNode tells a DataNode to do: copy, move, delete and recover blocks.

Nothing here keeps a heartbeat waiting: commands are queued, and work on them is done by
few threads.  A command that fails is not repeated; the NameNode will find out and give
it again.
"""

from __future__ import annotations

import logging
import threading
from functools import partial

from cairnfs.datanode.copying import Copying
from cairnfs.datanode.figures import BLOCKS_DELETED, DataNodeFigures
from cairnfs.datanode.heartbeat import NameNodeLink
from cairnfs.datanode.move_limits import MoveLimits
from cairnfs.datanode.moving import Moving
from cairnfs.datanode.namenode import decode_block
from cairnfs.datanode.peers import address_of
from cairnfs.datanode.recovery import BlockRecovery
from cairnfs.datanode.replica import Block
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.reports import Reports
from cairnfs.datanode.volumes import Volume
from cairnfs.datanode.workers import Workers
from cairnfs.errors import HdfsError, IOException
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2

log = logging.getLogger(__name__)

COPIES_MAX = 8
MOVES_MAX = 8  # begun here; more may be asked for by others
RECOVERIES_MAX = 8
Type = pb.DatanodeCommandProto.Type


class Commands:
    """Queues of work for a DataNode."""

    def __init__(
        self,
        replicas: Replicas,
        reports: Reports,
        copying: Copying,
        recovery: BlockRecovery,
        moving: Moving,
        limits: MoveLimits,
        *,
        block_pool_id: str,
        figures: DataNodeFigures,
    ) -> None:
        self._replicas = replicas
        self._reports = reports
        self._copying = copying
        self._recovery = recovery
        self._moving = moving
        self._limits = limits
        self._block_pool_id = block_pool_id
        self._figures = figures
        self._copiers = Workers("copy", COPIES_MAX)
        self._movers = Workers("move", min(MOVES_MAX, limits.moves_max))
        self._deleters = Workers("delete", 1)
        self._registrations = 0  # with whichever NameNode
        self._recoverers = Workers("recover", RECOVERIES_MAX)
        self._lock = threading.Lock()
        self._copies = 0

    @property
    def copies(self) -> int:
        """How many copies are waiting or under way."""
        return self._copies

    def execute(self, command: pb.DatanodeCommandProto, link: NameNodeLink) -> None:
        """Take a command; it is done soon."""
        match command.cmdType:
            case Type.BlockCommand:
                self._execute_block_command(command.blkCmd)
            case Type.BlockRecoveryCommand:
                for block in command.recoveryCmd.blocks:
                    self._recoverers.submit(partial(self._recovery.recover, block, link))
            case Type.BalancerBandwidthCommand:
                if command.balancerCmd.bandwidth > 0:
                    self._limits.throttle.bytes_per_s = command.balancerCmd.bandwidth
            case Type.FinalizeCommand | Type.KeyUpdateCommand | Type.NullDatanodeCommand:
                pass  # there is no upgrade to finalize, and there are no block tokens
            case other:
                log.info("command %s is not offered", Type.Name(other))

    def forget_deletions(self) -> None:
        """We register anew: what was to be deleted is told again, if it still is to be.

        While we were away the others may have gone, and what we report then be counted on.
        """
        self._registrations += 1

    def stop(self) -> None:
        for workers in (self._copiers, self._movers, self._deleters, self._recoverers):
            workers.stop()

    def _execute_block_command(self, command: pb.BlockCommandProto) -> None:
        if command.blockPoolId != self._block_pool_id:
            log.warning("a command for %s, which is not served here", command.blockPoolId)
            return
        blocks = [decode_block(block) for block in command.blocks]
        if command.action == pb.BlockCommandProto.INVALIDATE:
            # Where they are now: what comes to another volume before their turn is not meant.
            found = [(block, self._replicas.find(block.id)) for block in blocks]
            told = [(block, replica.volume) for block, replica in found if replica is not None]
            self._deleters.submit(partial(self._delete, told, self._registrations))
        elif command.action == pb.BlockCommandProto.TRANSFER:
            for block, targets, types, ids in zip(
                blocks,
                command.targets,
                command.targetStorageTypes,
                command.targetStorageUuids,
                strict=True,
            ):
                if command.isMove:
                    self._movers.submit(partial(self._move, block, targets, types, ids))
                    continue
                with self._lock:
                    self._copies += 1
                self._copiers.submit(partial(self._copy, block, targets, types, ids))

    def _delete(self, told: list[tuple[Block, Volume]], registrations: int) -> None:
        for block, volume in told:
            if registrations != self._registrations:
                return
            try:
                replica = self._replicas.delete(block, volume)
            except (HdfsError, OSError) as error:
                log.info("%s", error)
            else:
                self._figures.add(BLOCKS_DELETED)
                self._reports.deleted(replica.block, replica.volume)

    def _move(
        self,
        block: Block,
        targets: hdfs_pb2.DatanodeInfosProto,
        types: hdfs_pb2.StorageTypesProto,
        ids: hdfs_pb2.StorageUuidsProto,
    ) -> None:
        for target, type, id in zip(
            targets.datanodes, types.storageTypes, ids.storageUuids, strict=True
        ):
            self._moving.move(block, target, type, id)

    def _copy(
        self,
        block: Block,
        targets: hdfs_pb2.DatanodeInfosProto,
        types: hdfs_pb2.StorageTypesProto,
        ids: hdfs_pb2.StorageUuidsProto,
    ) -> None:
        try:
            replica = self._replicas.get(block.id)
            if replica.on_disk_bytes < block.length_bytes:
                log.warning("%s is shorter than %d", replica, block.length_bytes)
                self._reports.bad(replica.block, replica.volume)
                return
            to = ", ".join(str(address_of(target)) for target in targets.datanodes)
            try:
                self._copying.send_copy(
                    block, targets.datanodes, types.storageTypes, ids.storageUuids
                )
            except OSError as error:
                raise IOException(f"{block} to {to}: {error}") from error
        finally:
            with self._lock:
                self._copies -= 1
