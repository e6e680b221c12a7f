"""Run a NameNode: `python -m cairnfs.namenode --store sqlite:///path --port 8020 [--format]`."""

from __future__ import annotations

import argparse
import asyncio
import errno
import signal
import socket
import sys

from cairnfs.config import AuditSettings, NameNodeSettings, TrashSettings
from cairnfs.config_file import Config, add_flags, config_of
from cairnfs.errors import HdfsError, SchemaVersionError
from cairnfs.namenode.admin_protocols import ADMIN_SERVICES
from cairnfs.namenode.cairn_protocol import CAIRN_SERVICE
from cairnfs.namenode.client_protocol import CLIENT_SERVICE
from cairnfs.namenode.datanode_protocol import DATANODE_SERVICE, LIFELINE_SERVICE
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import format_namespace
from cairnfs.namenode.server import RpcServer
from cairnfs.observe.logs import set_up_logging, tell_threads_on_sigquit
from cairnfs.options import NAMENODE_SECTIONS
from cairnfs.web.namenode import make_app
from cairnfs.web.server import HttpServer, take_port

SERVICES = (CLIENT_SERVICE, CAIRN_SERVICE, DATANODE_SERVICE, LIFELINE_SERVICE, *ADMIN_SERVICES)


async def serve(settings: NameNodeSettings, config: Config, *, is_new: bool) -> None:
    """Serve until SIGTERM or SIGINT; a new namespace is made when the ports are ours."""
    host = config.text("namenode.host")
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    with (
        _take_port(config, "namenode.port", "port") as rpc_socket,
        _take_port(config, "namenode.http_port", "HTTP port") as http_socket,
    ):
        if is_new:
            await _format(settings.store)
        namenode = await NameNode.start(settings)
        try:
            server = RpcServer(namenode, SERVICES)
            port = await server.start_on(rpc_socket)
            http = HttpServer(make_app(server, host, port, config))
            http_port = await http.start_on(http_socket)
            print(f"NameNode up: hdfs://{host}:{port}", flush=True)
            print(f"WebHDFS: http://{host}:{http_port}/webhdfs/v1/", flush=True)
            await stopping.wait()
            await http.stop()
            await server.stop()
        finally:
            await namenode.stop()


def _take_port(config: Config, key: str, what: str) -> socket.socket:
    option = config[key].option
    try:
        return take_port(config.text("namenode.host"), config.integer(key), what)
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise OSError(error.errno, f"{error.strerror}: choose another {option.flag}") from None
        raise


async def _format(store: str) -> None:
    try:
        await format_namespace(store)
    except FileExistsError as error:
        raise FileExistsError(f"{error}, or leave out --format to use what is there") from None
    except PermissionError as error:
        raise PermissionError(
            f"cannot write to {error.filename} ({error.strerror}): choose another --store"
        ) from None


def settings_of(config: Config, default_store: str = "") -> NameNodeSettings:
    """A NameNode as it is configured; ValueError if that is none."""
    store = config.text("namenode.store") or default_store
    if not store:
        raise ValueError(
            "a NameNode needs a store: --store, CAIRN_NAMENODE_STORE, or `store` in [namenode]"
        )
    return NameNodeSettings(
        store,
        control=config.text("namenode.control"),  # type: ignore[arg-type]  # its name will do
        address=f"{config.text('namenode.host')}:{config.integer('namenode.port')}",
        heartbeat_interval_s=config.number("namenode.heartbeat_interval_s"),
        expiry_s=config.number("namenode.expiry_s"),
        duties=config.is_on("namenode.duties"),
        excluded_hosts_file=config.text("namenode.excluded_hosts_file"),
        copy_always=config.is_on("snapshots.copy_always"),
        safe_mode_threshold=config.number("namenode.safe_mode_threshold"),
        datanode_stale_after_s=config.number("namenode.datanode_stale_after_s"),
        datanode_dead_after_s=config.number("namenode.datanode_dead_after_s"),
        lease_soft_limit_s=config.number("leases.soft_limit_s"),
        lease_hard_limit_s=config.number("leases.hard_limit_s"),
        data_through_namenode=config.is_on("namenode.data_through_namenode"),
        audit=AuditSettings(
            config.text("audit.file"),
            file_bytes_max=config.integer("audit.file_bytes_max"),
            files_max=config.integer("audit.files_max"),
            excluded_commands=config.texts("audit.excluded_commands"),
        ),
        trash=TrashSettings(
            config.number("trash.interval_min"),
            checkpoint_interval_min=config.number("trash.checkpoint_interval_min"),
        ),
    )


def main(
    arguments: list[str] | None = None,
    *,
    program: str = "python -m cairnfs.namenode",
    default_store: str = "",
) -> int:
    """Run; the exit code says whether it ended as it should."""
    parser = argparse.ArgumentParser(
        prog=program, description="Run a NameNode.", allow_abbrev=False
    )
    add_flags(parser, *NAMENODE_SECTIONS)
    parser.add_argument("--format", action="store_true", help="make an empty namespace first")
    given = parser.parse_args(arguments)
    try:
        config = config_of(given)
        settings = settings_of(config, default_store)
        set_up_logging(config.text("logging.level"), config.text("logging.format"))
        tell_threads_on_sigquit()
        asyncio.run(serve(settings, config, is_new=given.format))
    except (HdfsError, OSError, SchemaVersionError, ValueError) as error:
        text = getattr(error, "strerror", None) or error  # without "[Errno 98]"
        file = getattr(error, "filename", None)
        print(f"namenode: {file}: {text}" if file else f"namenode: {text}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
