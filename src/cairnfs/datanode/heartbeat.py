"""Talk to the NameNodes: register, report, send heartbeats, pass on their commands.

Each NameNode has a thread of its own (`NameNodeLink`), so that one that is down delays
nobody.  What happens to replicas is put into the pending report of every link; a replica
that is complete wakes them, the rest goes with the next heartbeat.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence

from cairnfs.datanode.figures import BLOCKS_CORRUPT, DataNodeFigures
from cairnfs.datanode.namenode import (
    BlockStatus,
    NameNodeCalls,
    encode_block,
    encode_storage,
)
from cairnfs.datanode.replica import Block
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.datanode.storage import Namespace
from cairnfs.datanode.volumes import Volume
from cairnfs.errors import (
    DisallowedDatanodeException,
    HdfsError,
    IncorrectVersionException,
    UnregisteredNodeException,
)
from cairnfs.network.address import Address
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2, hdfs_server_pb2

log = logging.getLogger(__name__)

RETRY_MIN_S = 0.2
RETRY_MAX_S = 10.0
REPORT_SPLIT_BLOCKS = 1_000_000  # with more, a call for each volume
_FATAL = (DisallowedDatanodeException, IncorrectVersionException, UnregisteredNodeException)


class PendingReport:
    """What one NameNode has not been told yet: the latest of each replica."""

    def __init__(self) -> None:
        self._changes: dict[Volume, dict[int, pb.ReceivedDeletedBlockInfoProto]] = {}
        self._lock = threading.Lock()

    def add(self, volume: Volume, change: pb.ReceivedDeletedBlockInfoProto) -> None:
        with self._lock:
            for changes in self._changes.values():  # a replica may have moved
                changes.pop(change.block.blockId, None)
            self._changes.setdefault(volume, {})[change.block.blockId] = change

    def take(self) -> list[tuple[Volume, list[pb.ReceivedDeletedBlockInfoProto]]]:
        """All of it, to be reported now."""
        with self._lock:
            taken = [(volume, [*changes.values()]) for volume, changes in self._changes.items()]
            self._changes.clear()
        return [(volume, changes) for volume, changes in taken if changes]

    def put_back(self, taken: list[tuple[Volume, list[pb.ReceivedDeletedBlockInfoProto]]]) -> None:
        """It could not be reported; what has changed again since stays as it is."""
        with self._lock:
            newer = {block_id for changes in self._changes.values() for block_id in changes}
            for volume, changes in taken:
                mine = self._changes.setdefault(volume, {})
                for change in changes:
                    if change.block.blockId not in newer:
                        mine[change.block.blockId] = change

    def clear(self) -> None:
        """A full report says it all."""
        with self._lock:
            self._changes.clear()


class NameNodeLink:
    """One NameNode, from the first handshake until `stop`."""

    def __init__(
        self,
        address: Address,
        settings: DataNodeSettings,
        *,
        describe: Callable[[], hdfs_pb2.DatanodeIDProto],
        status: Callable[[], pb.HeartbeatRequestProto],
        replicas: Replicas,
        execute: Callable[[pb.DatanodeCommandProto, NameNodeLink], None],
        forget_deletions: Callable[[], None],
        namespace: Namespace,
    ) -> None:
        self.calls = NameNodeCalls(address, settings)
        self.pending = PendingReport()
        self.is_active = False
        self.is_registered = False
        self._settings = settings
        self._describe = describe
        self._status = status
        self._replicas = replicas
        self._execute = execute
        self._forget_deletions = forget_deletions
        self._namespace = namespace
        self._wake = threading.Event()
        self._stopping = False
        self._report_due_s = 0.0
        self._report_lease = 0
        self._heartbeat_due_s = 0.0
        self._bad: list[tuple[Block, Volume]] = []
        self._thread = threading.Thread(target=self._run, name=f"namenode {address}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """There is something to report at once."""
        self._wake.set()

    def request_full_report(self) -> None:
        """Report all replicas with the next opportunity."""
        self._report_due_s = 0.0
        self._heartbeat_due_s = 0.0
        self._wake.set()

    def report_bad(self, block: Block, volume: Volume) -> None:
        self._bad.append((block, volume))
        self._wake.set()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        self.calls.interrupt()
        if self._thread.ident is not None:
            self._thread.join()
        self.calls.close()

    # The thread.

    def _run(self) -> None:
        retry_s = RETRY_MIN_S
        while not self._stopping:
            try:
                self._step()
                retry_s = RETRY_MIN_S
            except _FATAL as error:
                log.error("%s does not want this DataNode: %s", self.calls.address, error)
                return
            except (OSError, HdfsError) as error:
                log.warning("%s: %s; again in %.1f s", self.calls.address, error, retry_s)
                self.is_active = False
                self._wait(retry_s * random.uniform(0.5, 1.0), interruptible=False)
                retry_s = min(2 * retry_s, RETRY_MAX_S)
            except Exception:
                log.exception("talking to %s failed", self.calls.address)
                self._wait(RETRY_MAX_S, interruptible=False)

    def _step(self) -> None:
        if not self.is_registered:
            self._register()
        now_s = time.monotonic()
        if now_s >= self._heartbeat_due_s:
            self._heartbeat_due_s = now_s + self._settings.heartbeat_interval_s
            self._send_heartbeat(now_s)
        if self.is_registered:
            self._report_changes()
            self._report_bad()
            self._report_all(now_s)
            self._wait(self._heartbeat_due_s - time.monotonic(), interruptible=True)

    def _wait(self, seconds: float, *, interruptible: bool) -> None:
        if seconds > 0 and not self._stopping:
            if interruptible:
                self._wake.wait(seconds)
                self._wake.clear()
            else:
                deadline_s = time.monotonic() + seconds
                while not self._stopping and time.monotonic() < deadline_s:
                    time.sleep(min(0.05, seconds))

    def _register(self) -> None:
        namespace = self.calls.version_request()
        if namespace != self._namespace:
            raise IncorrectVersionException(
                f"serves {namespace}, but this DataNode holds {self._namespace}"
            )
        self._forget_deletions()
        self.calls.register(self._describe())
        log.info("registered with %s", self.calls.address)
        self.is_registered = True
        self._heartbeat_due_s = 0.0
        self._report_due_s = 0.0

    def _send_heartbeat(self, now_s: float) -> None:
        request = self._status()
        request.requestFullBlockReportLease = now_s >= self._report_due_s
        response = self.calls.send_heartbeat(request)
        self.is_active = response.haStatus.state == hdfs_server_pb2.NNHAStatusHeartbeatProto.ACTIVE
        self._report_lease = response.fullBlockReportLeaseId
        for command in response.cmds:
            self._obey(command)

    def _obey(self, command: pb.DatanodeCommandProto) -> None:
        if command.cmdType == pb.DatanodeCommandProto.RegisterCommand:
            self.is_registered = False
        elif self.is_active or command.cmdType == pb.DatanodeCommandProto.BalancerBandwidthCommand:
            self._execute(command, self)

    def _report_changes(self) -> None:
        taken = self.pending.take()
        if not taken:
            return
        storages = [
            pb.StorageReceivedDeletedBlocksProto(
                storageUuid=volume.storage_id, storage=encode_storage(volume), blocks=changes
            )
            for volume, changes in taken
        ]
        try:
            self.calls.block_received_and_deleted(storages)
        except BaseException:
            self.pending.put_back(taken)
            raise

    def _report_bad(self) -> None:
        while self._bad:
            self.calls.report_bad_blocks(*self._bad[0])
            self._bad.pop(0)

    def _report_all(self, now_s: float) -> None:
        if now_s < self._report_due_s:
            return
        # Before it is made: one that is asked for meanwhile has to come after it.
        self._report_due_s = now_s + self._settings.block_report_interval_s
        try:
            self._send_full_report()
        except BaseException:
            self._report_due_s = 0.0
            raise

    def _send_full_report(self) -> None:
        volumes = list(self._replicas.volumes.good)
        storages = [(volume, self._replicas.report(volume)) for volume in volumes]
        total = sum(len(rows) for _, rows in storages)
        calls = [storages] if total < REPORT_SPLIT_BLOCKS else [[each] for each in storages]
        report_id = random.getrandbits(62) | 1
        for number, part in enumerate(calls):
            context = pb.BlockReportContextProto(
                totalRpcs=len(calls), curRpc=number, id=report_id, leaseId=self._report_lease
            )
            command = self.calls.block_report(part, context)
            if command is not None:
                self._obey(command)
        log.info("reported %d replicas to %s", total, self.calls.address)


class Links:
    """All NameNodes; what is to be reported goes to each of them."""

    def __init__(self, links: Sequence[NameNodeLink], figures: DataNodeFigures) -> None:
        self._links = links
        self._figures = figures

    def receiving(self, block: Block, volume: Volume) -> None:
        self._add(block, volume, BlockStatus.RECEIVING)

    def received(self, block: Block, volume: Volume, delete_hint: str = "") -> None:
        self._add(block, volume, BlockStatus.RECEIVED, delete_hint)
        self.wake()

    def deleted(self, block: Block, volume: Volume) -> None:
        self._add(block, volume, BlockStatus.DELETED)

    def bad(self, block: Block, volume: Volume) -> None:
        self._figures.add(BLOCKS_CORRUPT)
        for link in self._links:
            link.report_bad(block, volume)

    @property
    def all_registered(self) -> bool:
        return all(link.is_registered for link in self._links)

    def wake(self) -> None:
        """Report at once what is pending."""
        for link in self._links:
            link.wake()

    def request_full_report(self) -> None:
        for link in self._links:
            link.request_full_report()

    def start(self) -> None:
        for link in self._links:
            link.start()

    def stop(self) -> None:
        for link in self._links:
            link.stop()

    def _add(
        self, block: Block, volume: Volume, status: BlockStatus, delete_hint: str = ""
    ) -> None:
        change = pb.ReceivedDeletedBlockInfoProto(block=encode_block(block), status=status)
        if delete_hint:
            change.deleteHint = delete_hint
        for link in self._links:
            link.pending.add(volume, change)
