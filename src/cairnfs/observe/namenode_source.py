"""A NameNode as `routes` shows it."""

from __future__ import annotations

from cairnfs.config_file import Config
from cairnfs.namenode.client_cluster import BLOCK_SIZE_BYTES, REPLICATION
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.server import RpcServer
from cairnfs.observe.conf import Property, properties_of
from cairnfs.observe.jmx import Bean
from cairnfs.observe.namenode_beans import namenode_beans
from cairnfs.observe.namenode_facts import NameNodeObserver
from cairnfs.observe.namenode_metrics import namenode_families
from cairnfs.observe.prometheus import Family


class NameNodeSource:
    """Asked in the NameNode's event loop; `port` is that of RPC."""

    def __init__(self, namenode: NameNode, server: RpcServer, port: int, config: Config) -> None:
        self._namenode = namenode
        self._port = port
        self._config = config
        self._observer = NameNodeObserver(namenode, server)

    async def families(self) -> list[Family]:
        return namenode_families(self._namenode, await self._observer.gather())

    async def beans(self) -> list[Bean]:
        return namenode_beans(self._namenode, await self._observer.gather(), self._port)

    def properties(self) -> list[Property]:
        known = {
            "fs.defaultFS": f"hdfs://{self._namenode.settings.address}",
            "dfs.blocksize": str(BLOCK_SIZE_BYTES),
            "dfs.replication": str(REPLICATION),
        }
        return properties_of(self._config, known)
