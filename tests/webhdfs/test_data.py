"""Data over HTTP: whole or not at all, through DataNodes or the NameNode, in whose name."""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.webhdfs.exchange import BIG, Answer, follow, send
from tests.webhdfs.raw import connect, exchange_on, status_of

from cairnfs.testing.cluster import Cluster, Node

USER = f"user.name={getpass.getuser()}"
MEMORY_LIMIT_BYTES = 120 << 20


@pytest.fixture(scope="module")
def through(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose DataNodes have names that nobody can resolve."""
    directory = tmp_path_factory.mktemp("through") / "cluster"
    with Cluster(directory, namenode_options=["--data-through-namenode"]) as cluster:
        yield cluster


def target(path: str, op: str, more: str = "") -> str:
    return f"/webhdfs/v1{path}?op={op}&{USER}{more}"


def location(address: str, path: str) -> str:
    """Where the NameNode sends the data of a new file: an address and the rest."""
    url = urlsplit(send(address, "PUT", target(path, "CREATE")).location)
    return f"{url.netloc} {url.path}?{url.query}"


def put(address: str, path: str, data: bytes, more: str = "") -> Answer:
    return follow(address, "PUT", target(path, "CREATE", more), data)[-1]


def get(address: str, path: str, more: str = "") -> Answer:
    return follow(address, "GET", target(path, "OPEN", more))[-1]


def status(address: str, path: str) -> Answer:
    return send(address, "GET", target(path, "GETFILESTATUS"))


# Bodies that do not come as promised


@pytest.mark.parametrize(
    ("headers", "first", "then"),
    [
        (b"Content-Length: 1000\r\n", b"x" * 100, b""),
        (b"Content-Length: 3000000\r\n", BIG, b"x"),
        (b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n", b"5\r\nwor"),
        (b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n", b""),
        (b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n", b"zz\r\n"),
        (b"Content-Length: 5\r\nExpect: 100-continue\r\n", b"", b""),
    ],
)
def test_a_body_that_ends_too_early_leaves_no_file(
    cluster: Cluster, headers: bytes, first: bytes, then: bytes
) -> None:
    namenode = cluster.namenodes[0].http_address
    path = "/cut/file"
    datanode, rest = location(namenode, path).split()
    with connect(datanode) as sock:
        sock.sendall(
            b"PUT " + rest.encode() + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n" + first
        )
        cluster.wait_until(lambda: status(namenode, "/cut").status == 200, "it has begun", 10)
        sock.sendall(then)
    cluster.wait_until(lambda: status(namenode, path).status == 404, "it is gone", 10)
    assert put(namenode, path, b"whole").status == 201
    assert get(namenode, path).body == b"whole"
    send(namenode, "DELETE", target("/cut", "DELETE", "&recursive=true"))


def test_an_append_that_ends_too_early_leaves_the_file_to_others(cluster: Cluster) -> None:
    namenode = cluster.namenodes[0].http_address
    assert put(namenode, "/appended", b"begun").status == 201
    url = urlsplit(send(namenode, "POST", target("/appended", "APPEND")).location)
    head = f"POST {url.path}?{url.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
    with connect(url.netloc) as sock:
        sock.sendall(head.encode() + b"half")

    def is_appended() -> bool:
        answers = follow(namenode, "POST", target("/appended", "APPEND"), b", more")
        assert answers[-1].status in (200, 403)
        return answers[-1].status == 200

    cluster.wait_until(is_appended, "others may append", 20)
    assert re.fullmatch(rb"begun(half)?, more", get(namenode, "/appended").body)


def test_a_reader_that_leaves_is_forgotten(cluster: Cluster) -> None:
    namenode = cluster.namenodes[0].http_address
    assert put(namenode, "/left", BIG).status == 201
    url = urlsplit(send(namenode, "GET", target("/left", "OPEN")).location)
    for _ in range(20):
        with connect(url.netloc) as sock:
            sock.sendall(f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert sock.recv(100).startswith(b"HTTP/1.1 200")
    assert get(namenode, "/left").body == BIG


def test_who_waits_to_be_asked_for_data_is_redirected_first(cluster: Cluster) -> None:
    address = cluster.namenodes[0].http_address
    head = f"PUT {target('/expected', 'CREATE')} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    with connect(address) as sock:
        answer = exchange_on(sock, head.encode() + b"Expect: 100-continue\r\n\r\n")
    assert status_of(answer) == 307
    found = re.search(rb"Location: http://([^/]+)(\S+)", answer)
    assert found is not None
    head = f"PUT {found[2].decode()} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    with connect(found[1].decode()) as sock:
        sock.sendall(head.encode() + b"Expect: 100-continue\r\n\r\n")
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert status_of(exchange_on(sock, b"hello")) == 201
    assert get(address, "/expected").body == b"hello"


def test_a_large_file_is_never_in_memory(cluster: Cluster) -> None:
    address = cluster.namenodes[0].http_address
    data = BIG * 150  # 200 MB
    assert put(address, "/large", data, "&replication=1").status == 201
    assert get(address, "/large").body == data
    assert max(map(peak_bytes, (*cluster.datanodes, *cluster.namenodes))) < MEMORY_LIMIT_BYTES


def peak_bytes(node: Node) -> int:
    text = Path(f"/proc/{node.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) << 10


# In whose name


def test_the_superuser_may_write_for_others_and_nobody_else(cluster: Cluster) -> None:
    address = cluster.namenodes[0].http_address
    send(address, "PUT", target("/shared", "MKDIRS", "&permission=777"))
    assert put(address, "/shared/hers", b"x", "&doas=alice").status == 201
    assert json.loads(status(address, "/shared/hers").body)["FileStatus"]["owner"] == "alice"
    # A DataNode is asked as well, past the NameNode's redirect.
    datanode, rest = location(address, "/shared/his").split()
    answer = send(datanode, "PUT", rest.replace(USER, "user.name=alice&doas=bob"), b"x")
    assert answer.status == 403
    error = json.loads(answer.body)["RemoteException"]
    assert error["message"] == "User: alice is not allowed to impersonate bob"
    assert status(address, "/shared/his").status == 404


# Through the NameNode


def test_data_goes_through_the_namenode_if_it_is_told_so(through: Cluster) -> None:
    address = through.namenodes[0].http_address
    first, second = follow(address, "PUT", target("/two/steps", "CREATE"), BIG)
    assert first.location.startswith(f"http://{address}/webhdfs/v1/two/steps?op=CREATE&")
    assert second.status == 201
    assert send(address, "PUT", target("/one/step", "CREATE"), BIG).status == 201
    for path in ("/two/steps", "/one/step"):
        answer = send(address, "GET", target(path, "OPEN", "&offset=100"))
        assert (answer.status, answer.body) == (200, BIG[100:])
    answer = send(address, "GET", target("/one/step", "GETFILECHECKSUM"))
    assert json.loads(answer.body)["FileChecksum"]["algorithm"] == "MD5-of-0MD5-of-512CRC32C"
    answer = send(address, "PUT", target("/asked", "CREATE", "&noredirect=true"))
    where = urlsplit(json.loads(answer.body)["Location"])
    assert where.netloc == address
    assert send(address, "PUT", f"{where.path}?{where.query}", b"asked").status == 201
    assert send(address, "GET", target("/asked", "OPEN")).body == b"asked"
    assert send(address, "GET", target("/missing", "OPEN")).status == 404
    error = send(address, "PUT", target("/asked", "CREATE"), b"again")
    assert error.status == 403
    assert json.loads(error.body)["RemoteException"]["exception"] == "FileAlreadyExistsException"


def test_clients_that_cannot_reach_datanodes_use_it(through: Cluster) -> None:
    hdfs = pytest.importorskip("hdfs")
    url = f"http://{through.namenodes[0].http_address}"
    client = hdfs.InsecureClient(url, user=getpass.getuser())
    client.write("/package", data=BIG)
    with client.read("/package") as reader:
        assert reader.read() == BIG
