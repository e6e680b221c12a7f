"""What the walks have found, as short as it could be made; each stays found."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.model.product import CONFIGURATIONS
from tests.model.steps import MB, BlockRef, FileRef, InodePath, PathOf, Step
from tests.model.walk import Trace, open_on_server, replay

from cairnfs.testing.postgres_server import PostgresServer

CREATED = [
    Step("mkdirs", ("/a/a",)),
    Step("create", ("/a/a/f",), (("block_size_bytes", MB),)),
]


def block(length_bytes: int) -> BlockRef:
    return BlockRef(0, 0, length_bytes)


TRACES: dict[str, Trace] = {
    "the pessimistic runner finds a file by its id after a directory above it moved": [
        *CREATED,
        Step("rename", ("/a/a", "/a/c")),
        Step("add_block", (PathOf(0), None, FileRef(0))),
    ],
    "the pessimistic runner finds a path that begins with an inode": [
        *CREATED,
        Step("mkdirs", (InodePath(0, "/.."),)),
        Step("rename", ("/b", InodePath(0, "/.."))),
    ],
    "blocks behind an empty first block are told of only if they are asked for": [
        *CREATED,
        Step("add_block", (PathOf(0), None, FileRef(0))),
        Step("add_block", (PathOf(0), block(0), FileRef(0))),
        Step("complete", (PathOf(0), block(MB), FileRef(0))),
        Step("get_block_locations", ("/a/a/f", 0, 0)),
    ],
}


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("control", ["optimistic", "pessimistic", "system-lock"])
def test_trace(name: str, control: str) -> None:
    with open_on_server(CONFIGURATIONS[f"sqlite-{control}"], None, "") as product:
        divergence = replay(product, TRACES[name])
    assert divergence is None, divergence


def test_what_is_being_committed_is_counted_once(postgres_server: PostgresServer) -> None:
    """A read sees the commit in the store before its own NameNode hears that it succeeded."""
    configuration = CONFIGURATIONS["postgres-optimistic"]
    with open_on_server(configuration, postgres_server, "once") as product:
        client = product.client(0, "hdfs")
        client.mkdirs("/d")
        client.get_file_info("/d/a")
        store: Any = product.namenodes[0].namenode.store
        commit = store.commit

        async def answer_late(batch: Any) -> Any:
            base = await commit(batch)
            await asyncio.sleep(0.3)
            return base

        store.commit = answer_late
        creating = product.start_call(0, "hdfs", "create", "/d/a")
        asyncio.run(asyncio.sleep(0.15))
        status = client.get_file_info("/d")
        summary = client.get_content_summary("/d")
        creating.result()
        assert status is not None
        assert (status.children, summary.files) == (1, 1)
