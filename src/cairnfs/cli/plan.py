"""Which nodes a local cluster has, and on which ports: `cluster.json` in its directory.

Ports are Hadoop's where nobody else has them, and stay the same from then on, since the
addresses of files contain them, unless others are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cairnfs.cli.errors import CommandError
from cairnfs.cli.home import not_ours
from cairnfs.cli.ports import HOST, PORT_MAX, choose_port, is_free

RPC_PORT = 8020
NAMENODE_HTTP_PORT = 9870
TRANSFER_PORT, IPC_PORT, HTTP_PORT = 9866, 9867, 9864
DATANODE_STEP = 10  # between the ports of one DataNode and those of the next
DATANODES_MAX = 100
_RESERVED = {9868, 9869, 9871}  # Hadoop's, of the NameNodes' other web pages


class NameNodePlan(msgspec.Struct, frozen=True):
    """The NameNode."""

    port: int
    http_port: int = NAMENODE_HTTP_PORT  # clusters that were made before have none


class DataNodePlan(msgspec.Struct, frozen=True):
    """One DataNode."""

    port: int  # block transfer
    ipc_port: int
    http_port: int


class Plan(msgspec.Struct, frozen=True):
    """A cluster as it was made."""

    namenode: NameNodePlan
    datanodes: tuple[DataNodePlan, ...]
    base_port: int | None = None  # that was asked for

    @property
    def uri(self) -> str:
        """What clients call the file system."""
        return f"hdfs://{HOST}:{self.namenode.port}"

    @classmethod
    def read(cls, path: Path) -> Plan | None:
        """The plan in a file; None if there is none yet."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError as error:
            raise not_ours("read", path, error) from None
        except msgspec.MsgspecError as error:
            raise CommandError(
                f"{path} cannot be read ({error}): repair it, or remove it to have the ports"
                " chosen anew; the data is not touched"
            ) from None

    def write(self, path: Path) -> None:
        """Replace the file, whole or not at all."""
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self)) + b"\n")
        temporary.replace(path)


class Planner:
    """Chooses ports, and remembers what to tell about them.

    With `base_port`, all are the first that are free from there on; else they are Hadoop's,
    or the next after them.
    """

    def __init__(self, base_port: int | None = None) -> None:
        if base_port is not None:
            check_port(base_port)
        self.notes: list[str] = []
        self._base_port = base_port
        self._taken: set[int] = set(_RESERVED)

    def plan(self, datanodes: int, port: int | None = None) -> Plan:
        """A cluster that is not there yet."""
        namenode = NameNodePlan(
            self._namenode_port(port), self._choose("the NameNode", NAMENODE_HTTP_PORT)
        )
        return Plan(namenode, tuple(map(self._plan_datanode, range(datanodes))), self._base_port)

    def revise(
        self, plan: Plan, datanodes: int, port: int | None, running: Collection[str]
    ) -> Plan:
        """A cluster that is there: nodes are added, and move where others took their ports.

        All move if another `base_port` is asked for.
        """
        namenode = plan.namenode
        if self._base_port not in (None, plan.base_port):
            if port == namenode.port and "namenode" in running:
                return replace(self.plan(datanodes), namenode=namenode)
            return self.plan(datanodes, port)
        self._taken |= set(_ports_of(plan))
        if "namenode" not in running or port not in (None, namenode.port):
            rpc_port = (
                self._keep("the NameNode", namenode.port)
                if port is None
                else self._namenode_port(port)
            )
            http_port = namenode.http_port
            if "namenode" not in running:
                http_port = self._keep("the NameNode", http_port)
            namenode = NameNodePlan(rpc_port, http_port)
        revised = []
        for index, each in enumerate(plan.datanodes):
            name = datanode_name(index)
            revised.append(each if name in running else self._keep_datanode(name, each))
        added = map(self._plan_datanode, range(len(plan.datanodes), datanodes))
        return Plan(namenode, (*revised, *added), plan.base_port)

    def _namenode_port(self, port: int | None) -> int:
        if port is None:
            return self._choose("the NameNode", RPC_PORT)
        check_port(port)
        if not is_free(port):
            raise CommandError(
                f"port {port} is in use by another program; end it, choose another --port, or"
                " leave that out to get a free one"
            )
        self._taken.add(port)
        return port

    def _plan_datanode(self, index: int) -> DataNodePlan:
        name, offset = datanode_name(index), DATANODE_STEP * index
        return DataNodePlan(
            *(self._choose(name, port + offset) for port in (TRANSFER_PORT, IPC_PORT, HTTP_PORT))
        )

    def _keep_datanode(self, name: str, plan: DataNodePlan) -> DataNodePlan:
        return DataNodePlan(
            *(self._keep(name, port) for port in (plan.port, plan.ipc_port, plan.http_port))
        )

    def _choose(self, name: str, wanted: int) -> int:
        port = choose_port(self._base_port or wanted, self._taken)
        if port != wanted and self._base_port is None:
            self.notes.append(f"port {wanted} is in use: {name} takes {port}")
        self._taken.add(port)
        return port

    def _keep(self, name: str, port: int) -> int:
        if is_free(port):
            return port
        other = choose_port(port + 1, self._taken)
        self.notes.append(f"port {port} is in use by another program: {name} moves to {other}")
        self._taken.add(other)
        return other


def datanode_name(index: int) -> str:
    return f"datanode-{index + 1}"


def check_port(port: int) -> None:
    if not 0 < port <= PORT_MAX:
        raise CommandError(f"{port} is not a port: they go from 1 to {PORT_MAX}")


def _ports_of(plan: Plan) -> Iterator[int]:
    yield from (plan.namenode.port, plan.namenode.http_port)
    for datanode in plan.datanodes:
        yield from (datanode.port, datanode.ipc_port, datanode.http_port)
