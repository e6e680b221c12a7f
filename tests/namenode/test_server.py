"""The RPC port: many clients, and those that mean no good."""

from __future__ import annotations

import errno
import gc
import logging
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.namenode.rpc import FixedGroups, RpcClient, RunningServer, running_server

from cairnfs.errors import (
    AuthorizationException,
    HdfsError,
    IOException,
    RetriableException,
    RpcNoSuchMethodException,
)
from cairnfs.namenode import server as server_module
from cairnfs.namenode.__main__ import SERVICES
from cairnfs.namenode.groups import UnixGroups
from cairnfs.namenode.server import (
    CALLS_AT_ONCE_MAX,
    CALLS_UNDER_WAY_MAX,
    UNSENT_BYTES_MAX,
    RpcConnection,
    RpcServer,
)
from cairnfs.namenode.service import IncomingCall, Service
from cairnfs.testing.scratch import scratch_namespace
from cairnfs.wire.proto import acl_pb2, administration_pb2, ha_service_pb2
from cairnfs.wire.proto import client_namenode_pb2 as pb
from cairnfs.wire.protocols import (
    CLIENT_PROTOCOL,
    GET_USER_MAPPINGS_PROTOCOL,
    HA_SERVICE_PROTOCOL,
)
from cairnfs.wire.rpc import Call

NOFILE = resource.RLIMIT_NOFILE
STAT_ROOT = pb.GetFileInfoRequestProto(src="/")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    groups = FixedGroups(carol=("supergroup",), alice=("staff",))
    with (
        scratch_namespace(tmp_path) as scratch,
        running_server(scratch, groups, impersonators=("gateway",)) as running,
    ):
        yield running


def test_protocols_share_a_port(server: RunningServer) -> None:
    with server.connect() as client:
        assert client.call("getFileInfo", STAT_ROOT).HasField("fs")
        status = client.call(
            "getServiceStatus", ha_service_pb2.GetServiceStatusRequestProto(), HA_SERVICE_PROTOCOL
        )
        assert status.state == ha_service_pb2.ACTIVE
        groups = client.call(
            "getGroupsForUser",
            administration_pb2.GetGroupsForUserRequestProto(user="alice"),
            GET_USER_MAPPINGS_PROTOCOL,
        )
        assert list(groups.groups) == ["staff"]


def test_calls_of_one_connection_are_answered_together(server: RunningServer) -> None:
    with server.connect() as client:
        ids = [client.send("getFileInfo", STAT_ROOT) for _ in range(50)]
        assert all(client.wait(id).HasField("fs") for id in ids)


def test_a_flood_of_calls_is_answered_bit_by_bit(server: RunningServer) -> None:
    count = 20 * CALLS_UNDER_WAY_MAX
    with server.connect() as client:
        method = CLIENT_PROTOCOL["getFileInfo"]
        flood = b"".join(client.machine.encode_call(n, method, STAT_ROOT) for n in range(count))
        sender = threading.Thread(target=client.socket.sendall, args=(flood,))
        sender.start()
        assert all(client.wait(n).HasField("fs") for n in range(count))
        sender.join()


def test_a_client_that_does_not_read_costs_bounded_memory(server: RunningServer) -> None:
    scratch = server.scratch
    for n in range(500):
        scratch.mkdirs(f"/big/directory-with-a-long-name-{n:04d}")
    request = pb.GetListingRequestProto(src="/big", startAfter=b"", needLocation=False)
    with server.connect() as deaf, server.connect() as other:
        deaf.socket.settimeout(1.0)
        sent = 0
        try:
            while sent < 200_000:
                deaf.send("getListing", request)
                sent += 1
        except TimeoutError:
            pass
        assert sent < 200_000, "the server never stopped reading"
        assert other.call("getFileInfo", STAT_ROOT).HasField("fs")
        (connection,) = [each for each in server.server._connections if not each._client_reads]
        unsent = len(connection._client._unsent)
        reply_bytes_max = 100_000
        assert unsent < UNSENT_BYTES_MAX + (CALLS_UNDER_WAY_MAX + 1) * reply_bytes_max
        deaf.socket.settimeout(20)
        assert len(deaf.wait(0).dirList.partialListing) == 500
        assert len(deaf.wait(3 * CALLS_UNDER_WAY_MAX).dirList.partialListing) == 500


