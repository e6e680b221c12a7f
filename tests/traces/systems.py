"""The file systems that traces can be replayed through, made and taken down."""

from __future__ import annotations

import contextlib
import getpass
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tests.scenarios.jvm import Jvm
from tests.traces.adapter import Adapter
from tests.traces.blockless import EmbeddedAdapter, ModelAdapter
from tests.traces.clients import ClientAdapter, RpcAdapter
from tests.traces.java import JavaAdapter

import cairnfs
from cairnfs.config import NameNodeSettings
from cairnfs.datanode.calls import RpcCaller
from cairnfs.datanode.settings import Address
from cairnfs.namenode.embedded import NameNodeThread, make_namespace
from cairnfs.testing.cluster import Cluster
from cairnfs.testing.ports import HOST
from cairnfs.testing.postgres_server import PostgresServer
from cairnfs.wire.protocols import CLIENT_PROTOCOL

STORES = ("sqlite", "postgres")
HEARTBEAT_S = 0.1  # a file that is cut is closed with the next one
CALL_LIMIT_S = 30.0

Opening = Callable[[Path, str], AbstractContextManager[Adapter]]
"""Opens a file system in a directory, on a store; "" is one in the directory."""


@contextlib.contextmanager
def open_adapter(
    through: str, store: str, server: PostgresServer | None = None
) -> Iterator[Adapter]:
    """A new file system; on PostgreSQL in `server`, or one of its own."""
    directory = Path(tempfile.mkdtemp(prefix="cairn-traces-"))
    try:
        with _store_url(store, server) as url, SYSTEMS[through](directory, url) as adapter:
            yield adapter
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _store_url(store: str, server: PostgresServer | None) -> Iterator[str]:
    if store == "sqlite":
        yield ""
    elif server is None:
        with PostgresServer(durable=False) as made:
            yield made.create_database("traces")
    else:
        name = f"traces_{uuid.uuid4().hex}"
        yield server.create_database(name)
        server.drop_database(name)


@contextlib.contextmanager
def _model(directory: Path, url: str) -> Iterator[Adapter]:
    yield ModelAdapter()


@contextlib.contextmanager
def _embedded(directory: Path, url: str) -> Iterator[Adapter]:
    url = url or f"sqlite://{directory}/namespace.db"
    make_namespace(url)
    with NameNodeThread(NameNodeSettings(url)) as namenode:
        yield EmbeddedAdapter(namenode.client())


@contextlib.contextmanager
def _client(directory: Path, url: str) -> Iterator[Adapter]:
    with _cluster(directory, url) as (_, fs):
        yield ClientAdapter(fs)


@contextlib.contextmanager
def _rpc(directory: Path, url: str) -> Iterator[Adapter]:
    with _cluster(directory, url) as (cluster, fs):
        address = Address(HOST, cluster.namenodes[0].port)
        caller = RpcCaller(address, CLIENT_PROTOCOL, getpass.getuser(), CALL_LIMIT_S)
        try:
            yield RpcAdapter(fs, caller)
        finally:
            caller.close()


@contextlib.contextmanager
def _java(directory: Path, url: str) -> Iterator[Adapter]:
    with _cluster(directory, url) as (cluster, fs), Jvm(cluster, directory / "hadoop") as java:
        yield JavaAdapter(java, fs)


@contextlib.contextmanager
def _cluster(directory: Path, url: str) -> Iterator[tuple[Cluster, cairnfs.FileSystem]]:
    with (
        Cluster(directory / "cluster", datanodes=1, store=url, heartbeat_s=HEARTBEAT_S) as cluster,
        cairnfs.connect(cluster.uri) as fs,
    ):
        yield cluster, fs


SYSTEMS: dict[str, Opening] = {
    "client": _client,
    "rpc": _rpc,
    "java": _java,
    "embedded": _embedded,
    "model": _model,
}
