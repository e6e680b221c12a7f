"""`python -m cairnfs.datanode`: run a DataNode until SIGTERM."""

from __future__ import annotations

import argparse
import logging
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from cairnfs.datanode.node import DataNode, Stopped
from cairnfs.datanode.server import AddressInUse
from cairnfs.datanode.settings import Address, DataNodeSettings
from cairnfs.datanode.storage import StorageLocation
from cairnfs.errors import HdfsError

NAMENODE_PORT = 8020


def parse_arguments(arguments: Sequence[str] | None = None) -> tuple[DataNodeSettings, str]:
    """The settings that the command line asks for, and the level to log at."""
    parser = argparse.ArgumentParser(prog="cairnfs.datanode", description=__doc__)
    add = parser.add_argument
    add("--namenode", required=True, metavar="HOST:PORT[,...]", help="NameNodes to report to")
    add("--data", required=True, metavar="[SSD]/PATH[,...]", help="directories for replicas")
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--hostname", default="", help="name to announce")
    add("--port", type=int, default=9866, help="block transfer")
    add("--ipc-port", type=int, default=9867, help="RPC")
    add("--http-port", type=int, default=9864, help="HTTP, for WebHDFS")
    add("--rack", default="", help="where this DataNode is")
    add("--reserved", type=int, default=0, metavar="BYTES", help="of each volume, left to others")
    add("--failed-volumes-tolerated", type=int, default=0, metavar="COUNT")
    add("--heartbeat", type=float, default=3.0, metavar="SECONDS")
    add("--scan-rate", type=int, default=1 << 20, metavar="BYTES", help="a second; 0 for none")
    add("--log-level", default="INFO")
    chosen = parser.parse_args(arguments)
    try:
        return DataNodeSettings(
            namenodes=tuple(
                Address.parse(each, NAMENODE_PORT) for each in chosen.namenode.split(",")
            ),
            data=StorageLocation.parse_list(chosen.data),
            host=chosen.host,
            hostname=chosen.hostname,
            port=chosen.port,
            ipc_port=chosen.ipc_port,
            http_port=chosen.http_port,
            rack=chosen.rack,
            reserved_bytes=chosen.reserved,
            failed_volumes_tolerated=chosen.failed_volumes_tolerated,
            heartbeat_interval_s=chosen.heartbeat,
            scan_bytes_per_s=chosen.scan_rate,
        ), chosen.log_level
    except ValueError as error:
        parser.error(str(error))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit code says whether it ended as it should."""
    settings, level = parse_arguments(arguments)
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    _raise_file_limit()
    try:
        node = DataNode(settings)
    except (AddressInUse, HdfsError, OSError, ValueError) as error:
        print(f"cairnfs.datanode: {error}", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: node.ask_to_stop())
    try:
        node.start()
    except Stopped:
        return 0
    except (HdfsError, OSError) as error:
        print(f"cairnfs.datanode: {error}", file=sys.stderr)
        return 1
    node.stopped.wait()
    return 0 if node.failure is None else 1


def _raise_file_limit() -> None:
    """A transfer takes up to four files; the usual soft limit is for desktops."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main())
