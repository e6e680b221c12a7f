"""Every error keeps its Java class, its message and its place among Python's."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from cairnfs import errors
from cairnfs.errors import HdfsError, RemoteError, error_class, rebuild_error

ALL = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, HdfsError)
]
REGISTERED = [cls for cls in ALL if "java_class" in vars(cls) and cls is not HdfsError]


@pytest.mark.parametrize(
    ("name", "java_class", "http_status", "base"),
    [
        ("FileNotFoundException", "java.io.FileNotFoundException", 404, FileNotFoundError),
        ("IOException", "java.io.IOException", 403, OSError),
        (
            "FileAlreadyExistsException",
            "org.apache.hadoop.fs.FileAlreadyExistsException",
            403,
            FileExistsError,
        ),
        (
            "AccessControlException",
            "org.apache.hadoop.security.AccessControlException",
            403,
            PermissionError,
        ),
        (
            "SnapshotAccessControlException",
            "org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException",
            403,
            errors.AccessControlException,
        ),
        (
            "InvalidPathException",
            "org.apache.hadoop.fs.InvalidPathException",
            400,
            errors.HadoopIllegalArgumentException,
        ),
        ("IllegalArgumentException", "java.lang.IllegalArgumentException", 400, ValueError),
        (
            "UnsupportedOperationException",
            "java.lang.UnsupportedOperationException",
            400,
            NotImplementedError,
        ),
        (
            "ParentNotDirectoryException",
            "org.apache.hadoop.fs.ParentNotDirectoryException",
            403,
            NotADirectoryError,
        ),
        (
            "LeaseExpiredException",
            "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException",
            403,
            errors.IOException,
        ),
        (
            "PathComponentTooLongException",
            "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
            403,
            errors.QuotaExceededException,
        ),
        ("RetriableException", "org.apache.hadoop.ipc.RetriableException", 403, OSError),
    ],
)
def test_class(name: str, java_class: str, http_status: int, base: type) -> None:
    cls = getattr(errors, name)
    assert cls.java_class == java_class
    assert cls.http_status == http_status
    assert issubclass(cls, base)
    assert error_class(java_class) is cls


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_survives_pickle_and_copy(cls: type[HdfsError]) -> None:
    error = cls("it is gone: /a b")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is cls
        assert str(twin) == "it is gone: /a b"
        assert twin.java_class == error.java_class
    assert str(cls()) == ""


@pytest.mark.parametrize("cls", REGISTERED, ids=lambda cls: cls.__name__)
def test_registered_under_its_own_name(cls: type[HdfsError]) -> None:
    assert error_class(cls.java_class) is cls
    assert cls("x").exception_name == cls.__name__


def test_registry_is_not_empty() -> None:
    assert len(REGISTERED) > 35


def test_unknown_class_keeps_its_name() -> None:
    assert error_class("com.example.Odd") is None
    error = rebuild_error("com.example.Outer$Odd", "strange")
    assert type(error) is RemoteError
    assert (error.java_class, str(error)) == ("com.example.Outer$Odd", "strange")
    assert error.exception_name == "Odd"
    assert pickle.loads(pickle.dumps(error)).java_class == "com.example.Outer$Odd"
    assert RemoteError.java_class == "java.io.IOException"


def test_known_class_is_rebuilt() -> None:
    error = rebuild_error("org.apache.hadoop.ipc.StandbyException", "ask another")
    assert type(error) is errors.StandbyException
    assert str(error) == "ask another"


def test_store_unavailable_is_retriable_to_clients() -> None:
    error = errors.StoreUnavailableException("the database is full")
    assert error.java_class == "org.apache.hadoop.ipc.RetriableException"
    assert error_class(error.java_class) is errors.RetriableException


def test_schema_version_error_crosses_no_wire() -> None:
    assert not issubclass(errors.SchemaVersionError, HdfsError)


def test_two_classes_cannot_claim_one_name() -> None:
    # In another process, as the registry would keep what this adds.
    program = (
        "from cairnfs.errors import HdfsError\n"
        "class Impostor(HdfsError, java_class='java.io.IOException'): pass\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "AssertionError: java.io.IOException" in done.stderr
