"""The HTTP ports of nodes: taken at the start, given back at the end."""

from __future__ import annotations

import getpass
import json
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.scenarios.hadoop import FsShell
from tests.webhdfs.exchange import BIG, follow, send
from tests.webhdfs.raw import connect

from cairnfs.cli.main import main
from cairnfs.cli.plan import Plan
from cairnfs.datanode.__main__ import main as run_datanode
from cairnfs.namenode.__main__ import main as run_namenode
from cairnfs.testing.cluster import Cluster
from cairnfs.testing.ports import choose_free_ports

USER = f"user.name={getpass.getuser()}"


def test_a_port_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        store = f"sqlite://{tmp_path}/namespace"
        options = ("--store", store, "--port", "0", "--http-port", port, "--format")
        assert run_namenode(list(options)) == 1
        assert capsys.readouterr().err == (
            f"namenode: HTTP port {port} of 127.0.0.1 is in use: choose another --http-port\n"
        )
        ports = ("--port", "0", "--ipc-port", "0", "--http-port", port)
        assert run_datanode(["--namenode", "127.0.0.1:1", "--data", str(tmp_path), *ports]) == 1
    assert capsys.readouterr().err == (
        f"cairnfs.datanode: HTTP: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    )


@pytest.mark.parametrize("through_namenode", [False, True])
def test_a_node_that_ends_leaves_no_half_files(tmp_path: Path, through_namenode: bool) -> None:
    with Cluster(
        tmp_path / "cluster",
        datanodes=2,
        datanode_options=("--hostname", "127.0.0.1"),
        namenode_options=["--data-through-namenode"] if through_namenode else [],
    ) as cluster:
        namenode = cluster.namenodes[0]
        asked = send(namenode.http_address, "PUT", f"/webhdfs/v1/f?op=CREATE&{USER}")
        url = urlsplit(asked.location)
        node = next(
            node
            for node in (*cluster.namenodes, *cluster.datanodes)
            if node.http_address == url.netloc
        )
        assert (node is namenode) == through_namenode
        head = f"PUT {url.path}?{url.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
        status = f"/webhdfs/v1/f?op=GETFILESTATUS&{USER}"

        def is_there() -> bool:
            return send(namenode.http_address, "GET", status).status == 200

        with connect(url.netloc) as sock:
            sock.sendall(head.encode() + b"half")
            cluster.wait_until(is_there, "it has begun", 10)
            began_s = time.monotonic()
            node.stop()
            assert time.monotonic() - began_s < 12
        node.start()
        cluster.wait_for_namenode(namenode)
        assert not is_there()


def test_nodes_end_though_clients_are_connected(tmp_path: Path) -> None:
    with Cluster(
        tmp_path / "cluster", datanodes=1, datanode_options=("--hostname", "127.0.0.1")
    ) as cluster:
        namenode, datanode = cluster.namenodes[0], cluster.datanodes[0]
        answers = follow(
            namenode.http_address, "PUT", f"/webhdfs/v1/f?op=CREATE&replication=1&{USER}", BIG
        )
        assert answers[-1].status == 201
        with connect(namenode.http_address), connect(datanode.http_address) as reader:
            reader.sendall(f"GET /webhdfs/v1/f?op=OPEN&{USER} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert reader.recv(12) == b"HTTP/1.1 200"
            began_s = time.monotonic()
            datanode.stop()
            namenode.stop()
            assert time.monotonic() - began_s < 15
        for node in (namenode, datanode):
            assert "Traceback" not in node.log_tail(1000)
            node.start()  # on the same ports
        cluster.wait_for_namenode(namenode)
        answer = send(namenode.http_address, "GET", f"/webhdfs/v1/f?op=GETFILESTATUS&{USER}")
        assert json.loads(answer.body)["FileStatus"]["length"] == len(BIG)


@pytest.mark.java
def test_every_namenode_has_it(tmp_path: Path, postgres_dsn: str) -> None:
    with Cluster(
        tmp_path / "cluster",
        namenodes=2,
        store=postgres_dsn,
        datanode_options=("--hostname", "127.0.0.1"),
    ) as cluster:
        first, second = (namenode.http_address for namenode in cluster.namenodes)
        assert follow(first, "PUT", f"/webhdfs/v1/f?op=CREATE&{USER}", BIG)[-1].status == 201
        assert follow(second, "GET", f"/webhdfs/v1/f?op=OPEN&{USER}")[-1].body == BIG
        cluster.namenodes[0].kill()  # the first that DataNodes would ask
        assert follow(second, "PUT", f"/webhdfs/v1/g?op=CREATE&{USER}", BIG)[-1].status == 201
        assert follow(second, "GET", f"/webhdfs/v1/g?op=OPEN&{USER}")[-1].body == BIG
        # Hadoop's client knows all of them by one name.
        shell = FsShell(cluster, tmp_path / "hadoop", {"fs.defaultFS": "webhdfs://cairn"})
        assert shell.run("-cat", "/g") == BIG


def test_a_local_cluster_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = ["--directory", str(tmp_path)]
    base_port = str(choose_free_ports(1)[0])
    assert main(["cluster", "up", "--datanodes", "1", "--base-port", base_port, *directory]) == 0
    try:
        plan = Plan.read(tmp_path / "cluster.json")
        assert plan is not None
        address = f"127.0.0.1:{plan.namenode.http_port}"
        assert f"http://{address}/webhdfs/v1/?op=LISTSTATUS" in capsys.readouterr().out
        target = f"/webhdfs/v1/f?op=CREATE&replication=1&{USER}"
        assert follow(address, "PUT", target, BIG)[-1].status == 201
        assert follow(address, "GET", f"/webhdfs/v1/f?op=OPEN&{USER}")[-1].body == BIG
    finally:
        assert main(["cluster", "down", *directory]) == 0
