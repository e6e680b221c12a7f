"""The command line: starting, refusing to start, stopping."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.datanode.namenode import FakeNameNode

from cairnfs.datanode.__main__ import main, parse_arguments
from cairnfs.datanode.storage import StorageType
from cairnfs.network.address import Address


def test_arguments() -> None:
    line = "--namenode nn1:8020,hdfs://nn2/ --data [SSD]/a,/b --port 1 --rack /r"
    settings, _ = parse_arguments(line.split())
    assert settings.namenodes == (Address("nn1", 8020), Address("nn2", 8020))
    assert [each.storage_type for each in settings.data] == [StorageType.SSD, StorageType.DISK]
    assert (settings.port, settings.ipc_port, settings.rack) == (1, 9867, "/r")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--namenode", "nn:x", "--data", "/a"], "not a host and a port"),
        (["--namenode", "nn", "--data", "[TAPE]/a"], "no storage type"),
        (["--namenode", "nn", "--data", ","], "needs a data directory: --data, "),
        (["--data", "/a"], "needs a NameNode: --namenode, "),
    ],
)
def test_bad_arguments(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(arguments)
    assert text in capsys.readouterr().err


def test_a_port_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code = main(["--namenode", "127.0.0.1:1", "--data", str(tmp_path), "--port", port])
    assert code == 1
    error = capsys.readouterr().err
    assert error == (
        f"cairnfs.datanode: block transfer: cannot listen on 127.0.0.1:{port}:"
        " Address already in use\n"
    )


def test_sigterm_ends_it(tmp_path: Path, namenode: FakeNameNode) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "cairnfs.datanode", "--namenode", str(namenode.address)),
            *("--data", str(tmp_path), "--port", "0", "--ipc-port", "0", "--http-port", "0"),
        ]
    )
    try:
        namenode.wait_for(lambda: namenode.reports, limit_s=20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


def test_sigterm_ends_it_while_it_waits_for_a_namenode(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "cairnfs.datanode", "--namenode", "127.0.0.1:1"),
            *("--data", str(tmp_path), "--port", "0", "--ipc-port", "0", "--http-port", "0"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert "waiting for NameNode 127.0.0.1:1" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


def test_sigterm_ends_it_while_it_begins_one_transfer_after_the_other(
    tmp_path: Path, namenode: FakeNameNode
) -> None:
    """The kernel gives a signal to whichever thread makes another one at that moment."""
    over = threading.Event()

    def knock(port: int) -> None:
        while not over.is_set():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                pass

    for _ in range(4):
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "cairnfs.datanode", "--namenode", str(namenode.address)),
                *("--data", str(tmp_path), "--port", "0", "--ipc-port", "0", "--http-port", "0"),
            ]
        )
        try:
            namenode.reports.clear()
            namenode.wait_for(lambda: namenode.reports, limit_s=20)
            port = namenode.registrations[-1].datanodeID.xferPort
            over.clear()
            knocking = [threading.Thread(target=knock, args=(port,)) for _ in range(2)]
            for thread in knocking:
                thread.start()
            time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(15) == 0
        finally:
            over.set()
            process.kill()
            process.wait()
        for thread in knocking:
            thread.join()