def connections_there_are() -> int:
    """In the whole process; a collector that is switched off still knows of them."""
    return sum(type(each) is RpcConnection for each in gc.get_objects())


def test_a_connection_that_is_lost_leaves_nothing_behind(server: RunningServer) -> None:
    """Not even until the collector comes, which is rarely: a client may have asked for much."""
    scratch = server.scratch
    for n in range(500):
        scratch.mkdirs(f"/big/directory-with-a-long-name-{n:04d}")
    request = pb.GetListingRequestProto(src="/big", startAfter=b"", needLocation=False)
    gc.collect()
    gc.disable()
    before = connections_there_are()
    try:
        with server.connect() as deaf:
            for _ in range(300):
                deaf.send("getListing", request)
            wait_until(lambda: any(not each._client_reads for each in server.server._connections))
            assert connections_there_are() > before
        wait_until(lambda: connections_there_are() <= before)
    finally:
        gc.enable()


@pytest.mark.interpreted
def test_whoever_asks_for_much_at_once_does_not_keep_others_waiting(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have their turn between two parts of what one connection has sent."""
    begun: list[RpcConnection] = []
    begin = RpcConnection._begin

    def note(self: RpcConnection, event: Call) -> None:
        begun.append(self)
        time.sleep(0.001)
        begin(self, event)

    monkeypatch.setattr(RpcConnection, "_begin", note)
    with server.connect() as greedy, server.connect() as other:
        greedy.call("getFileInfo", STAT_ROOT)
        other.call("getFileInfo", STAT_ROOT)
        begun.clear()
        method = CLIENT_PROTOCOL["getFileInfo"]
        flood = b"".join(
            greedy.machine.encode_call(100 + n, method, STAT_ROOT)
            for n in range(10 * CALLS_AT_ONCE_MAX)
        )
        greedy.socket.sendall(flood)
        wait_until(lambda: bool(begun))
        other.call("getFileInfo", STAT_ROOT)
        first = begun[0]
        last = max(n for n, each in enumerate(begun) if each is not first)
        assert last <= 3 * CALLS_AT_ONCE_MAX
        assert greedy.wait(100 + 10 * CALLS_AT_ONCE_MAX - 1).HasField("fs")


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s, "it has never come to that"
        time.sleep(0.005)


def test_a_client_that_sends_nothing_more_is_answered(server: RunningServer) -> None:
    made = pb.MkdirsRequestProto(src="/last", createParent=True)
    made.masked.perm = 0o755
    for count in (1, 20):
        with server.connect() as client:
            ids = [client.send("mkdirs", made) for _ in range(count)]
            client.socket.shutdown(socket.SHUT_WR)
            assert all(client.wait(id).result for id in ids)
            assert client.socket.recv(1) == b""


def test_clients_that_stall_or_send_garbage_disturb_nobody(server: RunningServer) -> None:
    openings = [
        b"",
        b"hrpc",
        b"hrpc\x09\x00\x00",
        b"hrpc\x09\x00\x00" + struct.pack(">I", 1 << 20) + b"x",
        b"hrpc\x09\x00\x00" + struct.pack(">I", 0xFFFFFFFF),
        b"hrpc\x09\x00\x00" + struct.pack(">I", 4) + b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00" * 1000,
    ]
    stalled = [server.connect_socket() for _ in openings]
    for sock, opening in zip(stalled, openings, strict=True):
        sock.sendall(opening)
    with server.connect() as client:
        for _ in range(20):
            assert client.call("getFileInfo", STAT_ROOT).HasField("fs")
    for sock in stalled:
        sock.close()


def test_idle_connections_end_unless_they_have_introduced_themselves(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "IDLE_LIMIT_S", 0.05)
    scratch = server.scratch
    second = RpcServer(scratch.namenode.namenode, SERVICES)
    port = scratch.namenode.wait(second.start("127.0.0.1", 0))
    try:
        with (
            socket.create_connection(("127.0.0.1", port), 10) as stranger,
            RpcClient(port) as known,
        ):
            known.call("getFileInfo", STAT_ROOT)
            with pytest.raises(OSError, match=r"closed|reset|Broken"):
                _trickle(stranger, b"hrpc\x09\x00\x00" + struct.pack(">I", 1000) + bytes(1000))
            time.sleep(0.3)
            assert known.call("getFileInfo", STAT_ROOT).HasField("fs")
    finally:
        scratch.namenode.wait(second.stop())


@pytest.mark.parametrize("has_read", [False, True])
def test_who_does_not_read_for_long_is_ended(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, has_read: bool
) -> None:
    monkeypatch.setattr(server_module, "IDLE_LIMIT_S", 0.02)
    scratch = server.scratch
    for n in range(500):
        scratch.mkdirs(f"/big/directory-with-a-long-name-{n:04d}")
    request = pb.GetListingRequestProto(src="/big", startAfter=b"", needLocation=False)
    second = RpcServer(scratch.namenode.namenode, SERVICES)
    port = scratch.namenode.wait(second.start("127.0.0.1", 0))
    try:
        with RpcClient(port) as deaf:
            ids = [deaf.send("getListing", request) for _ in range(300)]
            wait_until(lambda: any(each._client.has_unsent for each in second._connections))
            if has_read:
                for id in ids:
                    deaf.wait(id)
                time.sleep(0.6)
                assert deaf.call("getFileInfo", STAT_ROOT).HasField("fs")
            else:
                wait_until(lambda: not second._connections)
    finally:
        scratch.namenode.wait(second.stop())


def test_when_descriptors_are_few_the_idle_make_room(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "IDLE_LIMIT_S", 0.05)
    monkeypatch.setattr(server_module, "IDLE_PART_MAX", 2 / resource.getrlimit(NOFILE)[0])
    scratch = server.scratch
    second = RpcServer(scratch.namenode.namenode, SERVICES)
    port = scratch.namenode.wait(second.start("127.0.0.1", 0))
    try:
        with ExitStack() as stack:
            for _ in range(5):
                stack.enter_context(RpcClient(port)).call("getFileInfo", STAT_ROOT)
            wait_until(lambda: second.open_connections <= 2)
    finally:
        scratch.namenode.wait(second.stop())


def _trickle(sock: socket.socket, data: bytes) -> None:
    """Send a byte at a time, so slowly that it never comes to an end."""
    sock.settimeout(0.02)
    for byte in data:
        sock.send(bytes((byte,)))
        try:
            if not sock.recv(1):
                raise ConnectionResetError("closed")
        except TimeoutError:
            pass


def test_an_unexpected_error_is_logged_and_answered(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Service(CLIENT_PROTOCOL)

    @broken.handler
    def msync(call: IncomingCall, request: pb.MsyncRequestProto) -> None:
        raise ZeroDivisionError("a bug")

    scratch = server.scratch
    second = RpcServer(scratch.namenode.namenode, [broken])
    port = scratch.namenode.wait(second.start("127.0.0.1", 0))
    try:
        with RpcClient(port) as client, caplog.at_level(logging.ERROR):
            for _ in range(2):
                with pytest.raises(IOException, match="ZeroDivisionError in msync; see the log"):
                    client.call("msync", pb.MsyncRequestProto())
            with pytest.raises(HdfsError, match="getFileInfo is not offered"):
                client.call("getFileInfo", STAT_ROOT)
        assert "a bug" in caplog.text
    finally:
        scratch.namenode.wait(second.stop())


def test_an_unknown_method_is_refused_and_the_connection_goes_on(server: RunningServer) -> None:
    with server.connect() as client:
        method = CLIENT_PROTOCOL["getFileInfo"]
        header = method.header.replace(b"getFileInfo", b"getFileXnfo")
        data = client.machine.encode_call(0, method, STAT_ROOT)
        client.socket.sendall(data.replace(method.header, header))
        with pytest.raises(RpcNoSuchMethodException):
            client.wait(0)
        client.send("getFileInfo", STAT_ROOT, call_id=1)
        assert client.wait(1).HasField("fs")


def test_who_may_act_for_others(server: RunningServer) -> None:
    make = pb.MkdirsRequestProto(
        src="/home", masked=acl_pb2.FsPermissionProto(perm=0o777), createParent=True
    )
    for real_user in ("hdfs", "carol", "gateway", "alice"):
        with server.connect("alice", real_user) as client:
            client.call("getFileInfo", STAT_ROOT)
    for real_user in ("mallory", "bob"):
        with (
            server.connect("hdfs", real_user) as client,
            pytest.raises(AuthorizationException, match=f"User: {real_user} is not allowed"),
        ):
            client.call("mkdirs", make)


def test_a_port_in_use_is_named(server: RunningServer) -> None:
    second = RpcServer(server.scratch.namenode.namenode, SERVICES)
    with pytest.raises(OSError, match=f"port {server.port} of 127.0.0.1 is in use") as refusal:
        server.scratch.namenode.wait(second.start("127.0.0.1", server.port))
    assert refusal.value.errno == errno.EADDRINUSE


def test_what_is_under_way_is_answered_before_a_stop(tmp_path: Path) -> None:
    make = acl_pb2.FsPermissionProto(perm=0o755)
    with scratch_namespace(tmp_path) as scratch:
        with running_server(scratch) as running:
            client = running.connect()
            client.call("getFileInfo", STAT_ROOT)
            ids = [
                client.send(
                    "mkdirs", pb.MkdirsRequestProto(src=f"/d{n}", masked=make, createParent=True)
                )
                for n in range(20)
            ]
            client.wait(ids[0])
        made = {f"d{n}" for n in range(20)} & set(scratch.names("/"))
        answered = 1
        try:
            for id in ids[1:]:
                client.wait(id)
                answered += 1
        except ConnectionError:
            pass
        assert answered == len(made)
        client.close()


@pytest.mark.interpreted
def test_a_stop_in_the_moment_of_the_last_answer_takes_none_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of one turn of the loop are sent together, at its end."""
    send_reply = RpcConnection.send_reply
    left = 20

    def stop_after_the_last(connection: RpcConnection, reply: bytes) -> None:
        nonlocal left
        left -= 1
        send_reply(connection, reply)
        if not left:
            connection.close_when_answered()

    make = acl_pb2.FsPermissionProto(perm=0o755)
    with scratch_namespace(tmp_path) as scratch, running_server(scratch) as running:
        client = running.connect()
        client.call("getFileInfo", STAT_ROOT)
        monkeypatch.setattr(RpcConnection, "send_reply", stop_after_the_last)
        request = pb.MkdirsRequestProto(src="/d", masked=make, createParent=True)
        for id in [client.send("mkdirs", request) for _ in range(left)]:
            client.wait(id)
        client.close()


def test_a_server_that_stops_leaves_to_another_what_clients_have_sent(tmp_path: Path) -> None:
    """The runner asks the one that was started last, as long as that is there."""
    with scratch_namespace(tmp_path) as scratch, ExitStack() as first, ExitStack() as second:
        runner = scratch.namenode.namenode.runner
        assert runner.receive_waiting is None
        first.enter_context(running_server(scratch))
        one = second.enter_context(running_server(scratch))
        first.close()
        assert runner.receive_waiting is not None
        client = one.connect()
        client.call("getFileInfo", STAT_ROOT)
        client.close()
        second.close()
        assert runner.receive_waiting is None


def test_groups_come_from_the_accounts_of_the_machine() -> None:
    groups = UnixGroups()
    assert groups.of("root")[0] == "root"
    assert groups.of("nobody-has-this-name") == ()
    assert groups.of("a\0b") == ()


def test_nobody_is_without_groups_because_there_was_no_descriptor_left() -> None:
    groups = UnixGroups()
    _, hard = before = resource.getrlimit(NOFILE)
    with ExitStack() as stack:
        highest = stack.enter_context(socket.socket()).fileno()
        resource.setrlimit(NOFILE, (highest + 1, hard))
        try:
            with pytest.raises(RetriableException, match="root cannot be looked up now"):
                groups.of("root")
        finally:
            resource.setrlimit(NOFILE, before)
    assert groups.of("root")[0] == "root"
