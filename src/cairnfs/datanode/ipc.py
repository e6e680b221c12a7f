"""The RPC port of a DataNode: ClientDatanodeProtocol and InterDatanodeProtocol.

There are few calls here, so a thread for each connection will do.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from google.protobuf.message import Message

from cairnfs.datanode.peers import Pool
from cairnfs.datanode.recovery import LocalParticipant
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.reports import Reports
from cairnfs.datanode.settings import SOFTWARE_VERSION
from cairnfs.datanode.volumes import Volumes
from cairnfs.errors import (
    AccessControlException,
    HdfsError,
    IOException,
    UnsupportedOperationException,
)
from cairnfs.wire.proto import client_datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2, inter_datanode_pb2
from cairnfs.wire.protocols import (
    CLIENT_DATANODE_PROTOCOL,
    INTER_DATANODE_PROTOCOL,
    MethodTable,
)
from cairnfs.wire.rpc import Call, Closed, Send, ServerConnection

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 256
IDLE_LIMIT_S = 120.0
_RECEIVE_BYTES = 64 << 10
_FOR_ADMINISTRATORS = frozenset(("deleteBlockPool", "refreshNamenodes", "shutdownDatanode"))
_METHODS = MethodTable([CLIENT_DATANODE_PROTOCOL, INTER_DATANODE_PROTOCOL])


class IpcCalls:
    """One method for each call; those that are not offered say so."""

    def __init__(
        self,
        replicas: Replicas,
        reports: Reports,
        *,
        pool: Pool,
        report: Callable[[bool], None],
        shut_down: Callable[[], None],
        balancer_bandwidth: Callable[[], int],
        administrators: Collection[str],
    ) -> None:
        """`administrators` are the users who may stop this DataNode."""
        self._replicas = replicas
        self._volumes: Volumes = replicas.volumes
        self._local = LocalParticipant(replicas, reports)
        self._pool = pool
        self._report = report
        self._shut_down = shut_down
        self._balancer_bandwidth = balancer_bandwidth
        self._administrators = frozenset(administrators)
        self._started_s = time.monotonic()
        self._handlers: dict[str, Callable[[Any], Message]] = {
            "getReplicaVisibleLength": self.get_replica_visible_length,
            "refreshNamenodes": self.refresh_namenodes,
            "deleteBlockPool": self.delete_block_pool,
            "shutdownDatanode": self.shutdown_datanode,
            "getDatanodeInfo": self.get_datanode_info,
            "getVolumeReport": self.get_volume_report,
            "triggerBlockReport": self.trigger_block_report,
            "getBalancerBandwidth": self.get_balancer_bandwidth,
            "initReplicaRecovery": self.init_replica_recovery,
            "updateReplicaUnderRecovery": self.update_replica_under_recovery,
        }

    def answer(self, method: str, request: Message, user: str) -> Message:
        handler = self._handlers.get(method)
        if handler is None:
            raise UnsupportedOperationException(f"{method} is not offered by this DataNode")
        if method in _FOR_ADMINISTRATORS and user not in self._administrators:
            raise AccessControlException(
                f"User {user} may not call {method}: it is for those who run this DataNode"
            )
        return handler(request)

    def get_replica_visible_length(
        self, request: pb.GetReplicaVisibleLengthRequestProto
    ) -> pb.GetReplicaVisibleLengthResponseProto:
        """How much of a block being written a reader may count on."""
        block = self._pool.decode(request.block)
        replica = self._replicas.get(block.id)
        if replica.generation_stamp < block.generation_stamp:
            raise IOException(
                f"Replica gen stamp < block genstamp, block={block}, replica={replica}"
            )
        if replica.visible_bytes < 0:
            raise IOException(f"Replica is not readable, block={block}, replica={replica}")
        return pb.GetReplicaVisibleLengthResponseProto(length=replica.visible_bytes)

    def refresh_namenodes(
        self, request: pb.RefreshNamenodesRequestProto
    ) -> pb.RefreshNamenodesResponseProto:
        """The NameNodes are those given at start; there is nothing to read again."""
        return pb.RefreshNamenodesResponseProto()

    def delete_block_pool(
        self, request: pb.DeleteBlockPoolRequestProto
    ) -> pb.DeleteBlockPoolResponseProto:
        """Refused for the pool being served, as HDFS does; there is no other."""
        if request.blockPool == self._pool.id:
            raise IOException("The block pool is still running. First do a refreshNamenodes to")
        raise IOException(f"Block pool {request.blockPool} is not found")

    def shutdown_datanode(
        self, request: pb.ShutdownDatanodeRequestProto
    ) -> pb.ShutdownDatanodeResponseProto:
        self._shut_down()
        return pb.ShutdownDatanodeResponseProto()

    def get_datanode_info(
        self, request: pb.GetDatanodeInfoRequestProto
    ) -> pb.GetDatanodeInfoResponseProto:
        return pb.GetDatanodeInfoResponseProto(
            localInfo=hdfs_pb2.DatanodeLocalInfoProto(
                softwareVersion=SOFTWARE_VERSION,
                configVersion="core-0,hdfs-0",
                uptime=int(time.monotonic() - self._started_s),
            )
        )

    def get_volume_report(
        self, request: pb.GetVolumeReportRequestProto
    ) -> pb.GetVolumeReportResponseProto:
        response = pb.GetVolumeReportResponseProto()
        for volume in self._volumes.good:
            response.volumeInfo.add(
                path=str(volume.location.path),
                storageType=volume.storage_type.name,
                usedSpace=volume.used_bytes,
                freeSpace=volume.available_bytes(),
                reservedSpace=volume.reserved_bytes,
                reservedSpaceForReplicas=volume.promised_bytes,
                numBlocks=self._replicas.count(volume),
            )
        return response

    def trigger_block_report(
        self, request: pb.TriggerBlockReportRequestProto
    ) -> pb.TriggerBlockReportResponseProto:
        self._report(request.incremental)
        return pb.TriggerBlockReportResponseProto()

    def get_balancer_bandwidth(
        self, request: pb.GetBalancerBandwidthRequestProto
    ) -> pb.GetBalancerBandwidthResponseProto:
        return pb.GetBalancerBandwidthResponseProto(bandwidth=self._balancer_bandwidth())

    def init_replica_recovery(
        self, request: inter_datanode_pb2.InitReplicaRecoveryRequestProto
    ) -> inter_datanode_pb2.InitReplicaRecoveryResponseProto:
        block = self._pool.decode(request.block.block.b)
        found = self._local.init_recovery(block, request.block.newGenStamp)
        if found is None:
            return inter_datanode_pb2.InitReplicaRecoveryResponseProto(replicaFound=False)
        return inter_datanode_pb2.InitReplicaRecoveryResponseProto(
            replicaFound=True,
            state=found.state.name,
            block=hdfs_pb2.BlockProto(
                blockId=found.block.id,
                genStamp=found.block.generation_stamp,
                numBytes=found.block.length_bytes,
            ),
        )

    def update_replica_under_recovery(
        self, request: inter_datanode_pb2.UpdateReplicaUnderRecoveryRequestProto
    ) -> inter_datanode_pb2.UpdateReplicaUnderRecoveryResponseProto:
        storage_id = self._local.update(
            self._pool.decode(request.block),
            request.recoveryId,
            request.newBlockId,
            request.newLength,
        )
        return inter_datanode_pb2.UpdateReplicaUnderRecoveryResponseProto(storageUuid=storage_id)


class IpcServer:
    """Serves those calls from `start` until `stop`."""

    def __init__(self, sock: socket.socket, calls: IpcCalls) -> None:
        self._socket = sock
        self._calls = calls
        self._stopping = False
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, name="ipc server", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            for sock in self._connections:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._socket.accept()
            except OSError as error:
                if self._stopping:
                    return
                log.warning("cannot accept a connection: %s", error)
                time.sleep(0.1)
                continue
            with self._lock:
                if len(self._connections) >= CONNECTIONS_MAX:
                    sock.close()
                    continue
                self._connections.add(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), name="ipc", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # no more threads
                log.warning("cannot serve a connection: %s", error)
                with self._lock:
                    self._connections.discard(sock)
                sock.close()

    def _serve(self, sock: socket.socket) -> None:
        connection = ServerConnection(_METHODS)
        try:
            sock.settimeout(IDLE_LIMIT_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := sock.recv(_RECEIVE_BYTES):
                for event in connection.receive_data(data):
                    match event:
                        case Call():
                            sock.sendall(self._reply(connection, event))
                        case Send(data=reply):
                            sock.sendall(reply)
                        case Closed():
                            return
        except OSError as error:
            log.debug("an RPC connection ended: %s", error)
        except Exception:
            log.exception("an RPC connection failed")
        finally:
            with self._lock:
                self._connections.discard(sock)
            sock.close()

    def _reply(self, connection: ServerConnection, call: Call) -> bytes:
        try:
            context = connection.context
            response = self._calls.answer(
                call.method.name,
                call.method.decode_request(call.request),
                "" if context is None else context.user,
            )
            return connection.encode_reply(call, response.SerializeToString())
        except HdfsError as error:
            return connection.encode_error(call, error)
        except OSError as error:
            return connection.encode_error(call, IOException(str(error)))
        except Exception as error:
            log.exception("%s failed", call.method)
            return connection.encode_error(call, IOException(f"{type(error).__name__}: {error}"))
