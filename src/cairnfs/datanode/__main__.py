"""`python -m cairnfs.datanode`: run a DataNode until SIGTERM."""

from __future__ import annotations

import argparse
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from cairnfs.config_file import Config, add_flags, config_of
from cairnfs.datanode.node import DataNode, Stopped
from cairnfs.datanode.server import AddressInUse
from cairnfs.datanode.settings import DataNodeSettings
from cairnfs.datanode.storage import StorageLocation
from cairnfs.errors import HdfsError
from cairnfs.network.address import Address
from cairnfs.observe.logs import set_up_logging, tell_threads_on_sigquit
from cairnfs.options import DATANODE_SECTIONS

PROGRAM = "python -m cairnfs.datanode"
NAMENODE_PORT = 8020
SIGNALS_LOOKED_FOR_S = 0.5


def parse_arguments(
    arguments: Sequence[str] | None = None, program: str = PROGRAM
) -> tuple[DataNodeSettings, Config]:
    """The settings that command line, environment and file ask for, and all of these."""
    parser = argparse.ArgumentParser(
        prog=program, description="Run a DataNode until SIGTERM.", allow_abbrev=False
    )
    add_flags(parser, *DATANODE_SECTIONS)
    given = parser.parse_args(arguments)
    try:
        config = config_of(given)
        return settings_of(config), config
    except ValueError as error:
        parser.error(str(error))


def settings_of(config: Config) -> DataNodeSettings:
    """A DataNode as it is configured; ValueError if that is none."""
    for key, what in ("datanode.namenodes", "NameNode"), ("datanode.data", "data directory"):
        if not config.texts(key):
            option = config[key].option
            raise ValueError(
                f"a DataNode needs a {what}: {option.flag}, {option.variable}, or"
                f" `{option.name}` in [datanode]"
            )
    return DataNodeSettings(
        namenodes=tuple(map(_parse_namenode, config.texts("datanode.namenodes"))),
        data=tuple(map(StorageLocation.parse, config.texts("datanode.data"))),
        host=config.text("datanode.host"),
        hostname=config.text("datanode.hostname"),
        port=config.integer("datanode.port"),
        ipc_port=config.integer("datanode.ipc_port"),
        http_port=config.integer("datanode.http_port"),
        rack=config.text("datanode.rack"),
        reserved_bytes=config.integer("datanode.reserved_bytes"),
        capacity_bytes=config.integer("datanode.capacity_bytes"),
        failed_volumes_tolerated=config.integer("datanode.failed_volumes_tolerated"),
        heartbeat_interval_s=config.number("datanode.heartbeat_interval_s"),
        block_report_interval_s=config.number("datanode.block_report_interval_s"),
        scan_bytes_per_s=config.integer("datanode.scan_bytes_per_s"),
        sync_on_close=config.is_on("datanode.sync_on_close"),
        move_bytes_per_s=config.integer("datanode.move_bytes_per_s"),
        moves_max=config.integer("datanode.moves_max"),
        lazy_persist_interval_s=config.number("datanode.lazy_persist_interval_s"),
    )


def _parse_namenode(text: str) -> Address:
    """An address, with or without `hdfs://` and what may follow."""
    return Address.parse(text.strip().removeprefix("hdfs://").rstrip("/"), NAMENODE_PORT)


def main(arguments: Sequence[str] | None = None, *, program: str = PROGRAM) -> int:
    """Run; the exit code says whether it ended as it should."""
    settings, config = parse_arguments(arguments, program)
    set_up_logging(config.text("logging.level"), config.text("logging.format"))
    tell_threads_on_sigquit()
    _raise_file_limit()
    try:
        node = DataNode(settings, config)
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
    # Not without end: a signal may be given to a thread that is just making another one, and
    # then nothing wakes this one, which alone runs what is to be done about it.
    while not node.stopped.wait(SIGNALS_LOOKED_FOR_S):
        pass
    return 0 if node.failure is None else 1


def _raise_file_limit() -> None:
    """A transfer takes up to four files; the usual soft limit is for desktops."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main())
