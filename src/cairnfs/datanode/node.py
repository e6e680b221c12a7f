"""A whole DataNode: volumes, servers, NameNodes, scanner, put together and taken apart."""

from __future__ import annotations

import logging
import random
import socket
import threading
from contextlib import ExitStack

from cairnfs.config_file import Config, load_config
from cairnfs.datanode.commands import Commands
from cairnfs.datanode.copying import Copying
from cairnfs.datanode.disk import Disk
from cairnfs.datanode.figures import DataNodeFigures
from cairnfs.datanode.heartbeat import RETRY_MAX_S, RETRY_MIN_S, Links, NameNodeLink
from cairnfs.datanode.ipc import IpcCalls, IpcServer
from cairnfs.datanode.lazy_writer import LazyWriter
from cairnfs.datanode.move_limits import MoveLimits
from cairnfs.datanode.moving import Moving
from cairnfs.datanode.namenode import NameNodeCalls, encode_storage
from cairnfs.datanode.operations import Operations
from cairnfs.datanode.peers import Pool
from cairnfs.datanode.reading import Reading
from cairnfs.datanode.recovery import BlockRecovery
from cairnfs.datanode.replicas import Replicas
from cairnfs.datanode.scanner import BlockScanner
from cairnfs.datanode.server import TransferServer, listen
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.datanode.storage import Namespace
from cairnfs.datanode.volumes import Volumes
from cairnfs.datanode.writing import Writing
from cairnfs.errors import HdfsError
from cairnfs.observe.datanode_source import DataNodeSource
from cairnfs.user_name import user_name
from cairnfs.web.datanode import make_app
from cairnfs.web.thread import HttpThread
from cairnfs.wire.proto import datanode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 1.0


class Stopped(Exception):
    """The DataNode was told to stop before it had started."""


