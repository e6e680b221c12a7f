"""`cairn xattr`, and the calls of the Python client behind it, on a real cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from tests.cli.running import run as run_cairn

from cairnfs.client.filesystem import FileSystem, connect
from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IOException,
)
from cairnfs.testing.cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("xattr") / "cluster", datanodes=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def fs(cluster: Cluster) -> Iterator[FileSystem]:
    with connect(cluster.uri) as fs:
        fs.mkdirs("/a/b/c")
        fs.mkdirs("/d")
        fs.declare_xattr("user.path", "follow-path")
        fs.declare_xattr("user.data", "stay-with-data")
        fs.set_xattr("/a", "user.path", b"red")
        fs.set_xattr("/a", "user.data", b"red")
        yield fs


def run(cluster: Cluster, *arguments: str, code: int = 0, **variables: str) -> str:
    """What `cairn xattr` prints, on both streams."""
    return run_cairn(cluster, "xattr", *arguments, code=code, **variables)


def test_declare_and_list(cluster: Cluster, fs: FileSystem) -> None:
    assert run(cluster, "declare", "user.new", "follow-path") == (
        "Declared user.new as follow-path\n"
    )
    listed = run(cluster, "list").splitlines()
    assert listed[0].split() == ["NAME", "KIND", "USE"]
    assert "user.new   follow-path     not used yet" in listed
    assert "user.data  stay-with-data  in use" in listed
    run(cluster, "declare", "user.new", "local")
    names = [json.loads(line)["name"] for line in run(cluster, "list", "--json").splitlines()]
    assert names == ["user.data", "user.path"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("declare", "user.x", "sideways"), "there are local, follow-path, stay-with-data"),
        (("declare", "system.x", "local"), "only names that begin with user. or trusted."),
        (("declare", "x", "local"), "must be prefixed with user/trusted"),
        (("declare", "user.path", "local"), "in use as follow-path"),
        (("explain", "/nothing"), "cannot find /nothing"),
        (("unset", "/a", "user.other"), "not inherited"),
    ],
)
def test_mistakes_are_told_in_one_line(
    cluster: Cluster, fs: FileSystem, arguments: tuple[str, ...], told: str
) -> None:
    printed = run(cluster, *arguments, code=1)
    assert told in printed
    assert printed.count("\n") == 1


def test_who_is_not_the_superuser_is_told_who_may(cluster: Cluster, fs: FileSystem) -> None:
    printed = run(cluster, "declare", "user.x", "local", code=1, HADOOP_USER_NAME="ada")
    assert "declared by the superuser" in printed


def test_explain(cluster: Cluster, fs: FileSystem) -> None:
    (explained,) = fs.explain_xattrs("/a/b/c", ["user.path"])
    (reason,) = explained.reasons
    assert (explained.kind, explained.value) == ("follow-path", b"red")
    assert (reason.cause, reason.path) == ("SET", "/a")
    lines = run(cluster, "explain", "/a/b/c", "user.path").splitlines()
    assert lines[0] == '/a/b/c: user.path (follow-path) is "red"'
    assert lines[1] == f"  TxID {reason.txid}: set on /a"
    rows = [line.split() for line in lines[3:]]
    assert [row[:2] for row in rows if row[0] == "*"] == [["*", "/a"]]
    assert [row[0] for row in rows if row[0] != "*"] == ["/", "/a/b", "/a/b/c"]
    both = run(cluster, "explain", "/a/b")
    assert "user.data (stay-with-data)" in both
    assert "user.path (follow-path)" in both
    found = json.loads(run(cluster, "explain", "/a/b", "user.data", "--json"))
    assert found["value"] == '"red"'
    assert found["steps"][1]["set"] == found["reasons"][0]["txid"]


def test_explain_what_was_moved(cluster: Cluster, fs: FileSystem) -> None:
    fs.mkdirs("/a/moved")
    fs.rename("/a/moved", "/d/moved")
    printed = run(cluster, "explain", "/d/moved")
    assert "decided above /d/moved, and kept when that was moved" in printed
    assert "/d/moved was moved there, and took what its directory has" in printed
    assert "user.path (follow-path) is none" in printed
    fs.mkdirs("/d/plain")
    assert "nobody has decided otherwise" in run(cluster, "explain", "/d/plain", "user.path")


def test_unset(cluster: Cluster, fs: FileSystem) -> None:
    fs.mkdirs("/a/unset")
    fs.set_xattr("/a/unset", "user.path", b"blue")
    assert "is what the directory above has" in run(cluster, "unset", "/a/unset", "user.path")
    assert fs.get_xattr("/a/unset", "user.path") == b"red"
    assert "unset on /a/unset" in run(cluster, "explain", "/a/unset", "user.path")


def test_the_client_raises_what_hadoop_would(cluster: Cluster, fs: FileSystem) -> None:
    with pytest.raises(HadoopIllegalArgumentException):
        fs.declare_xattr("user.x", "sideways")
    with pytest.raises(IOException, match="in use"):
        fs.declare_xattr("user.path", "stay-with-data")
    with pytest.raises(FileNotFoundException):
        fs.explain_xattrs("/nothing")
    with connect(cluster.uri, user="ada") as ada:
        with pytest.raises(AccessControlException):
            ada.declare_xattr("user.x", "local")
        assert [each.name for each in ada.list_declared_xattrs()] == ["user.data", "user.path"]


def test_every_client_sees_what_is_inherited(cluster: Cluster, fs: FileSystem) -> None:
    assert fs.get_xattrs("/a/b/c") == {"user.path": b"red", "user.data": b"red"}
    assert fs.list_xattrs("/a/b/c") == ["user.data", "user.path"]
    with pytest.raises(IOException, match="already exists"):
        fs.set_xattr("/a/b/c", "user.path", b"blue", replace=False)
    address = cluster.namenodes[0].http_address
    with urlopen(f"http://{address}/webhdfs/v1/a/b/c?op=GETXATTRS&encoding=text") as answer:
        found = {each["name"]: each["value"] for each in json.load(answer)["XAttrs"]}
    assert found == {"user.path": '"red"', "user.data": '"red"'}
    fs.allow_snapshot("/a/b")
    fs.create_snapshot("/a/b", "s")
    fs.remove_xattr("/a", "user.path")
    assert fs.get_xattrs("/a/b/c") == {"user.data": b"red"}
    assert fs.get_xattrs("/a/b/.snapshot/s/c") == {"user.path": b"red", "user.data": b"red"}
    fs.set_xattr("/a", "user.path", b"red")
    fs.delete_snapshot("/a/b", "s")
