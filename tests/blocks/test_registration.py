"""DataNodes and their storages as rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.blocks.test_reports import clear, put_rows

from cairnfs.blocks.records import (
    AdminState,
    BlockId,
    DataNode,
    GenerationStamp,
    Replica,
    StorageType,
    replica_key,
)
from cairnfs.blocks.registration import (
    STORAGES_MAX,
    ReportedStorage,
    add_storages,
    list_datanodes,
    register_datanode,
    remove_storage,
    set_admin_state,
)
from cairnfs.config import Control
from cairnfs.errors import FileNotFoundException, IOException
from cairnfs.store.schema import Table
from cairnfs.testing.scratch import ScratchClient, scratch_namespace

NODE = DataNode("a", "10.0.0.1", "host", 9866, 9864, 9867, 0, "/rack", "3.5.0")


@pytest.fixture(params=list(Control), ids=lambda control: control.value)
def fs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ScratchClient]:
    with scratch_namespace(tmp_path, request.param) as client:
        yield client


def run(fs: ScratchClient, operation: Any, *arguments: Any) -> Any:
    return fs.namenode.wait(fs.namenode.namenode.call(operation, *arguments))


def test_what_is_known_stays_when_it_comes_again(fs: ScratchClient) -> None:
    assert run(fs, register_datanode, NODE) == NODE
    known = run(fs, add_storages, "a", [ReportedStorage("s", StorageType.SSD)])
    run(fs, set_admin_state, "a", AdminState.DECOMMISSIONED)
    moved = msgspec.structs.replace(NODE, ip_address="10.0.0.2", transfer_port=1)
    registered = run(fs, register_datanode, moved)
    assert registered.storages == known.storages
    assert registered.admin_state is AdminState.DECOMMISSIONED
    assert registered.transfer_address == "10.0.0.2:1"
    assert run(fs, list_datanodes, b"") == [registered]
    assert run(fs, list_datanodes, b"a") == []


def test_storages_have_numbers_that_nobody_else_has(fs: ScratchClient) -> None:
    run(fs, register_datanode, NODE)
    run(fs, register_datanode, msgspec.structs.replace(NODE, uuid="b", transfer_port=1))
    disks = [ReportedStorage(f"s{n}", StorageType.DISK) for n in range(3)]
    a, b = (run(fs, add_storages, uuid, disks) for uuid in "ab")  # a volume may have moved
    assert len({storage.number for storage in (*a.storages, *b.storages)}) == 6
    assert run(fs, add_storages, "a", disks) == a


def test_a_type_may_change_but_is_not_forgotten(fs: ScratchClient) -> None:
    run(fs, register_datanode, NODE)
    [before] = run(fs, add_storages, "a", [ReportedStorage("s", StorageType.SSD)]).storages
    [same] = run(fs, add_storages, "a", [ReportedStorage("s")]).storages
    assert same == before
    [after] = run(fs, add_storages, "a", [ReportedStorage("s", StorageType.ARCHIVE)]).storages
    assert (after.number, after.type) == (before.number, StorageType.ARCHIVE)


def test_not_more_than_so_many(fs: ScratchClient) -> None:
    run(fs, register_datanode, NODE)
    with pytest.raises(IOException, match="more than"):
        run(fs, add_storages, "a", [ReportedStorage(str(n)) for n in range(STORAGES_MAX + 1)])
    assert run(fs, list_datanodes, b"") == [NODE]


def test_a_storage_is_forgotten_when_nothing_is_on_it(fs: ScratchClient) -> None:
    run(fs, register_datanode, NODE)
    both = run(fs, add_storages, "a", [ReportedStorage("s"), ReportedStorage("t")])
    first, second = both.storages
    row = Replica(BlockId(1), GenerationStamp(1), 1)
    run(fs, put_rows, [(replica_key(first.number, 1), row)])
    assert run(fs, remove_storage, "a", first.number) == both
    run(fs, clear, Table.REPLICAS, first.number)
    assert run(fs, remove_storage, "a", first.number).storages == (second,)


def test_one_that_never_registered(fs: ScratchClient) -> None:
    for operation, argument in ((add_storages, []), (set_admin_state, AdminState.NORMAL)):
        with pytest.raises(FileNotFoundException, match="is not registered"):
            run(fs, operation, "nobody", argument)
