"""Which calls are answered from the stored reply when they are repeated."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from cairnfs import namesystem
from cairnfs.namesystem import (
    acl_operations,
    append,
    attributes,
    concat,
    delete,
    directories,
    file_blocks,
    files,
    lease_recovery,
    leases,
    open_files,
    pipelines,
    quota_operations,
    rename,
    symlinks,
    truncate,
)
from cairnfs.namesystem.paths import FsPath
from cairnfs.namesystem.rename import RenameOption
from cairnfs.testing.scratch import ScratchClient, scratch_namespace
from cairnfs.transaction.calls import CallKey, Operation

MODULES = [
    acl_operations,
    append,
    attributes,
    concat,
    delete,
    directories,
    file_blocks,
    files,
    lease_recovery,
    leases,
    open_files,
    pipelines,
    quota_operations,
    rename,
    symlinks,
    truncate,
]


@pytest.fixture
def fs(tmp_path: Path) -> Iterator[ScratchClient]:
    with scratch_namespace(tmp_path) as client:
        yield client


def test_stored_replies_are_of_the_types_that_operations_return() -> None:
    operations = {
        operation
        for module in pkgutil.iter_modules(namesystem.__path__, "cairnfs.namesystem.")
        for operation in vars(importlib.import_module(module.name)).values()
        if isinstance(operation, Operation) and operation.at_most_once
    }
    assert len(operations) > 20
    for operation in operations:
        if hasattr(operation.function, "__annotations__"):  # or it is compiled
            assert get_type_hints(operation.function)["return"] == operation.reply_type


def test_the_calls_that_hadoop_marks_are_run_at_most_once() -> None:
    operations = {
        name: operation
        for module in MODULES
        for name, operation in vars(module).items()
        if isinstance(operation, Operation)
    }
    marked = {name for name, operation in operations.items() if operation.at_most_once}
    # @AtMostOnce in Hadoop's ClientProtocol, as far as we have the calls.
    assert marked == {
        "create",
        "append",
        "rename",
        "rename2",
        "concat",
        "delete",
        "create_symlink",
        "update_pipeline",
    }
    reading = {name for name, operation in operations.items() if not operation.mutates}
    assert all(name.startswith(("get_", "is_", "check_", "list_")) for name in reading)


def test_a_repeated_call_is_answered_as_the_first_was(fs: ScratchClient) -> None:
    fs.write("/d/t", 1)
    fs.write("/d/a", 1)
    numbers = iter(range(100))

    def twice(operation: Operation, *arguments: Any) -> None:
        """Call, and call again as a client that has not got the answer."""
        key = CallKey(b"a client", next(numbers))
        namenode = fs.namenode.namenode
        first = fs.namenode.wait(namenode.call(operation, fs.caller, *arguments, key=key))
        before = fs.dump()
        again = namenode.call(operation, fs.caller, *arguments, key=key, is_retry=True)
        assert fs.namenode.wait(again) == first
        assert fs.dump() == before

    def path(text: str) -> FsPath:
        return FsPath.parse(text)

    create = (path("/d/f"), 0o644, None, "holder", files.CreateFlag.CREATE, True, 3, 1 << 27)
    twice(files.create, *create)
    twice(symlinks.create_symlink, "/x", path("/d/l"), True)
    twice(concat.concat, path("/d/t"), path("/d/a"))
    twice(rename.rename, path("/d/l"), path("/d/m"))
    twice(rename.rename2, path("/d/m"), path("/d/n"), RenameOption.NONE)
    twice(delete.delete, path("/d/n"), False)
    assert fs.names("/d") == ["f", "t"]
