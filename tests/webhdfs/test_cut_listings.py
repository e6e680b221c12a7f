"""Listings that cannot be finished: they must not look as if they were whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from google.protobuf.message import Message
from tests.observe.servers import ServedNameNode, served_namenode
from tests.webhdfs.raw import exchange, status_of

from cairnfs.web.server import HttpServer
from cairnfs.webhdfs import looking
from cairnfs.webhdfs import namenode as webhdfs
from cairnfs.webhdfs.calls import WebCall
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.proto.acl_pb2 import FsPermissionProto

CHANGES: dict[str, Message] = {
    "delete": pb.DeleteRequestProto(src="/user/many", recursive=True),
    "rename": pb.RenameRequestProto(src="/user/many", dst="/user/other"),
    "setPermission": pb.SetPermissionRequestProto(
        src="/user/many", permission=FsPermissionProto(perm=0)
    ),
}


@contextmanager
def served(namenode: ServedNameNode) -> Iterator[str]:
    """Its WebHDFS, by its address."""

    async def start() -> tuple[HttpServer, int]:
        app = web.Application()
        webhdfs.add_routes(app, namenode.server, f"127.0.0.1:{namenode.port}")
        http = HttpServer(app)
        return http, await http.start("127.0.0.1", 0)

    http, port = namenode.thread.wait(start())
    try:
        yield f"127.0.0.1:{port}"
    finally:
        namenode.thread.wait(http.stop())


@pytest.mark.parametrize("change", CHANGES)
def test_a_directory_that_goes_between_two_pages_is_no_whole_listing(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_page = looking._get_page

    async def change_first(call: WebCall, path: str, start_after: bytes = b"") -> Any:
        if start_after:
            await call.rpc(change, CHANGES[change])
        return await get_page(call, path, start_after)

    monkeypatch.setattr(looking, "_get_page", change_first)
    with served_namenode(tmp_path) as namenode, served(namenode) as address:
        client = namenode.thread.client()
        client.mkdirs("/user", 0o777)
        client.set_permission("/user", 0o777)
        owner = namenode.thread.client("alice")
        for number in range(1001):
            owner.mkdirs(f"/user/many/{number}")
        target = "/webhdfs/v1/user/many?op=LISTSTATUS&user.name=alice"
        received = exchange(address, f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert status_of(received) in (0, 200)  # the connection's end may overtake what was sent
        assert received.count(b"HTTP/1.1 ") <= 1
        assert not received.endswith(b"0\r\n\r\n")


def test_without_homes_there_is_no_trash(tmp_path: Path) -> None:
    with served_namenode(tmp_path) as namenode, served(namenode) as address:
        target = "/webhdfs/v1/?op=GETTRASHROOTS&allusers=true&user.name=alice"
        received = exchange(address, f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert status_of(received) == 200
        assert received.endswith(b'{"Paths":null}')
