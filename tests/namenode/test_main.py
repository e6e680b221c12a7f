"""`python -m cairnfs.namenode`: a NameNode from the command line."""

from __future__ import annotations

import errno
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.namenode.rpc import RpcClient

from cairnfs.namenode.__main__ import main
from cairnfs.wire.proto import client_namenode_pb2 as pb

TIMEOUT_S = 30


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cairnfs.namenode", "--http-port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    process = start("--store", f"sqlite://{tmp_path}/namespace", "--port", "0", "--format")
    assert process.stdout is not None
    port = int(process.stdout.readline().rpartition(":")[2])
    with RpcClient(port) as client, RpcClient(port) as deaf:
        assert client.call("getFileInfo", pb.GetFileInfoRequestProto(src="/")).HasField("fs")
        deaf.send("getFileInfo", pb.GetFileInfoRequestProto(src="/"))
        process.send_signal(number)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    assert errors == ""


def test_a_port_in_use_is_a_clear_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        process = start("--store", f"sqlite://{tmp_path}/ns", "--port", str(port), "--format")
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert errors == f"namenode: port {port} of 127.0.0.1 is in use: choose another --port\n"
    assert not (tmp_path / "ns").exists()  # the next try may format


def test_a_store_that_may_not_be_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an ordinary user below /root; root itself may, so that it is made up here."""
    file = str(tmp_path / "ns")

    async def refuse(store: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", file)

    monkeypatch.setattr("cairnfs.namenode.__main__.format_namespace", refuse)
    arguments = ["--store", f"sqlite://{file}", "--port", "0", "--http-port", "0", "--format"]
    assert main(arguments) == 1
    assert capsys.readouterr().err == (
        f"namenode: cannot write to {file} (Permission denied): choose another --store\n"
    )


def test_a_namespace_is_not_formatted_twice(tmp_path: Path) -> None:
    (tmp_path / "ns").touch()
    process = start("--store", f"sqlite://{tmp_path}/ns", "--port", "0", "--format")
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert f"{tmp_path}/ns exists already" in errors
    assert "leave out --format to use what is there" in errors


@pytest.mark.parametrize(
    ("store", "complaint"),
    [
        ("sqlite:///missing/namespace", "does not exist; format it first"),
        ("file:///somewhere", "is not a store"),
    ],
)
def test_a_store_that_cannot_be_opened_is_a_clear_error(store: str, complaint: str) -> None:
    process = start("--store", store, "--port", "0")
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert complaint in errors
    assert errors.count("\n") == 1
