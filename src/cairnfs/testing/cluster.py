"""A real cluster for tests: NameNodes and DataNodes, each a process of its own.

    with Cluster(directory, datanodes=3) as cluster:
        ...                              # cluster.uri is what Hadoop's clients are given
        cluster.datanodes[0].kill()      # SIGKILL, as when a machine loses power
        cluster.datanodes[0].start()     # with the ports and directories that it had

Everything is on 127.0.0.1.  With several NameNodes the store has to be a PostgreSQL.

Invariant: no process outlives the one that made the cluster, however that ends, and nothing
of a closed cluster is left on disk.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from google.protobuf.message import Message

import cairnfs
from cairnfs.datanode.calls import RpcCaller
from cairnfs.errors import HdfsError
from cairnfs.network.address import Address
from cairnfs.testing.ports import HOST, choose_free_ports
from cairnfs.user_name import user_name
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto import hdfs_pb2
from cairnfs.wire.protocols import CLIENT_PROTOCOL

NAMESERVICE = "cairn"  # what several NameNodes are called together
START_LIMIT_S = 60.0
STOP_LIMIT_S = 30.0
POLL_INTERVAL_S = 0.05

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_M = TypeVar("_M", bound=Message)


class ClusterError(RuntimeError):
    """The cluster is not as a test needs it."""


class ReplicaPlace(NamedTuple):
    """A replica that clients are told of."""

    block_id: int
    port: int  # of its DataNode, for block transfer


class Node:
    """One process, that can be ended and started again as often as a test likes."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        port: int,
        http_port: int,
        ipc_port: int = 0,
    ) -> None:
        self.name = name
        self.log = log
        self.port = port
        self.http_port = http_port
        self.ipc_port = ipc_port  # of a DataNode
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<{self.name} at port {self.port}>"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def http_address(self) -> str:
        return f"{HOST}:{self.http_port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ClusterError(f"{self.name} does not run")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *more: str) -> None:
        """Run it; `more` are arguments for this time only."""
        if self.is_running:
            raise ClusterError(f"{self.name} runs already")
        environment = {**os.environ, "PYTHONPATH": _python_path()}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self._command, *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # a Ctrl-C is for the test, which then ends us
                preexec_fn=_end_with_parent,
            )

    def kill(self) -> None:
        """End it at once, without a chance to clean up."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self._end(signal.SIGTERM)

    def log_tail(self, lines: int = 40) -> str:
        """What it said last."""
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(number)
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)  # it says what it is at
            time.sleep(1.0)
            process.kill()
            process.wait()
            told = self.log_tail(lines=400)
            raise ClusterError(f"{self.name} did not end by itself:\n{told}") from None


class Cluster:
    """NameNodes, DataNodes, and what a test has to know of them."""

    def __init__(
        self,
        directory: Path,
        *,
        datanodes: int = 3,
        namenodes: int = 1,
        store: str = "",
        heartbeat_s: float = 0.5,
        stale_after_s: float = 3.0,
        dead_after_s: float = 6.0,
        namenode_options: Sequence[str] = (),
        datanode_options: Sequence[str] = (),
        storage_types: Sequence[str] = (),
    ) -> None:
        """`directory` is made, and removed by `close`; `store` is SQLite in it unless given.

        Each DataNode has a directory for each of the storage types, or one of type DISK.
        """
        if namenodes > 1 and not store.startswith("postgresql:"):
            raise ValueError("several NameNodes need a PostgreSQL that they share")
        self.directory = directory
        self._heartbeat_s = heartbeat_s
        self._datanode_options = datanode_options
        self._storage_types = storage_types
        directory.mkdir(parents=True)
        store = store or f"sqlite://{directory}/namespace.db"
        ports = choose_free_ports(2 * namenodes)
        self.namenodes = [
            Node(
                f"namenode{index}",
                (
                    *("cairnfs.namenode", "--store", store),
                    *("--port", str(port), "--http-port", str(http_port)),
                    *("--datanode-stale-after", str(stale_after_s)),
                    *("--datanode-dead-after", str(dead_after_s)),
                    *namenode_options,
                ),
                directory / f"namenode{index}.log",
                port,
                http_port,
            )
            for index, (port, http_port) in enumerate(zip(ports[::2], ports[1::2], strict=True))
        ]
        self.datanodes: list[Node] = []
        self._datanodes_at_start = datanodes

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Format the namespace and start every node; returns when all of them are at work."""
        self.namenodes[0].start("--format")
        self.wait_for_namenode(self.namenodes[0])
        for namenode in self.namenodes[1:]:
            namenode.start()
        for namenode in self.namenodes[1:]:
            self.wait_for_namenode(namenode)
        for _ in range(self._datanodes_at_start):
            self.add_datanode()
        self.wait_for_datanodes(self._datanodes_at_start)

    def close(self) -> None:
        """End every process, and remove what they have written."""
        failures = []
        for node in (*self.datanodes, *self.namenodes):
            try:
                node.kill()
            except ClusterError as error:
                failures.append(str(error))
        shutil.rmtree(self.directory, ignore_errors=True)
        if failures:
            raise ClusterError("\n".join(failures))

    def add_datanode(self, *options: str) -> Node:
        """Start another DataNode; it is at work a moment later."""
        index = len(self.datanodes)
        port, ipc_port, http_port = choose_free_ports(3)
        place = self.directory / f"datanode{index}"
        data = ",".join(f"[{type}]{place}/{type}" for type in self._storage_types) or str(place)
        node = Node(
            f"datanode{index}",
            (
                *("cairnfs.datanode", "--namenode", ",".join(n.address for n in self.namenodes)),
                *("--data", data),
                *("--port", str(port), "--ipc-port", str(ipc_port), "--http-port", str(http_port)),
                # A host of its own, as far as schedulers are concerned: Spark ignores localhost.
                *("--hostname", f"datanode{index}", "--heartbeat", str(self._heartbeat_s)),
                *self._datanode_options,
                *options,
            ),
            self.directory / f"datanode{index}.log",
            port,
            http_port,
            ipc_port,
        )
        self.datanodes.append(node)
        node.start()
        return node

    # How clients find it.

    @property
    def uri(self) -> str:
        """What Hadoop's clients call this file system."""
        if len(self.namenodes) > 1:
            return f"hdfs://{NAMESERVICE}"
        return f"hdfs://{self.namenodes[0].address}"

    def hadoop_settings(self) -> dict[str, str]:
        """What a client's core-site.xml and hdfs-site.xml have to say."""
        settings = {"fs.defaultFS": self.uri}
        if len(self.namenodes) > 1:
            settings |= {
                "dfs.nameservices": NAMESERVICE,
                f"dfs.ha.namenodes.{NAMESERVICE}": ",".join(n.name for n in self.namenodes),
                f"dfs.client.failover.proxy.provider.{NAMESERVICE}": (
                    "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
                ),
            }
            for namenode in self.namenodes:
                key = f"{NAMESERVICE}.{namenode.name}"
                settings[f"dfs.namenode.rpc-address.{key}"] = namenode.address
                settings[f"dfs.namenode.http-address.{key}"] = namenode.http_address
        return settings

    def write_hadoop_configuration(
        self, directory: Path, more: Mapping[str, str] | None = None
    ) -> Path:
        """A configuration directory for Hadoop's programs."""
        directory.mkdir(parents=True, exist_ok=True)
        properties = "\n".join(
            f"  <property><name>{name}</name><value>{value}</value></property>"
            for name, value in {**self.hadoop_settings(), **(more or {})}.items()
        )
        text = f"<configuration>\n{properties}\n</configuration>\n"
        # In the second too: hdfs-default.xml is read between them, and wins over the first.
        for name in ("core-site.xml", "hdfs-site.xml"):
            (directory / name).write_text(text)
        return directory

    # What the NameNodes say.

    def storage_types_of(self, path: str, *, namenode: int = 0) -> list[Counter[str]]:
        """On what types of storage the replicas of each block of a file are."""
        return [
            Counter(hdfs_pb2.StorageTypeProto.Name(type) for type in block.storageTypes)
            for block in self.located_blocks(path, namenode=namenode)
        ]

    def call(self, method: str, request: Message, answer: type[_M], *, namenode: int = 0) -> _M:
        """Call a NameNode as a client does."""
        node = self.namenodes[namenode]
        caller = RpcCaller(Address(HOST, node.port), CLIENT_PROTOCOL, user_name(), 30.0)
        try:
            response = caller.call(method, request)
        finally:
            caller.close()
        assert isinstance(response, answer)
        return response

    def live_ports(self, *, namenode: int = 0) -> set[int]:
        """The DataNodes that a NameNode believes to be alive, by port."""
        request = pb.GetDatanodeReportRequestProto(type=pb.LIVE)
        response = self.call(
            "getDatanodeReport", request, pb.GetDatanodeReportResponseProto, namenode=namenode
        )
        return {node.id.xferPort for node in response.di}

    def located_blocks(self, path: str, *, namenode: int = 0) -> list[hdfs_pb2.LocatedBlockProto]:
        """The blocks of a file as a reader is told of them."""
        response = self.call(
            "getBlockLocations",
            pb.GetBlockLocationsRequestProto(src=path, offset=0, length=1 << 62),
            pb.GetBlockLocationsResponseProto,
            namenode=namenode,
        )
        return list(response.locations.blocks)

    def replica_places(self, path: str, *, namenode: int = 0) -> list[list[ReplicaPlace]]:
        """Where the replicas of each block of a file are, as a reader is told."""
        return [
            [ReplicaPlace(block.b.blockId, info.id.xferPort) for info in block.locs]
            for block in self.located_blocks(path, namenode=namenode)
        ]

    # Waiting.

    def wait_for_namenode(self, node: Node) -> None:
        """Until it answers calls."""
        index = self.namenodes.index(node)

        def answers() -> bool:
            if not node.is_running:
                raise ClusterError(f"{node.name} has ended:\n{node.log_tail()}")
            self.live_ports(namenode=index)
            return True

        self.wait_until(answers, f"{node.name} answers")

    def wait_for_datanodes(self, count: int) -> None:
        """Until every NameNode that runs has so many that are alive."""

        def all_know() -> bool:
            return all(
                len(self.live_ports(namenode=index)) == count
                for index, namenode in enumerate(self.namenodes)
                if namenode.is_running
            )

        self.wait_until(all_know, f"{count} DataNodes are alive")

    def wait_until(
        self, is_true: Callable[[], bool], what: str, limit_s: float = START_LIMIT_S
    ) -> None:
        """Ask again and again; a NameNode that does not answer is no reason to give up."""
        deadline_s = time.monotonic() + limit_s
        failure: Exception | None = None
        while time.monotonic() < deadline_s:
            try:
                if is_true():
                    return
                failure = None
            except (HdfsError, OSError) as error:
                failure = error
            time.sleep(POLL_INTERVAL_S)
        reason = f" ({failure})" if failure else ""
        raise ClusterError(f"not within {limit_s:.0f} s: {what}{reason}\n{self.log_tails()}")

    # What is on disk.

    def datanode_at(self, port: int) -> Node:
        return next(node for node in self.datanodes if node.port == port)

    def replica_files(self, node: Node) -> dict[int, Path]:
        """The replicas that a DataNode has as files, by block id."""
        directory = self.directory / node.name
        return {
            int(path.name.removeprefix("blk_")): path
            for path in directory.rglob("blk_*")
            if path.name.removeprefix("blk_").isdigit()
        }

    def log_tails(self, lines: int = 40) -> str:
        """What every node said last."""
        return "\n".join(
            f"--- {node.name}\n{node.log_tail(lines)}"
            for node in (*self.namenodes, *self.datanodes)
        )


def _python_path() -> str:
    """Nodes run the code that the test runs."""
    source = str(Path(next(iter(cairnfs.__path__))).parent)
    before = os.environ.get("PYTHONPATH")
    return f"{source}{os.pathsep}{before}" if before else source


def _end_with_parent() -> None:
    """In the child, before it becomes the node: be killed when the parent goes."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
