"""Recovery of a block whose writer is gone, led by one of its DataNodes.

Ask every DataNode what it has (which stops its writers), agree on a length, have the
replicas cut to it under a new generation stamp, tell the NameNode.  The length is that
of a finalized replica if there is one, else the smallest of the best state: everything
that was acknowledged is in all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple, Protocol, TypeVar

from google.protobuf.message import Message

from cairnfs.datanode.calls import RpcCaller
from cairnfs.datanode.heartbeat import NameNodeLink
from cairnfs.datanode.replica import Block, ReplicaState
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.reports import Reports
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.errors import HdfsError, IOException, RecoveryInProgressException
from cairnfs.network.address import Address
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2, hdfs_server_pb2, inter_datanode_pb2
from cairnfs.wire.protocols import INTER_DATANODE_PROTOCOL

log = logging.getLogger(__name__)

_M = TypeVar("_M", bound=Message)


class Found(NamedTuple):
    """A replica as its DataNode has found it."""

    block: Block
    state: ReplicaState


class Participant(Protocol):
    """A DataNode that takes part in a recovery."""

    def init_recovery(self, block: Block, recovery_id: int) -> Found | None: ...

    def update(self, block: Block, recovery_id: int, new_id: int, new_bytes: int) -> str:
        """Returns the id of the storage the replica is on."""

    def close(self) -> None: ...


class Plan(NamedTuple):
    """What a recovery is to come to."""

    length_bytes: int
    participants: list[int]  # indices of those whose replicas are kept


def plan_recovery(found: Sequence[Found]) -> Plan:
    """Agree on a length, and on the replicas that can have it."""
    finalized = {each.block.length_bytes for each in found if each.state is ReplicaState.FINALIZED}
    if len(finalized) > 1:
        raise IOException(f"Inconsistent size of finalized replicas: {sorted(finalized)}")
    if finalized:
        (length,) = finalized
        return Plan(
            length,
            [
                index
                for index, each in enumerate(found)
                if each.state is ReplicaState.FINALIZED
                or (each.state is ReplicaState.RBW and each.block.length_bytes == length)
            ],
        )
    best = min(each.state for each in found)
    chosen = [index for index, each in enumerate(found) if each.state is best]
    return Plan(min(found[index].block.length_bytes for index in chosen), chosen)


def plan_cut(found: Sequence[Found], length_bytes: int) -> Plan:
    """All that are long enough take part: some may have been cut by an attempt that died."""
    long_enough = [
        index for index, each in enumerate(found) if each.block.length_bytes >= length_bytes
    ]
    return Plan(length_bytes, long_enough)


class BlockRecovery:
    """Leads recoveries for the NameNodes."""

    def __init__(
        self,
        replicas: Replicas,
        reports: Reports,
        settings: DataNodeSettings,
        *,
        datanode_uuid: str,
    ) -> None:
        self._replicas = replicas
        self._reports = reports
        self._settings = settings
        self._datanode_uuid = datanode_uuid

    def recover(self, command: hdfs_server_pb2.RecoveringBlockProto, link: NameNodeLink) -> None:
        """Recover one block."""
        located = command.block
        block = Block(located.b.blockId, located.b.generationStamp, located.b.numBytes)
        recovery_id = command.newGenStamp
        log.info("recovering %s as generation %d", block, recovery_id)
        with ExitStack() as cleanup:
            participants = [self._participant(each.id, located.b.poolId) for each in located.locs]
            for participant in participants:
                cleanup.callback(participant.close)
            try:
                found = self._ask(located, participants, block, recovery_id)
            except RecoveryInProgressException as error:
                log.info("recovery of %s is under way elsewhere: %s", block, error)
                return
            result = pb.CommitBlockSynchronizationRequestProto(
                block=located.b,
                newGenStamp=recovery_id,
                newLength=0,
                closeFile=True,
                deleteBlock=not found,
            )
            if found:
                self._update(command, found, recovery_id, result)
        link.calls.commit_block_synchronization(result)

    def _ask(
        self,
        located: hdfs_pb2.LocatedBlockProto,
        participants: list[Participant],
        block: Block,
        recovery_id: int,
    ) -> list[tuple[hdfs_pb2.DatanodeIDProto, Participant, Found]]:
        """The replicas that can be used; an error if there may be some nobody could ask."""
        usable: list[tuple[hdfs_pb2.DatanodeIDProto, Participant, Found]] = []
        failed = unusable = 0
        for location, participant in zip(located.locs, participants, strict=True):
            try:
                found = participant.init_recovery(block, recovery_id)
            except RecoveryInProgressException:
                raise
            except (HdfsError, OSError) as error:
                log.warning("%s cannot recover %s: %s", location.id.ipAddr, block, error)
                failed += 1
                continue
            if (
                found is None
                or found.block.generation_stamp < block.generation_stamp
                or found.block.length_bytes == 0
            ):
                continue
            # What the NameNode knows to be acknowledged must be there.
            if found.state <= ReplicaState.RWR and found.block.length_bytes >= block.length_bytes:
                usable.append((location.id, participant, found))
            else:
                unusable += 1
        if failed and not usable:
            raise IOException(
                f"{failed} of {len(located.locs)} DataNodes cannot be asked about {block}, and the"
                " others have nothing of it"
            )
        if unusable and not usable:
            raise IOException(
                f"Found {unusable} replica(s) for block {block} but none is in RWR or better state,"
                f" with at least {block.length_bytes} bytes"
            )
        return usable

    def _update(
        self,
        command: hdfs_server_pb2.RecoveringBlockProto,
        found: list[tuple[hdfs_pb2.DatanodeIDProto, Participant, Found]],
        recovery_id: int,
        result: pb.CommitBlockSynchronizationRequestProto,
    ) -> None:
        replicas = [each for _, _, each in found]
        if command.HasField("truncateBlock"):
            new_id, new_bytes = command.truncateBlock.blockId, command.truncateBlock.numBytes
            plan = plan_cut(replicas, new_bytes)
        else:
            plan = plan_recovery(replicas)
            new_id, new_bytes = command.block.b.blockId, plan.length_bytes
        result.newLength = new_bytes
        for index in plan.participants:
            datanode, participant, replica = found[index]
            try:
                storage_id = participant.update(replica.block, recovery_id, new_id, new_bytes)
            except (HdfsError, OSError) as error:
                log.warning("%s cannot update %s: %s", datanode.ipAddr, replica.block, error)
                continue
            result.newTaragets.add().CopyFrom(datanode)
            result.newTargetStorages.append(storage_id)
        if not result.newTaragets:
            raise IOException(f"Cannot recover blk_{command.block.b.blockId}: all updates failed")

    def _participant(self, datanode: hdfs_pb2.DatanodeIDProto, pool_id: str) -> Participant:
        if datanode.datanodeUuid == self._datanode_uuid:
            return LocalParticipant(self._replicas, self._reports)
        caller = RpcCaller(
            Address(datanode.ipAddr, datanode.ipcPort),
            INTER_DATANODE_PROTOCOL,
            self._settings.user,
            self._settings.socket_timeout_s,
        )
        return RemoteParticipant(caller, pool_id)


class LocalParticipant:
    """This DataNode."""

    def __init__(self, replicas: Replicas, reports: Reports) -> None:
        self._replicas = replicas
        self._reports = reports

    def init_recovery(self, block: Block, recovery_id: int) -> Found | None:
        replica = self._replicas.init_recovery(block, recovery_id)
        return None if replica is None else Found(replica.block, replica.original_state)

    def update(self, block: Block, recovery_id: int, new_id: int, new_bytes: int) -> str:
        replica = self._replicas.update_recovered(block, recovery_id, new_id, new_bytes)
        self._reports.received(replica.block, replica.volume)
        return replica.volume.storage_id

    def close(self) -> None:
        """There is nothing to close."""


class RemoteParticipant:
    """Another DataNode, over InterDatanodeProtocol."""

    def __init__(self, caller: RpcCaller, pool_id: str) -> None:
        self._caller = caller
        self._pool_id = pool_id

    def init_recovery(self, block: Block, recovery_id: int) -> Found | None:
        request = inter_datanode_pb2.InitReplicaRecoveryRequestProto()
        request.block.newGenStamp = recovery_id
        request.block.block.b.CopyFrom(self._extended(block))
        request.block.block.offset = 0
        request.block.block.corrupt = False
        token = request.block.block.blockToken
        token.identifier = token.password = b""
        token.kind = token.service = ""
        response = self._call(
            "initReplicaRecovery", request, inter_datanode_pb2.InitReplicaRecoveryResponseProto
        )
        if not response.replicaFound:
            return None
        found = response.block
        return Found(
            Block(found.blockId, found.genStamp, found.numBytes), ReplicaState(response.state)
        )

    def update(self, block: Block, recovery_id: int, new_id: int, new_bytes: int) -> str:
        request = inter_datanode_pb2.UpdateReplicaUnderRecoveryRequestProto(
            block=self._extended(block),
            recoveryId=recovery_id,
            newLength=new_bytes,
            newBlockId=new_id,
        )
        return self._call(
            "updateReplicaUnderRecovery",
            request,
            inter_datanode_pb2.UpdateReplicaUnderRecoveryResponseProto,
        ).storageUuid

    def close(self) -> None:
        self._caller.close()

    def _extended(self, block: Block) -> hdfs_pb2.ExtendedBlockProto:
        return hdfs_pb2.ExtendedBlockProto(
            poolId=self._pool_id,
            blockId=block.id,
            generationStamp=block.generation_stamp,
            numBytes=block.length_bytes,
        )

    def _call(self, method: str, request: Message, response_type: type[_M]) -> _M:
        response = self._caller.call(method, request)
        assert isinstance(response, response_type)
        return response
