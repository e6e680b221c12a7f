"""A NameNode with its RPC port, a DataNode and its pages, all in this process."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families
from tests.namenode.rpc import RpcClient

from cairnfs.config import AuditSettings, FormatSettings, NameNodeSettings
from cairnfs.config_file import Config, load_config
from cairnfs.datanode.node import DataNode
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.datanode.storage import StorageLocation
from cairnfs.namenode.__main__ import SERVICES
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namenode.opening import format_namespace, sqlite_url
from cairnfs.namenode.server import RpcServer
from cairnfs.network.address import Address
from cairnfs.observe.datanode_source import DataNodeSource
from cairnfs.observe.namenode_source import NameNodeSource
from cairnfs.observe.routes import Source, add_routes

SUPERUSER = "hdfs"


class ServedNameNode:
    """A NameNode that answers RPC and HTTP."""

    def __init__(self, thread: NameNodeThread, server: RpcServer, port: int) -> None:
        self.thread = thread
        self.server = server
        self.port = port

    def connect(self, user: str = SUPERUSER, real_user: str | None = None) -> RpcClient:
        return RpcClient(self.port, user, real_user)

    def flush_audit(self) -> None:
        audit = self.thread.namenode.audit
        assert audit is not None
        audit.close()


@contextmanager
def served_namenode(
    directory: Path, url: str | None = None, **settings: Any
) -> Iterator[ServedNameNode]:
    """A new namespace, there or in the directory, in which its audit log is `audit.log`."""
    url = url or sqlite_url(directory / "namespace")
    asyncio.run(format_namespace(url, FormatSettings(SUPERUSER)))
    settings.setdefault("audit", AuditSettings(str(directory / "audit.log")))
    with NameNodeThread(NameNodeSettings(url, **settings)) as thread:
        server = RpcServer(thread.namenode, SERVICES)
        port = thread.wait(server.start("127.0.0.1", 0))
        try:
            yield ServedNameNode(thread, server, port)
        finally:
            thread.wait(server.stop())


@contextmanager
def running_datanode(directory: Path, namenode_port: int, **settings: Any) -> Iterator[DataNode]:
    node = DataNode(
        DataNodeSettings(
            namenodes=(Address("127.0.0.1", namenode_port),),
            data=(StorageLocation(directory),),
            port=0,
            ipc_port=0,
            http_port=0,
            heartbeat_interval_s=0.2,
            **settings,
        )
    )
    node.start()
    try:
        yield node
    finally:
        node.stop()


class Pages:
    """What a node tells over HTTP."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, accept: str = "*/*") -> tuple[int, str, str]:
        """Status, type and text."""
        request = urllib.request.Request(self._url + path, headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                kind = response.headers["Content-Type"]
                return response.status, kind, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read().decode()

    def samples(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """All samples of /metrics, by name and labels; each is there once."""
        status, kind, text = self.get("/metrics")
        assert status == 200
        assert kind.startswith("text/plain; version=0.0.4")
        found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in found
                found[key] = sample.value
        return found

    def sample(self, name: str, **labels: str) -> float:
        return self.samples()[name, frozenset(labels.items())]

    def beans(self, query: str = "") -> dict[str, dict[str, Any]]:
        status, kind, text = self.get(f"/jmx{query}")
        assert status == 200, text
        assert kind.startswith("application/json")
        return {bean["name"]: bean for bean in json.loads(text)["beans"]}


@contextmanager
def served_pages(thread: NameNodeThread, source: Source) -> Iterator[Pages]:
    """Serve the pages of a node, in the event loop of a NameNode."""

    async def start() -> tuple[web.AppRunner, int]:
        app = web.Application()
        add_routes(app, source)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, runner.addresses[0][1]

    runner, port = thread.wait(start())
    try:
        yield Pages(f"http://127.0.0.1:{port}")
    finally:
        thread.wait(runner.cleanup())


@contextmanager
def observed_cluster(
    directory: Path, config: Config | None = None
) -> Iterator[tuple[ServedNameNode, DataNode, Pages, Pages]]:
    """A NameNode, a DataNode, and the pages of each."""
    config = config or load_config(environment={})
    with ExitStack() as stack:
        namenode = stack.enter_context(served_namenode(directory))
        datanode = stack.enter_context(running_datanode(directory / "data", namenode.port))
        source = NameNodeSource(namenode.thread.namenode, namenode.server, 8020, config)
        pages = stack.enter_context(served_pages(namenode.thread, source))
        datanode_source = DataNodeSource(datanode, config)
        datanode_pages = stack.enter_context(served_pages(namenode.thread, datanode_source))
        yield namenode, datanode, pages, datanode_pages
