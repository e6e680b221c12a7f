"""Extended attributes with the Python client, and the same calls on Apache HDFS."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.real_hdfs import JARS, RealHdfs

import cairnfs
from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HadoopIllegalArgumentException,
    IOException,
    XAttrNotFoundException,
)
from cairnfs.testing.cluster import Cluster

ENCRYPTED = b"\n\x03key\x12\x02iv\x1a\x05key@0"  # a PerFileEncryptionInfoProto
UNREADABLE = "security.hdfs.unreadable.by.superuser"

Call = tuple[str, str, tuple[Any, ...], dict[str, Any]]
"""Who calls ("" is the superuser), what, and with which arguments."""


def call(method: str, *arguments: Any, user: str = "", **options: Any) -> Call:
    return user, method, arguments, options


# What both file systems are asked, in this order.
CALLS = (
    call("mkdirs", "/x/d", 0o755),
    call("mkdirs", "/x/open", 0o777),
    call("mkdirs", "/x/closed", 0o700),
    call("set_permission", "/x/open", 0o777),
    call("get_xattrs", "/x/d"),
    call("list_xattrs", "/x/d"),
    call("set_xattr", "/x/d", "user.a", b"1"),
    call("set_xattr", "/x/d", "user.empty"),
    call("set_xattr", "/x/d", "USER.b", bytes(range(256))),
    call("set_xattr", "/x/d", "user.ü.€ 𐍈", "größe".encode()),
    call("set_xattr", "/x/d", "trusted.a", b"2"),
    call("get_xattrs", "/x/d"),
    call("list_xattrs", "/x/d"),
    call("get_xattrs", "/x/d", user="alice"),
    call("list_xattrs", "/x/d", user="alice"),
    call("get_xattr", "/x/d", "user.b"),
    call("get_xattr", "/x/d", "user.empty"),
    call("get_xattr", "/x/d", "user.missing"),
    call("get_xattr", "/x/d", "trusted.a", user="alice"),
    call("get_xattrs", "/x/d", ["user.a", "user.b"]),
    call("get_xattrs", "/x/d", ["user.a", "user.missing"]),
    call("get_xattrs", "/x/d", ["user.a", "system.a"]),
    call("get_xattrs", "/x/open", ["user.a"]),
    call("get_xattrs", "/x/missing"),
    call("get_xattrs", "/x/missing", ["trusted.a"], user="alice"),
    call("list_xattrs", "/x/missing"),
    call("list_xattrs", "/x/closed", user="alice"),
    call("list_xattrs", "/x/closed/missing", user="alice"),
    call("set_xattr", "/x/d", "user.a", b"2", replace=False),
    call("set_xattr", "/x/d", "user.new", b"2", create=False),
    call("set_xattr", "/x/d", "user.new", b"2", create=False, replace=False),
    call("set_xattr", "/x/missing", "user.a", b"2"),
    call("set_xattr", "/x/d/below/missing", "user.a", b"2"),
    call("set_xattr", "/x/d", "user.a", b"2", user="alice"),
    call("set_xattr", "/x/open", "user.a", b"2", user="alice"),
    call("set_xattr", "/x/open", "trusted.a", b"2", user="alice"),
    call("set_xattr", "/x/open", "system.a", b"2"),
    call("set_xattr", "/x/open", "security.a", b"2"),
    call("set_xattr", "/x/open", "raw.a", b"2"),
    call("set_xattr", "/x/open", UNREADABLE),
    call("set_xattr", "/x/open", UNREADABLE, b"1"),
    call("set_xattr", "/.reserved/raw/x/open", "raw.a", b"2"),
    call("set_xattr", "/.reserved/raw/x/open", "raw.a", b"2", user="alice"),
    call("list_xattrs", "/.reserved/raw/x/open", user="alice"),
    call("get_xattrs", "/.reserved/raw/x/open"),
    call("get_xattrs", "/.reserved/raw/x/open", ["raw.a"], user="alice"),
    call("remove_xattr", "/.reserved/raw/x/open", "raw.a", user="alice"),
    call("remove_xattr", "/.reserved/raw/x/open", "raw.a"),
    call("list_xattrs", "/.reserved"),
    call("set_xattr", "/.reserved/raw/x/d", "raw.hdfs.crypto.file.encryption.info", ENCRYPTED),
    call("set_xattr", "/x/d", "user.big", b"x" * 16381),
    call("set_xattr", "/x/d", "user.big", b"x" * 16382),
    call("set_xattr", "/x/missing", "user.big", b"x" * 16382),
    call("set_xattr", "/x/d", f"user.{'n' * 16384}"),
    call("set_xattr", "/x/d", f"user.{'n' * 16385}"),
    call("remove_xattr", "/x/d", "user.missing"),
    call("remove_xattr", "/x/missing", "user.a"),
    call("remove_xattr", "/x/d", "user.a", user="alice"),
    call("remove_xattr", "/x/d", "trusted.a", user="alice"),
    call("remove_xattr", "/x/d", UNREADABLE),
    call("remove_xattr", "/x/d", "user.a"),
    call("remove_xattr", "/x/d", "user.a"),
    call("set_permission", "/x/open", 0o1777),
    call("set_xattr", "/x/open", "user.a", b"3", user="alice"),
    call("set_xattr", "/x/open", "user.a", b"3"),
    *(call("set_xattr", "/x/closed", f"user.{number}", b"x") for number in range(32)),
    call("set_xattr", "/x/closed", "user.32", b"x"),
    call("set_xattr", "/x/closed", "trusted.32", b"x"),
    call("set_xattr", "/x/closed", "user.31", b"y"),
    call("allow_snapshot", "/x"),
    call("create_snapshot", "/x", "s1"),
    call("set_xattr", "/x/d", "user.b", b"after"),
    call("get_xattr", "/x/.snapshot/s1/d", "user.b"),
    call("set_xattr", "/x/.snapshot/s1/d", "user.b", b"never"),
    call("remove_xattr", "/x/.snapshot/s1/d", "user.b"),
    call("list_xattrs", "/x/.snapshot"),
    call("rename", "/x/d", "/x/moved"),
    call("list_xattrs", "/x/moved"),
    call("get_xattr", "/x/moved", "user.b"),
)


@pytest.fixture
def file(fs: cairnfs.FileSystem, folder: str) -> str:
    path = f"{folder}/file"
    with fs.create(path, replication=1) as stream:
        stream.write(b"content")
    return path


def test_attributes_are_set_read_and_removed(fs: cairnfs.FileSystem, file: str) -> None:
    before = fs.get_file_status(file)
    fs.set_xattr(file, "user.author", b"ada")
    fs.set_xattr(Path(file), "user.data", bytes(range(256)))
    fs.set_xattr(file, "user.empty")
    assert fs.get_xattr(file, "user.author") == b"ada"
    assert fs.get_xattrs(file, ["user.data", "user.empty"]) == {
        "user.data": bytes(range(256)),
        "user.empty": b"",
    }
    assert fs.list_xattrs(file) == ["user.author", "user.data", "user.empty"]
    fs.remove_xattr(file, "user.data")
    assert fs.get_xattrs(file) == {"user.author": b"ada", "user.empty": b""}
    assert fs.get_file_status(file) == before


def test_flags(fs: cairnfs.FileSystem, file: str) -> None:
    with pytest.raises(IOException, match="CREATE flag must be specified"):
        fs.set_xattr(file, "user.a", b"1", create=False)
    fs.set_xattr(file, "user.a", b"1", replace=False)
    with pytest.raises(IOException, match="REPLACE flag must be specified"):
        fs.set_xattr(file, "user.a", b"2", replace=False)
    assert fs.get_xattr(file, "user.a") == b"1"


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda fs, file: fs.get_xattr(file, "user.a"), XAttrNotFoundException),
        (lambda fs, file: fs.get_xattr(file, "a"), HadoopIllegalArgumentException),
        (lambda fs, file: fs.get_xattr(file, "user."), HadoopIllegalArgumentException),
        (lambda fs, file: fs.set_xattr(file, "us.er", b""), HadoopIllegalArgumentException),
        (lambda fs, file: fs.set_xattr(file, "user.a", b"x" * 16384), ValueError),
        (lambda fs, file: fs.set_xattr(file, "system.a", b""), AccessControlException),
        (lambda fs, file: fs.set_xattr(f"{file}-not", "user.a", b""), FileNotFoundException),
        (lambda fs, file: fs.remove_xattr(file, "user.a"), IOException),
        (lambda fs, file: fs.remove_xattr(file, ""), HadoopIllegalArgumentException),
    ],
)
def test_errors(
    fs: cairnfs.FileSystem,
    file: str,
    wrong: Callable[[cairnfs.FileSystem, str], object],
    error: type[Exception],
) -> None:
    with pytest.raises(error):
        wrong(fs, file)
    assert fs.get_xattrs(file) == {}


def test_a_link_is_followed(fs: cairnfs.FileSystem, file: str, folder: str) -> None:
    fs.create_symlink(file, f"{folder}/link")
    fs.set_xattr(f"{folder}/link", "user.a", b"1")
    assert fs.get_xattrs(file) == fs.get_xattrs(f"{folder}/link") == {"user.a": b"1"}


def test_not_even_the_superuser_reads_what_is_marked_so(cluster: Cluster, folder: str) -> None:
    with cairnfs.connect(cluster.uri) as fs, cairnfs.connect(cluster.uri, user="alice") as alice:
        fs.set_permission(folder, 0o777)
        with alice.create(f"{folder}/private", replication=1) as stream:
            stream.write(b"content")
        assert fs.open(f"{folder}/private").read() == b"content"
        alice.set_xattr(f"{folder}/private", UNREADABLE)
        with pytest.raises(AccessControlException, match="the superuser is not allowed"):
            fs.open(f"{folder}/private").read()
        assert alice.open(f"{folder}/private").read() == b"content"


def outcome(clients: dict[str, cairnfs.FileSystem], asked: Call) -> object:
    """What a call gives: an answer, or the class and the words of an error."""
    user, method, arguments, options = asked
    try:
        result = getattr(clients[user], method)(*arguments, **options)
    except Exception as error:
        return type(error).__name__, str(error)
    return sorted(result) if method == "list_xattrs" else result


def outcomes(uri: str) -> Iterator[object]:
    with (
        cairnfs.connect(uri, user=getpass.getuser()) as superuser,
        cairnfs.connect(uri, user="alice") as alice,
    ):
        for asked in CALLS:
            yield outcome({"": superuser, "alice": alice}, asked)


@pytest.mark.java
@pytest.mark.skipif(not JARS.is_dir(), reason="there is no Apache HDFS to test with")
def test_every_call_ends_as_on_hdfs(tmp_path: Path, make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(datanodes=0)
    with RealHdfs(tmp_path, datanodes=0) as hdfs:
        theirs = list(outcomes(hdfs.uri))
    ours = list(outcomes(cluster.uri))
    for asked, wanted, got in zip(CALLS, theirs, ours, strict=True):
        if isinstance(wanted, tuple) and isinstance(got, tuple):
            assert got[0] == wanted[0], (asked, wanted, got)
            # An error may say more, such as which path it is about.
            assert got[1].startswith(wanted[1].partition("\n")[0]), (asked, wanted, got)
        else:
            assert got == wanted, asked
    assert sum(isinstance(each, tuple) for each in theirs) > 30
