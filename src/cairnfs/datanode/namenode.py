"""DatanodeProtocol, typed: what a DataNode says to one NameNode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from google.protobuf.message import Message

from cairnfs.datanode.calls import RpcCaller
from cairnfs.datanode.replica import Block, ReplicaState
from cairnfs.datanode.settings import SOFTWARE_VERSION, DataNodeSettings
from cairnfs.datanode.storage import LAYOUT_VERSION, Namespace
from cairnfs.datanode.volumes import Volume
from cairnfs.network.address import Address
from cairnfs.wire.framing import encode_varint
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2, hdfs_server_pb2, security_pb2
from cairnfs.wire.protocols import DATANODE_PROTOCOL

_M = TypeVar("_M", bound=Message)
_UINT32 = 0xFFFFFFFF
REPORT_BUFFERS = 1  # a capability: block reports as varints

BlockStatus = pb.ReceivedDeletedBlockInfoProto.BlockStatus


class NameNodeCalls:
    """The calls of DatanodeProtocol; from `register` on, in the name of this DataNode."""

    def __init__(self, address: Address, settings: DataNodeSettings) -> None:
        self.address = address
        self.registration = pb.DatanodeRegistrationProto()
        self._caller = RpcCaller(
            address, DATANODE_PROTOCOL, settings.user, settings.socket_timeout_s
        )
        self._rack = settings.rack
        self._namespace: Namespace | None = None
        self._takes_buffers = False

    def version_request(self) -> Namespace:
        """Which namespace the NameNode serves."""
        response = self._call(
            "versionRequest",
            hdfs_server_pb2.VersionRequestProto(),
            hdfs_server_pb2.VersionResponseProto,
        )
        info = response.info
        self._takes_buffers = bool(info.capabilities & REPORT_BUFFERS)
        self._namespace = Namespace(
            namespace_id=info.storageInfo.namespceID,
            cluster_id=info.storageInfo.clusterID,
            block_pool_id=info.blockPoolID,
            creation_ms=info.storageInfo.cTime,
        )
        return self._namespace

    def register(self, datanode: hdfs_pb2.DatanodeIDProto) -> None:
        """Become known to the NameNode."""
        namespace = self._namespace
        assert namespace is not None
        registration = pb.DatanodeRegistrationProto(
            datanodeID=datanode, softwareVersion=SOFTWARE_VERSION, rack=self._rack
        )
        registration.storageInfo.layoutVersion = LAYOUT_VERSION & _UINT32
        registration.storageInfo.namespceID = namespace.namespace_id
        registration.storageInfo.clusterID = namespace.cluster_id
        registration.storageInfo.cTime = namespace.creation_ms
        keys = registration.keys
        keys.isBlockTokenEnabled = False
        keys.keyUpdateInterval = keys.tokenLifeTime = 0
        keys.currentKey.keyId = keys.currentKey.expiryDate = 0
        response = self._call(
            "registerDatanode",
            pb.RegisterDatanodeRequestProto(registration=registration),
            pb.RegisterDatanodeResponseProto,
        )
        self.registration = response.registration

    def send_heartbeat(self, request: pb.HeartbeatRequestProto) -> pb.HeartbeatResponseProto:
        request.registration.CopyFrom(self.registration)
        return self._call("sendHeartbeat", request, pb.HeartbeatResponseProto)

    def block_report(
        self,
        storages: Sequence[tuple[Volume, list[tuple[int, int, int, ReplicaState]]]],
        context: pb.BlockReportContextProto,
    ) -> pb.DatanodeCommandProto | None:
        """All replicas of these volumes."""
        reports = [
            _encode_report(volume, rows, as_buffer=self._takes_buffers) for volume, rows in storages
        ]
        response = self._call(
            "blockReport",
            pb.BlockReportRequestProto(
                registration=self.registration,
                blockPoolId=self.block_pool_id,
                reports=reports,
                context=context,
            ),
            pb.BlockReportResponseProto,
        )
        return response.cmd if response.HasField("cmd") else None

    def block_received_and_deleted(
        self, storages: Sequence[pb.StorageReceivedDeletedBlocksProto]
    ) -> None:
        self._call(
            "blockReceivedAndDeleted",
            pb.BlockReceivedAndDeletedRequestProto(
                registration=self.registration, blockPoolId=self.block_pool_id, blocks=storages
            ),
            pb.BlockReceivedAndDeletedResponseProto,
        )

    def report_bad_blocks(self, block: Block, volume: Volume) -> None:
        located = hdfs_pb2.LocatedBlockProto(
            b=self.extended(block),
            offset=0,
            corrupt=False,
            blockToken=security_pb2.TokenProto(identifier=b"", password=b"", kind="", service=""),
            storageTypes=[encode_storage(volume).storageType],
            storageIDs=[volume.storage_id],
        )
        located.locs.add().id.CopyFrom(self.registration.datanodeID)
        self._call(
            "reportBadBlocks",
            pb.ReportBadBlocksRequestProto(blocks=[located]),
            pb.ReportBadBlocksResponseProto,
        )

    def error_report(self, code: int, message: str) -> None:
        self._call(
            "errorReport",
            pb.ErrorReportRequestProto(registartion=self.registration, errorCode=code, msg=message),
            pb.ErrorReportResponseProto,
        )

    def commit_block_synchronization(
        self, request: pb.CommitBlockSynchronizationRequestProto
    ) -> None:
        self._call(
            "commitBlockSynchronization", request, pb.CommitBlockSynchronizationResponseProto
        )

    @property
    def block_pool_id(self) -> str:
        assert self._namespace is not None
        return self._namespace.block_pool_id

    def extended(self, block: Block) -> hdfs_pb2.ExtendedBlockProto:
        return hdfs_pb2.ExtendedBlockProto(
            poolId=self.block_pool_id,
            blockId=block.id,
            generationStamp=block.generation_stamp,
            numBytes=block.length_bytes,
        )

    def interrupt(self) -> None:
        self._caller.interrupt()

    def close(self) -> None:
        self._caller.close()

    def _call(self, method: str, request: Message, response_type: type[_M]) -> _M:
        response = self._caller.call(method, request)
        assert isinstance(response, response_type)
        return response


def encode_storage(volume: Volume) -> hdfs_pb2.DatanodeStorageProto:
    """A volume as NameNodes know it."""
    return hdfs_pb2.DatanodeStorageProto(
        storageUuid=volume.storage_id, storageType=volume.storage_type.name
    )


def encode_block(block: Block) -> hdfs_pb2.BlockProto:
    return hdfs_pb2.BlockProto(
        blockId=block.id, genStamp=block.generation_stamp, numBytes=block.length_bytes
    )


def decode_block(message: hdfs_pb2.BlockProto) -> Block:
    return Block(message.blockId, message.genStamp, message.numBytes)


def _encode_report(
    volume: Volume, rows: list[tuple[int, int, int, ReplicaState]], *, as_buffer: bool
) -> pb.StorageBlockReportProto:
    report = pb.StorageBlockReportProto(storage=encode_storage(volume))
    if as_buffer:
        report.numberOfBlocks = len(rows)
        report.blocksBuffers.append(encode_block_list(rows))
    else:
        report.blocks.extend(encode_block_longs(rows))
    return report


def encode_block_list(rows: list[tuple[int, int, int, ReplicaState]]) -> bytes:
    """Hadoop's BlockListAsLongs in a buffer: id (zigzag), length, stamp, state, each a varint."""
    encoded = bytearray()
    for block_id, length, stamp, state in rows:
        encoded += encode_varint(block_id << 1)
        encoded += encode_varint(length)
        encoded += encode_varint(stamp)
        encoded += encode_varint(state)
    return bytes(encoded)


def encode_block_longs(rows: list[tuple[int, int, int, ReplicaState]]) -> list[int]:
    """The older form: two counts, finalized replicas, a separator, the others with a state."""
    finalized = [row for row in rows if row[3] is ReplicaState.FINALIZED]
    others = [row for row in rows if row[3] is not ReplicaState.FINALIZED]
    longs = [len(finalized), len(others)]
    for block_id, length, stamp, _ in finalized:
        longs += (block_id, length, stamp)
    longs += [0xFFFFFFFFFFFFFFFF] * 3
    for block_id, length, stamp, state in others:
        longs += (block_id, length, stamp, int(state))
    return longs
