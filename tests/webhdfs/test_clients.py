"""Clients of WebHDFS that others have made: they find on CairnFS what they find on HDFS."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.compatibility.shell import FsShell, why_not
from tests.webhdfs.exchange import BIG, follow

from cairnfs.testing.cluster import Cluster

USER = f"user.name={getpass.getuser()}"
needs_java = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(scope="module")
def address(cluster: Cluster) -> str:
    return cluster.namenodes[0].http_address


# Hadoop's own client, as Spark brings it


@pytest.fixture(scope="module")
def shell(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FsShell]:
    directory = tmp_path_factory.mktemp("shell")
    with FsShell(f"webhdfs://{address}", getpass.getuser(), directory) as shell:
        yield shell


def run(shell: FsShell, *arguments: str) -> str:
    """What a command prints that must succeed."""
    outcome = shell.run(*arguments)
    assert (outcome.code, outcome.err) == (0, ""), arguments
    return outcome.out


@needs_java
def test_hadoops_shell(shell: FsShell, tmp_path: Path) -> None:
    local, back = tmp_path / "local", tmp_path / "back"
    local.write_bytes(BIG)
    run(shell, "-mkdir", "-p", "/shell/dir")
    run(shell, "-put", str(local), "/shell/file")
    assert shell.run("-put", str(local), "/shell/file").err == "put: `/shell/file': File exists\n"
    run(shell, "-get", "/shell/file", str(back))
    assert back.read_bytes() == BIG
    assert run(shell, "-cat", "/shell/file").startswith("\0\x07\x0e")
    assert "/shell/file" in run(shell, "-ls", "/shell")
    assert run(shell, "-du", "-s", "/shell").split() == [
        *(str(len(BIG)), str(3 * len(BIG))),
        "/shell",
    ]
    assert run(shell, "-count", "/shell").split() == ["2", "1", str(len(BIG)), "/shell"]
    assert "MD5-of-0MD5-of-512CRC32C" in run(shell, "-checksum", "/shell/file")
    run(shell, "-chmod", "640", "/shell/file")
    run(shell, "-chown", "alice:staff", "/shell/file")
    run(shell, "-mv", "/shell/file", "/shell/moved")
    assert run(shell, "-stat", "%b %a %u %g %r %n", "/shell/moved").split() == [
        *(str(len(BIG)), "640", "alice", "staff", "3", "moved")
    ]
    run(shell, "-setfacl", "-m", "user:bob:r-x", "/shell/dir")
    assert "user:bob:r-x" in run(shell, "-getfacl", "/shell/dir")
    run(shell, "-cp", "/shell/moved", "/shell/copy")
    run(shell, "-touchz", "/shell/empty")
    assert "webhdfs://" in run(shell, "-df", "/")
    assert shell.run("-rmdir", "/shell").code == 1
    assert run(shell, "-rm", "-r", "-skipTrash", "/shell") == "Deleted /shell\n"
    missing = shell.run("-ls", "/shell")
    assert missing.err == "ls: `/shell': No such file or directory\n"


# Python's


def test_the_package_hdfs(address: str, tmp_path: Path) -> None:
    hdfs = pytest.importorskip("hdfs")
    client = hdfs.InsecureClient(f"http://{address}", user="alice", root="/package")
    superuser = hdfs.InsecureClient(f"http://{address}", user=getpass.getuser())
    superuser.makedirs("/package", permission="777")
    with client.write("file", blocksize=1 << 20, replication=2) as writer:
        writer.write(BIG)
    with client.read("file", offset=1000, length=50) as reader:
        assert reader.read() == BIG[1000:1050]
    with client.read("file", chunk_size=65536) as reader:
        assert b"".join(reader) == BIG
    status = client.status("file")
    assert (status["length"], status["owner"], status["replication"]) == (len(BIG), "alice", 2)
    assert client.list("") == ["file"]
    client.makedirs("directory/below")
    client.rename("file", "directory/below")
    local = tmp_path / "directory"
    client.download("directory", str(local), n_threads=2)
    assert (local / "below" / "file").read_bytes() == BIG
    client.upload("uploaded", str(local), n_threads=2)
    assert client.content("uploaded")["length"] == len(BIG)
    client.set_permission("uploaded", "700")
    client.set_acl("uploaded", "user:bob:r-x", clear=False)
    assert "user:bob:r-x" in client.acl_status("uploaded")["entries"]
    assert client.checksum("directory/below/file")["algorithm"] == "MD5-of-2048MD5-of-512CRC32C"
    with pytest.raises(hdfs.HdfsError, match="File does not exist: /package/missing"):
        client.status("missing")
    with pytest.raises(hdfs.HdfsError, match="Permission denied: user=alice"):
        client.write("/not-hers", data=b"x")
    assert superuser.delete("/package", recursive=True)


@pytest.fixture
def fs(address: str) -> Any:
    fsspec = pytest.importorskip("fsspec")
    host, port = address.split(":")
    return fsspec.filesystem("webhdfs", host=host, port=int(port), user=getpass.getuser())


def test_fsspec_reads(fs: Any, address: str) -> None:
    fs.mkdir("/fsspec")
    follow(address, "PUT", f"/webhdfs/v1/fsspec/file?op=CREATE&{USER}", BIG)
    assert fs.cat("/fsspec/file") == BIG
    with fs.open("/fsspec/file") as file:
        file.seek(1_000_000)
        assert file.read(100) == BIG[1_000_000:1_000_100]
    assert fs.ls("/fsspec", detail=False) == ["/fsspec/file"]
    fs.mv("/fsspec/file", "/fsspec/moved")
    assert fs.exists("/fsspec/moved")
    assert fs.ukey("/fsspec/moved")["algorithm"] == "MD5-of-0MD5-of-512CRC32C"
    fs.rm("/fsspec", recursive=True)
    assert not fs.exists("/fsspec")


def test_fsspec_writes(fs: Any) -> None:
    with fs.open("/written", "wb", replication=2) as file:
        file.write(BIG)
    assert fs.cat("/written") == BIG
