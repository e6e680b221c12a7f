"""A NameNode for tests: it answers DataNodes over RPC, and remembers what they say."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from google.protobuf.message import Message

from cairnfs.errors import HdfsError
from cairnfs.network.address import Address
from cairnfs.wire.framing import decode_varint
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_server_pb2
from cairnfs.wire.protocols import DATANODE_PROTOCOL, MethodTable
from cairnfs.wire.rpc import Call, ServerConnection

POOL = "BP-1-127.0.0.1-1700000000000"
CLUSTER = "CID-test"
_METHODS = MethodTable([DATANODE_PROTOCOL])
Status = pb.ReceivedDeletedBlockInfoProto.BlockStatus


class FakeNameNode:
    """Listens from the beginning; `stop` and `start` make it a NameNode that restarts."""

    def __init__(self, *, cluster: str = CLUSTER, namespace_id: int = 7) -> None:
        self.cluster = cluster
        self.namespace_id = namespace_id
        self.registrations: list[pb.DatanodeRegistrationProto] = []
        self.heartbeats: list[pb.HeartbeatRequestProto] = []
        self.reports: list[pb.BlockReportRequestProto] = []
        self.received: dict[tuple[str, int], pb.ReceivedDeletedBlockInfoProto] = {}
        self.bad: list[int] = []
        self.synchronized: list[pb.CommitBlockSynchronizationRequestProto] = []
        self.commands: dict[str, list[pb.DatanodeCommandProto]] = {}
        self.failing: set[str] = set()  # methods that answer with an error
        self.during_report: Callable[[], object] = lambda: None  # before a report is answered
        self._known: set[str] = set()
        self._port = 0
        self._lock = threading.Condition()
        self.start()

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self._port)

    def start(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", self._port), reuse_port=False)
        self._port = self._socket.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for sock in self._connections:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._known.clear()

    def command(self, uuid: str, command: pb.DatanodeCommandProto) -> None:
        """To be given with the next heartbeat."""
        with self._lock:
            self.commands.setdefault(uuid, []).append(command)

    def wait_for(self, condition: Callable[[], object], limit_s: float = 10.0) -> None:
        """Wait until what was said makes this true."""
        deadline_s = time.monotonic() + limit_s
        with self._lock:
            while not condition():
                left_s = deadline_s - time.monotonic()
                assert left_s > 0, "the DataNode has not said it in time"
                self._lock.wait(min(left_s, 0.1))

    def status_of(self, uuid: str, block_id: int) -> int | None:
        change = self.received.get((uuid, block_id))
        return None if change is None else change.status

    def wait_until_received(
        self, uuid: str, block_id: int, generation_stamp: int | None = None
    ) -> None:
        """Wait for a replica to be complete, in this generation if one is given."""

        def is_received() -> bool:
            change = self.received.get((uuid, block_id))
            return (
                change is not None
                and change.status == Status.RECEIVED
                and generation_stamp in (None, change.block.genStamp)
            )

        self.wait_for(is_received)

    # The server.

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._socket.accept()
            except OSError:
                return
            self._connections.append(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        connection = ServerConnection(_METHODS)
        with sock, suppress(OSError):
            while data := sock.recv(65536):
                for event in connection.receive_data(data):
                    if isinstance(event, Call):
                        sock.sendall(self._reply(connection, event))

    def _reply(self, connection: ServerConnection, call: Call) -> bytes:
        request = call.method.decode_request(call.request)
        name = call.method.name
        with self._lock:
            try:
                if name in self.failing:
                    raise HdfsError(f"{name} fails for now")
                response: Message = getattr(self, name)(request)
            except HdfsError as error:
                return connection.encode_error(call, error)
            finally:
                self._lock.notify_all()
        return connection.encode_reply(call, response.SerializeToString())

    # DatanodeProtocol; the names are Hadoop's.

    def versionRequest(self, _: Message) -> Message:
        response = hdfs_server_pb2.VersionResponseProto()
        info = response.info
        info.buildVersion, info.unused, info.blockPoolID = "x", 0, POOL
        info.softwareVersion, info.capabilities = "3.4.1", 1
        info.storageInfo.layoutVersion = 0xFFFFFFFF - 65
        info.storageInfo.namespceID = self.namespace_id
        info.storageInfo.clusterID = self.cluster
        info.storageInfo.cTime = 1_700_000_000_000
        return response

    def registerDatanode(self, request: pb.RegisterDatanodeRequestProto) -> Message:
        self.registrations.append(request.registration)
        self._known.add(request.registration.datanodeID.datanodeUuid)
        return pb.RegisterDatanodeResponseProto(registration=request.registration)

    def sendHeartbeat(self, request: pb.HeartbeatRequestProto) -> Message:
        uuid = request.registration.datanodeID.datanodeUuid
        self.heartbeats.append(request)
        response = pb.HeartbeatResponseProto()
        response.haStatus.state = hdfs_server_pb2.NNHAStatusHeartbeatProto.ACTIVE
        response.haStatus.txid = 1
        if uuid not in self._known:
            command = response.cmds.add(cmdType=pb.DatanodeCommandProto.RegisterCommand)
            command.registerCmd.SetInParent()
            return response
        response.cmds.extend(self.commands.pop(uuid, []))
        if request.requestFullBlockReportLease:
            response.fullBlockReportLeaseId = 77
        return response

    def blockReport(self, request: pb.BlockReportRequestProto) -> Message:
        self.reports.append(request)
        self.during_report()
        return pb.BlockReportResponseProto()

    def blockReceivedAndDeleted(self, request: pb.BlockReceivedAndDeletedRequestProto) -> Message:
        for storage in request.blocks:
            for change in storage.blocks:
                key = (request.registration.datanodeID.datanodeUuid, change.block.blockId)
                self.received[key] = change
        return pb.BlockReceivedAndDeletedResponseProto()

    def reportBadBlocks(self, request: pb.ReportBadBlocksRequestProto) -> Message:
        self.bad.extend(block.b.blockId for block in request.blocks)
        return pb.ReportBadBlocksResponseProto()

    def commitBlockSynchronization(
        self, request: pb.CommitBlockSynchronizationRequestProto
    ) -> Message:
        self.synchronized.append(request)
        return pb.CommitBlockSynchronizationResponseProto()


def reported_blocks(request: pb.BlockReportRequestProto) -> dict[int, tuple[int, int, int]]:
    """Length, stamp and state by block id, of all storages of a report."""
    found: dict[int, tuple[int, int, int]] = {}
    for report in request.reports:
        data, at = b"".join(report.blocksBuffers), 0
        for _ in range(report.numberOfBlocks):
            numbers = []
            for _ in range(4):
                number, at = decode_varint(data, at)
                numbers.append(number)
            found[numbers[0] >> 1] = (numbers[1], numbers[2], numbers[3])
        assert at == len(data)
    return found