class DataNode:
    """Started by `start`, which waits for a NameNode; ended by `stop`, or by itself.

    Sockets and directories are taken at once, so that what is in use already is known
    before anybody is told of this DataNode.
    """

    def __init__(
        self, settings: DataNodeSettings, config: Config | None = None, *, disk: Disk | None = None
    ) -> None:
        """`config` is what the settings came from, to be shown to those who ask."""
        self.settings = settings
        self._config = config or load_config()
        self.stopped = threading.Event()
        self._stopping = threading.Event()
        with ExitStack() as opened:  # all of them, or none
            self._transfer_socket, self._ipc_socket, self._http_socket = (
                opened.enter_context(listen(settings.host, port, what))
                for port, what in (
                    (settings.port, "block transfer"),
                    (settings.ipc_port, "RPC"),
                    (settings.http_port, "HTTP"),
                )
            )
            self.volumes = Volumes(
                settings.data,
                reserved_bytes=settings.reserved_bytes,
                limit_bytes=settings.capacity_bytes,
                failures_tolerated=settings.failed_volumes_tolerated,
                disk=disk,
            )
            opened.pop_all()
        self.port: int = self._transfer_socket.getsockname()[1]
        self.ipc_port: int = self._ipc_socket.getsockname()[1]
        self.http_port: int = self._http_socket.getsockname()[1]
        self.uuid = ""
        self.figures = DataNodeFigures()
        self.failure: str | None = None  # why it has ended by itself
        self._lost_volumes: set[str] = set()
        self._is_started = False

    @property
    def is_started(self) -> bool:
        """Whether a NameNode was found, and all of it is at work."""
        return self._is_started

    def start(self) -> None:
        """Learn from a NameNode whose data this is; then serve, register and report."""
        try:
            self._start(self._wait_for_namespace())
        except BaseException:
            self._close_all()
            raise

    def _start(self, namespace: Namespace) -> None:
        settings = self.settings
        self.uuid = self.volumes.attach(namespace)
        self.replicas = Replicas(
            self.volumes,
            on_lost=lambda replica: self.reports.deleted(replica.block, replica.volume),
        )
        self.replicas.load()
        links = [
            NameNodeLink(
                address,
                settings,
                describe=self._describe,
                status=self._status,
                replicas=self.replicas,
                execute=lambda command, link: self.commands.execute(command, link),
                forget_deletions=lambda: self.commands.forget_deletions(),
                namespace=namespace,
            )
            for address in settings.namenodes
        ]
        figures = self.figures
        self.reports = Links(links, figures)
        pool = Pool(namespace.block_pool_id)
        copying = Copying(pool, self.replicas, settings, figures)
        reading = Reading(pool, self.replicas, self.reports, figures)
        writing = Writing(pool, self.replicas, self.reports, settings, figures=figures)
        self.move_limits = MoveLimits(settings.move_bytes_per_s, settings.moves_max)
        moving = Moving(
            pool,
            self.replicas,
            self.reports,
            settings,
            reading=reading,
            writing=writing,
            limits=self.move_limits,
            datanode_uuid=self.uuid,
            port=self.port,
            figures=figures,
        )
        operations = Operations(reading, writing, copying, moving, figures)
        recovery = BlockRecovery(self.replicas, self.reports, settings, datanode_uuid=self.uuid)
        self.commands = Commands(
            self.replicas,
            self.reports,
            copying,
            recovery,
            moving,
            self.move_limits,
            block_pool_id=pool.id,
            figures=figures,
        )
        self.server = TransferServer(self._transfer_socket, operations, settings)
        calls = IpcCalls(
            self.replicas,
            self.reports,
            pool=pool,
            report=self._report_on_demand,
            shut_down=self.ask_to_stop,
            balancer_bandwidth=lambda: self.move_limits.throttle.bytes_per_s,
            administrators={settings.user, user_name()},
        )
        self.ipc = IpcServer(self._ipc_socket, calls)
        namenodes = tuple(map(str, settings.namenodes))
        source = DataNodeSource(self, self._config)
        self.http = HttpThread(self._http_socket, lambda: make_app(namenodes, source))
        self.scanner = BlockScanner(
            self.replicas,
            self.reports,
            bytes_per_s=settings.scan_bytes_per_s,
            period_s=settings.scan_period_s,
        )
        self.lazy_writer = LazyWriter(self.replicas, moving, settings.lazy_persist_interval_s)
        self._watcher = threading.Thread(target=self._watch, name="datanode", daemon=True)
        self._is_started = True
        for part in (self.server, self.ipc, self.http, self.reports, self.scanner):
            part.start()
        self.lazy_writer.start()
        self._watcher.start()
        log.info("DataNode %s serves %s on %s:%d", self.uuid, pool.id, settings.host, self.port)

    def stop(self) -> None:
        """End everything; what was acknowledged is on its way to the disks."""
        self._stopping.set()
        if self._is_started:
            self.stopped.wait()
        else:
            self._close_all()

    def ask_to_stop(self) -> None:
        """Begin to end; `stopped` tells when it is done."""
        self._stopping.set()

    # Starting and ending.

    def _wait_for_namespace(self) -> Namespace:
        """Ask the NameNodes in turn until one answers."""
        retry_s = RETRY_MIN_S
        while True:
            for address in self.settings.namenodes:
                calls = NameNodeCalls(address, self.settings)
                try:
                    return calls.version_request()
                except (OSError, HdfsError) as error:
                    log.warning("waiting for NameNode %s: %s", address, error)
                finally:
                    calls.close()
            if self._stopping.wait(retry_s * random.uniform(0.5, 1.0)):
                raise Stopped
            retry_s = min(2 * retry_s, RETRY_MAX_S)

    def _watch(self) -> None:
        """Notice failed volumes, until it is time to end."""
        while not self._stopping.wait(CHECK_INTERVAL_S):
            for volume in [each.volume for each in self.volumes.failed]:
                if volume is not None and volume.storage_id not in self._lost_volumes:
                    self._lost_volumes.add(volume.storage_id)
                    lost = self.replicas.drop_volume(volume)
                    log.error("%d replicas are lost with %s", len(lost), volume)
                    self.reports.request_full_report()
            if self.volumes.too_many_failed:
                self.failure = (
                    f"{len(self.volumes.failed)} volumes have failed;"
                    f" {self.settings.failed_volumes_tolerated} are tolerated"
                )
                log.error("%s", self.failure)
                break
        self._stopping.set()
        self.lazy_writer.stop()
        for part in (self.http, self.scanner, self.reports, self.server, self.ipc, self.commands):
            part.stop()
        self.volumes.close()
        self.stopped.set()

    def _close_all(self) -> None:
        self._transfer_socket.close()
        self._ipc_socket.close()
        self._http_socket.close()
        self.volumes.close()
        self.stopped.set()

    # What NameNodes are told.

    def _describe(self) -> hdfs_pb2.DatanodeIDProto:
        settings = self.settings
        return hdfs_pb2.DatanodeIDProto(
            ipAddr=settings.announced_ip,
            hostName=settings.hostname or socket.getfqdn(settings.announced_ip),
            datanodeUuid=self.uuid,
            xferPort=self.port,
            infoPort=self.http_port,
            ipcPort=self.ipc_port,
        )

    def _status(self) -> pb.HeartbeatRequestProto:
        request = pb.HeartbeatRequestProto(
            xmitsInProgress=self.commands.copies,
            xceiverCount=self.server.active + 1,
            failedVolumes=len(self.volumes.failed),
        )
        for volume in list(self.volumes.good):
            try:
                available = volume.available_bytes()
            except OSError:
                self.volumes.check(volume)
                continue
            used = volume.used_bytes
            request.reports.add(
                storageUuid=volume.storage_id,
                storage=encode_storage(volume),
                failed=False,
                capacity=volume.capacity_bytes,
                dfsUsed=used,
                remaining=available,
                blockPoolUsed=used,
                nonDfsUsed=max(0, volume.capacity_bytes - used - available),
            )
        for failed in self.volumes.failed:
            summary = request.volumeFailureSummary
            summary.failedStorageLocations.append(str(failed.path))
            summary.lastVolumeFailureDate = max(summary.lastVolumeFailureDate, failed.failed_ms)
            summary.estimatedCapacityLostTotal += failed.capacity_bytes
        return request

    def _report_on_demand(self, incremental: bool) -> None:
        if incremental:
            self.reports.wake()
        else:
            self.reports.request_full_report()
