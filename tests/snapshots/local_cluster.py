"""A cluster within the process: a NameNode with its port, and DataNodes with disks of their own.

Quicker to start than processes, and its rows and replicas can be looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cairnfs.blocks.records import Block
from cairnfs.config import FormatSettings, NameNodeSettings
from cairnfs.datanode.node import DataNode
from cairnfs.datanode.settings import Address, DataNodeSettings
from cairnfs.datanode.storage import StorageLocation
from cairnfs.namenode.__main__ import SERVICES
from cairnfs.namenode.embedded import ClientProtocol, NameNodeThread, make_namespace
from cairnfs.namenode.opening import sqlite_url
from cairnfs.namenode.server import RpcServer
from cairnfs.store.base import Reading, Scan
from cairnfs.store.schema import Table
from cairnfs.testing.invariants import check_invariants
from cairnfs.transaction.calls import Call, Operation
from cairnfs.transaction.records import decode
from cairnfs.transaction.runner import run

HOST = "127.0.0.1"
WAIT_LIMIT_S = 40.0


class LocalCluster:
    """Nodes that can be stopped and started one by one, or all together."""

    def __init__(self, directory: Path, *, datanodes: int = 3, **settings: Any) -> None:
        self.directory = directory
        url = sqlite_url(directory / "namespace")
        make_namespace(url, FormatSettings())
        options = {
            "duty_interval_s": 0.05,
            "datanode_stale_after_s": 2.0,
            "datanode_dead_after_s": 4.0,
        }
        self._settings = NameNodeSettings(url, **{**options, **settings})
        self.port = 0
        self.datanodes: dict[int, DataNode] = {}
        self.start_namenode()
        for number in range(datanodes):
            self.start_datanode(number)
        self.wait_for_datanodes(datanodes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in list(self.datanodes):
            self.stop_datanode(number)
        self.stop_namenode()

    @property
    def uri(self) -> str:
        return f"hdfs://{HOST}:{self.port}"

    @property
    def calls(self) -> ClientProtocol:
        """The superuser's calls, without a wire."""
        return self._thread.client()

    def write_hadoop_configuration(
        self, directory: Path, more: Mapping[str, str] | None = None
    ) -> Path:
        """As of `Cluster`, for Hadoop's client."""
        directory.mkdir(parents=True, exist_ok=True)
        properties = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in {"fs.defaultFS": self.uri, **(more or {})}.items()
        )
        for name in ("core-site.xml", "hdfs-site.xml"):
            (directory / name).write_text(f"<configuration>{properties}</configuration>")
        return directory

    # Nodes.

    def start_namenode(self) -> None:
        self._thread = NameNodeThread(self._settings)
        self._server = RpcServer(self._thread.namenode, SERVICES)
        self.port = self._thread.wait(self._server.start(HOST, self.port))

    def stop_namenode(self) -> None:
        self._thread.wait(self._server.stop())
        self._thread.stop()

    def start_datanode(self, number: int) -> None:
        settings = DataNodeSettings(
            namenodes=(Address(HOST, self.port),),
            data=tuple(StorageLocation.parse_list(str(self.disk_of(number)))),
            port=0,
            ipc_port=0,
            http_port=0,
            heartbeat_interval_s=0.1,
            scan_bytes_per_s=0,
            user=self._thread.namenode.superuser,
        )
        node = DataNode(settings)
        node.start()
        self.datanodes[number] = node

    def stop_datanode(self, number: int) -> None:
        self.datanodes.pop(number).stop()

    def restart(self) -> None:
        """End all nodes, and start them again."""
        numbers = list(self.datanodes)
        for number in numbers:
            self.stop_datanode(number)
        self.stop_namenode()
        self.start_namenode()  # where clients expect it
        for number in numbers:
            self.start_datanode(number)
        self.wait_for_datanodes(len(numbers))
        namenode = self._thread.namenode
        self.wait_until(lambda: not namenode.safe_mode.is_on, "safe mode is over")

    def disk_of(self, number: int) -> Path:
        return self.directory / f"datanode{number}"

    # What there is.

    def lengths_on(self, number: int) -> dict[int, int]:
        """How long each finished replica of a DataNode is."""
        lengths = {}
        for path in self.disk_of(number).rglob("finalized/**/blk_*"):
            id = path.name.removeprefix("blk_")
            if id.isdigit():
                with suppress(FileNotFoundError):  # it is deleted in this very moment
                    lengths[int(id)] = path.stat().st_size
        return lengths

    def lengths(self) -> dict[int, list[int]]:
        """How long the replicas of each block are."""
        found: dict[int, list[int]] = {}
        for number in self.datanodes:
            for id, length in self.lengths_on(number).items():
                found.setdefault(id, []).append(length)
        return found

    def known_blocks(self) -> set[int]:
        """Those of which the NameNode knows a replica: not a copy that was made in vain."""
        return {
            replica.block_id
            for datanode in self.rows(Table.DATANODES, 0)
            for storage in datanode.storages
            for replica in self.rows(Table.REPLICAS, storage.number)
        }

    def rows(self, table: Table, a: int) -> list[Any]:
        scan = Scan(table, a, b"", 10_000)
        rows = self._thread.wait(self._thread.namenode.store.read(Reading(scans=[scan])))
        return [decode(table, row.data) for row in rows.scans[scan]]

    def blocks_of(self, path: str) -> list[Block]:
        """The rows of a file's blocks."""
        status = self.calls.get_file_info(path)
        assert status is not None
        return self.rows(Table.BLOCKS, status.id)

    def run(self, operation: Operation[Any], *arguments: Any) -> Any:
        """Run a transaction that no client can ask for."""
        runner = self._thread.namenode.runner
        return self._thread.wait(run(runner, Call(operation, arguments)))

    def reclaim(self) -> None:
        self._thread.wait(self._thread.namenode.duties.reclaim_everything())

    def check(self) -> None:
        self._thread.wait(check_invariants(self._thread.namenode.store))

    # Waiting.

    def wait_until(self, is_true: Callable[[], bool], what: str) -> None:
        end_s = time.monotonic() + WAIT_LIMIT_S
        while not is_true():
            assert time.monotonic() < end_s, (
                f"not within {WAIT_LIMIT_S} s: {what}; on disks is {self.lengths()}"
            )
            time.sleep(0.02)

    def wait_for_datanodes(self, count: int) -> None:
        datanodes = self._thread.namenode.datanodes

        def is_so() -> bool:
            alive = [node for node in datanodes if datanodes.is_alive(node) and node.reported]
            return len(alive) == count

        self.wait_until(is_so, f"{count} DataNodes are alive")

    def wait_for_equal_replicas(self, count: int) -> dict[int, int]:
        """Until so many replicas of each block are on disks, all alike; how long they are."""
        lengths: dict[int, list[int]] = {}

        def are_alike() -> bool:
            nonlocal lengths
            lengths = self.lengths()
            return set(lengths) == self.known_blocks() and all(
                len(each) == count and len(set(each)) == 1 for each in lengths.values()
            )

        self.wait_until(are_alike, f"{count} replicas of each block are alike")
        return {id: each[0] for id, each in lengths.items()}

    def wait_for_replicas(self, expected: dict[int, list[int]]) -> None:
        """Until there are just these replicas on disks, by block, so long."""

        def is_so() -> bool:
            return {id: sorted(each) for id, each in self.lengths().items()} == expected

        self.wait_until(is_so, f"the replicas are {expected}")
