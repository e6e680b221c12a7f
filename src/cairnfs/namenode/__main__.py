"""Run a NameNode: `python -m cairnfs.namenode --store sqlite:///path --port 8020 [--format]`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys

from cairnfs.config import NameNodeSettings
from cairnfs.errors import HdfsError, SchemaVersionError
from cairnfs.namenode.admin_protocols import ADMIN_SERVICES
from cairnfs.namenode.client_protocol import CLIENT_SERVICE
from cairnfs.namenode.datanode_protocol import DATANODE_SERVICE, LIFELINE_SERVICE
from cairnfs.namenode.datanodes import DEAD_AFTER_S, STALE_AFTER_S
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import format_namespace
from cairnfs.namenode.server import RpcServer
from cairnfs.namesystem.leases import HARD_LIMIT_MS, SOFT_LIMIT_MS

RPC_PORT = 8020
SERVICES = (CLIENT_SERVICE, DATANODE_SERVICE, LIFELINE_SERVICE, *ADMIN_SERVICES)


async def serve(settings: NameNodeSettings, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    namenode = await NameNode.start(settings)
    try:
        server = RpcServer(namenode, SERVICES)
        port = await server.start(host, port)
        print(f"NameNode up: hdfs://{host}:{port}", flush=True)
        await stopping.wait()
        await server.stop()
    finally:
        await namenode.stop()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="cairnfs.namenode", description="Run a NameNode.")
    parser.add_argument("--store", required=True, help="sqlite:///path or postgresql://...")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=RPC_PORT)
    parser.add_argument("--format", action="store_true", help="make an empty namespace first")
    parser.add_argument(
        "--datanode-stale-after",
        type=float,
        default=STALE_AFTER_S,
        metavar="SECONDS",
        help="a DataNode that was not heard of for so long is avoided",
    )
    parser.add_argument(
        "--datanode-dead-after",
        type=float,
        default=DEAD_AFTER_S,
        metavar="SECONDS",
        help="and after so long, its replicas are made anew elsewhere",
    )
    parser.add_argument(
        "--lease-soft-limit",
        type=float,
        default=SOFT_LIMIT_MS / 1000,
        metavar="SECONDS",
        help="a writer that was not heard of for so long may lose its file to another",
    )
    parser.add_argument(
        "--lease-hard-limit",
        type=float,
        default=HARD_LIMIT_MS / 1000,
        metavar="SECONDS",
        help="and after so long, its file is closed",
    )
    given = parser.parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        settings = NameNodeSettings(
            given.store,
            address=f"{given.host}:{given.port}",
            datanode_stale_after_s=given.datanode_stale_after,
            datanode_dead_after_s=given.datanode_dead_after,
            lease_soft_limit_s=given.lease_soft_limit,
            lease_hard_limit_s=given.lease_hard_limit,
        )
        if given.format:
            asyncio.run(format_namespace(given.store))
        asyncio.run(serve(settings, given.host, given.port))
    except (HdfsError, OSError, SchemaVersionError, ValueError) as error:
        text = getattr(error, "strerror", None) or error  # without "[Errno 98]"
        print(f"namenode: {text}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
