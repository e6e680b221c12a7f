"""What the walks have found, as short as it could be made; each stays found."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.model.product import CONFIGURATIONS
from tests.model.steps import MB, Batch, BlockRef, FileRef, InodePath, PathOf, Step
from tests.model.walk import Trace, open_on_server, replay

from cairnfs.namenode.reclaiming import SETTLING_MS
from cairnfs.namesystem.layers import LAYERS_MANY
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


RECURSIVE = (("recursive", True),)

MOVED_OUT: Trace = [
    Step("mkdirs", ("/a/x",)),
    Step("mkdirs", ("/c/o",)),
    Step("allow_snapshot", ("/a",)),
    Step("create_snapshots", (("/a",), "s1")),
    Step("rename2", ("/a/x", "/c/o/x", 0)),
    Step("rollback_snapshot", ("/a", "s1", "s2")),
    Step("create_snapshots", (("/a",), "s3")),
]
MOVED_IN_BETWEEN: Trace = [
    Step("mkdirs", ("/a/d/x",)),
    Step("mkdirs", ("/c/o",)),
    Step("allow_snapshot", ("/a",)),
    Step("allow_snapshot", ("/a/d",)),
    Step("create_snapshots", (("/a/d",), "s1")),
    Step("set_permission", ("/a/d/x", 0o700)),
    Step("rollback_snapshot", ("/a/d", "s1", "s2")),
    Step("create_snapshots", (("/a/d",), "s3")),
    Step("rename2", ("/a/d/x", "/c/o/q", 0)),
    Step("rollback_snapshot", ("/a/d", "s3", "s4")),
    Step("create_snapshots", (("/a",), "s5")),
    Step("rename2", ("/c/o/q", "/a/r", 0)),
    Step("allow_snapshot", ("/a/r",)),
    Step("allow_snapshot", ("/a/d/x",)),
]
SHOWN_TWICE: Trace = [
    Step("mkdirs", ("/a/d/x",)),
    Step("allow_snapshot", ("/a",)),
    Step("allow_snapshot", ("/a/d",)),
    Step("create_snapshots", (("/a/d",), "s1")),
    Step("advance", (1000,)),
    Step("set_permission", ("/a/d/x", 0o700)),
    Step("rollback_snapshot", ("/a/d", "s1", "s2")),
    Step("create_snapshots", (("/a",), "s3")),
    Step("rename2", ("/a/d/x", "/a/q", 0)),
    Step("rollback_snapshot", ("/a/d", "s1", "s4")),
]
SNAPSHOT_TRACES: dict[str, Trace] = {
    "what was being written is charged in a clone for what is known of it": [
        *CREATED,
        Step("add_block", (PathOf(0), None, FileRef(0))),
        Step("fsync", (PathOf(0), 7, FileRef(0))),
        Step("set_replication", ("/a/a/f", 2)),
        Step("allow_snapshot", ("/a",)),
        Step("create_snapshots", (("/a",), "s1")),
        Step("clone_snapshot", ("/a", "s1", "/b/clone")),
        Step("set_permission", ("/b/clone/a/f", 0o600)),
        Step("complete", (PathOf(0), block(9), FileRef(0))),
        Step("append", (PathOf(0),)),
        Step("create_snapshots", (("/a",), "s2")),
        Step("rollback_snapshot", ("/a", "s1")),
        Step("rollback_snapshot", ("/a", "s2")),
    ],
    "and so in a directory that has snapshots of its own and is brought back": [
        *CREATED,
        Step("add_block", (PathOf(0), None, FileRef(0))),
        Step("allow_snapshot", ("/a",)),
        Step("allow_snapshot", ("/a/a",)),
        Step("create_snapshots", (("/a", "/a/a"), "s1")),
        Step("rollback_snapshot", ("/a", "s1")),
    ],
    "what was brought back, and is moved away at the same time, is another file than before": [
        *CREATED,
        Step("add_block", (PathOf(0), None, FileRef(0))),
        Step("complete", (PathOf(0), block(7), FileRef(0))),
        Step("allow_snapshot", ("/a",)),
        Step("create_snapshots", (("/a",), "s1")),
        Batch((Step("rollback_snapshot", ("/a", "s1")), Step("rename", ("/a/a", "/b/x")))),
        Step("fsync", (PathOf(0), 3, FileRef(0))),
    ],
    "a link that is made in a clone is not in its origin": [
        Step("mkdirs", ("/a/b",)),
        Step("allow_snapshot", ("/a",)),
        Step("create_snapshots", (("/a",), "s1")),
        Step("clone_snapshot", ("/a", "s1", "/d")),
        Step("create_symlink", ("/t", "/d/b/link")),
        Step("get_listing", ("/a/b",)),
    ],
    "a source of a concat in a clone is gone from it": [
        *CREATED,
        Step("add_block", (PathOf(0), None, FileRef(0))),
        Step("complete", (PathOf(0), block(5), FileRef(0))),
        Step("create", ("/a/a/g",)),
        Step("add_block", (PathOf(0), None, FileRef(0))),
        Step("complete", (PathOf(0), block(7), FileRef(0))),
        Step("allow_snapshot", ("/a",)),
        Step("create_snapshots", (("/a",), "s1")),
        Step("clone_snapshot", ("/a", "s1", "/b/clone")),
        Step("allow_snapshot", ("/b/clone/a/f",)),
        Step("concat", ("/b/clone/a/g", ("/b/clone/a/f",))),
    ],
    "a directory that was never touched has its time again after a roll-back": [
        Step("allow_snapshot", ("/b",)),
        Step("mkdirs", ("/b/b",)),
        Step("create_snapshots", (("/b",), "s1")),
        Step("advance", (1000,)),
        Step("allow_snapshot", ("/b/b",)),
        Step("create_snapshots", (("/b/b",), "s2")),
        Step("rollback_snapshot", ("/b", "s1")),
    ],
    "what has snapshots in a clone is not taken for its original by a roll-back": [
        Step("mkdirs", ("/c/b",)),
        Step("allow_snapshot", ("/c",)),
        Step("create_snapshots", (("/c",), "s1")),
        Step("clone_snapshot", ("/c", "s1", "/c/b/c")),
        Step("allow_snapshot", ("/c/b/c/b",)),
        Step("create_snapshots", (("/c/b/c/b",), "s1")),
        Step("create_snapshots", (("/c",), "s2")),
        Step("rollback_snapshot", ("/c", "s2")),
    ],
    "nor is it lost if it had no row of its own then": [
        Step("mkdirs", ("/c/b/x",)),
        Step("allow_snapshot", ("/c",)),
        Step("create_snapshots", (("/c",), "s1")),
        Step("clone_snapshot", ("/c", "s1", "/c/d")),
        Step("create_snapshots", (("/c",), "s2")),
        Step("rename", ("/c/d/b/x", "/c/d/y")),
        Step("delete", ("/c/d/b",), RECURSIVE),
        Step("allow_snapshot", ("/c/d/y",)),
        Step("create_snapshots", (("/c/d/y",), "s3")),
        Step("rollback_snapshot", ("/c", "s2")),
    ],
    "the totals of a directory that is gone are those of its snapshots still": [
        Step("mkdirs", ("/a/a/a",)),
        Step("advance", (1000,)),
        Step("allow_snapshot", ("/a",)),
        Step("allow_snapshot", ("/a/a/a",)),
        Step("create_snapshots", (("/a",), "s3")),
        Step("create_snapshots", (("/a/a/a",), "s2")),
        Step("delete_snapshot", ("/a/a/a", "s2")),
        Step("allow_snapshot", ("/",)),
        Step("create_snapshots", (("/",), "s2")),
        Step("rollback_snapshot", ("/a", "s3")),
        Step("delete", ("/a/a",), RECURSIVE),
    ],
    "of what was moved into what was shown in its place, that one is in the tree as well": [
        Step("mkdirs", ("/a/a/a",)),
        Step("mkdirs", ("/c/b",)),
        Step("allow_snapshot", ("/a/a",)),
        Step("create_snapshots", (("/a/a",), "s1")),
        Step("allow_snapshot", ("/a",)),  # or s1 would serve as the next
        Step("rollback_snapshot", ("/a/a", "s1", "s2")),
        Step("rename2", ("/a/a/a", "/c/b/c", 0)),
        Step("rollback_snapshot", ("/a/a", "s2")),
        Step("create_snapshots", (("/a",), "s3")),
        Step("rename2", ("/c/b", "/a/a/a/c", 0)),
        Step("rollback_snapshot", ("/a", "s3", "s4")),
        Step("allow_snapshot", ("/a/a/a",)),
        Step("rollback_snapshot", ("/a", "s4")),
        Step("list_snapshottable"),
    ],
    "of what is shown a second time only one was there before": [
        *SHOWN_TWICE,
        Step("allow_snapshot", ("/a/d/x",)),
        Step("allow_snapshot", ("/a/q",)),
        Step("rollback_snapshot", ("/a", "s3", "s9")),
        Step("list_snapshottable"),
    ],
    "so the other one hinders if it has snapshots": [
        *SHOWN_TWICE,
        Step("allow_snapshot", ("/a/d/x",)),
        Step("create_snapshots", (("/a/d/x",), "s5")),
        Step("rollback_snapshot", ("/a", "s3", "s9")),
        Step("list_snapshottable"),
    ],
    "also if both have": [
        *SHOWN_TWICE,
        Step("allow_snapshot", ("/a/d/x",)),
        Step("create_snapshots", (("/a/d/x",), "s5")),
        Step("allow_snapshot", ("/a/q",)),
        Step("create_snapshots", (("/a/q",), "s6")),
        Step("rollback_snapshot", ("/a", "s3", "s9")),
        Step("list_snapshottable"),
    ],
    "what was shown is that also when the one that was moved is gone": [
        Step("mkdirs", ("/a/d/x",)),
        Step("allow_snapshot", ("/a",)),
        Step("allow_snapshot", ("/a/d",)),
        Step("create_snapshots", (("/a/d",), "s1")),
        Step("rename2", ("/a/d/x", "/a/q", 0)),
        Step("rollback_snapshot", ("/a/d", "s1", "s2")),
        Step("create_snapshots", (("/a",), "s3")),
        Step("delete", ("/a/q",), RECURSIVE),
        Step("allow_snapshot", ("/a/d/x",)),
        Step("create_snapshots", (("/a/d/x",), "s4")),
        Step("rollback_snapshot", ("/a", "s3", "s9")),
        Step("list_snapshottable"),
    ],
    "what is shown by two roll-backs one after the other is still the same": [
        Step("create", ("/c/b",)),
        Step("allow_snapshot", ("/c",)),
        Step("create_snapshots", (("/c",), "s5")),
        Step("rename2", ("/c/b", "/b", 0)),
        Step("rollback_snapshot", ("/c", "s5", "s6")),
        Step("create_snapshots", (("/c",), "s1")),
        Step("rollback_snapshot", ("/c", "s1", "s8")),
        Step("allow_snapshot", ("/c/b",)),
        Step("rollback_snapshot", ("/c", "s1", "s9")),
        Step("list_snapshottable"),
    ],
    "what has another name where it is shown, and no row, is found": [
        Step("create", ("/b/a",)),
        Step("allow_snapshot", ("/b",)),
        Step("create_snapshots", (("/b",), "s7")),
        Step("rename2", ("/b/a", "/b/b", 0)),
        Step("allow_snapshot", ("/b/b",)),
        Step("rollback_snapshot", ("/b", "s7", "s3")),
        Step("rollback_snapshot", ("/b", "s3", "")),
        Step("rollback_snapshot", ("/b", "s3", "s9")),
        Step("delete", ("/b/b",), RECURSIVE),
        Step("rollback_snapshot", ("/b", "s9")),
        Step("delete_snapshot", ("/b", "s9")),
        Step("rollback_snapshot", ("/b", "s7", "s2")),
        Step("allow_snapshot", ("/b/a",)),
        Step("rollback_snapshot", ("/b", "s2", "s9")),
        Step("rollback_snapshot", ("/b", "s7", "")),
        Step("list_snapshottable"),
    ],
    "an original beside its copy in a clone has children of its own": [
        Step("mkdirs", ("/a/a/a",)),
        Step("mkdirs", ("/c",)),
        Step("allow_snapshot", ("/a",)),
        Step("create_snapshots", (("/a",), "s2")),
        Step("clone_snapshot", ("/a", "s2", "/c/a")),
        Step("rename2", ("/a/a", "/c/a/c", 0)),
        Step("rename2", ("/c/a/c/a", "/c/x", 0)),
        Step("check"),
    ],
    "what is not in what took its directory's place does not come back": [
        Step("create", ("/a/c/a/c",)),
        Step("allow_snapshot", ("/a/c",)),
        Step("create_snapshots", (("/a/c",), "s6")),
        Step("rollback_snapshot", ("/a/c", "s6", "")),
        Step("rollback_snapshots", (("/a/c",), "s6", "s1")),
        Step("allow_snapshot", ("/a/c/a/c",)),
        Step("mkdirs", ("/a/c/a/b/a",)),
        Step("allow_snapshot", ("/a/c/a",)),
        Step("create_snapshots", (("/a/c/a",), "s7")),
        Step("rollback_snapshot", ("/a/c/a", "s7")),
        Step("delete_snapshot", ("/a/c/a", "s7")),
        Step("disallow_snapshot", ("/a/c/a",)),
        Step("create_snapshots", (("/a/c/a/c", "/a/c"), "s4")),
        Step("rollback_snapshot", ("/a/c", "s1", "")),
        Step("rollback_snapshot", ("/a/c", "s4", "s8")),
        Step("allow_snapshot", ("/a/c/a/b",)),
        Step("rollback_snapshot", ("/a/c", "s8")),
        Step("check"),
    ],
    "what is shown while another one of it is elsewhere, and no row has it, is found": [
        Step("mkdirs", ("/b/b/b",)),
        Step("mkdirs", ("/c",)),
        Step("allow_snapshot", ("/b/b",)),
        Step("create_snapshots", (("/b/b",), "s3")),
        Step("rollback_snapshot", ("/b/b", "s3", "")),
        Step("rename2", ("/b/b/b", "/c/c", 0)),
        Step("rollback_snapshot", ("/b/b", "s3")),
        Step("create_snapshots", (("/b/b",), "s7")),
        Step("allow_snapshot", ("/b/b/b",)),
        Step("create_snapshots", (("/b/b/b",), "s5")),
        Step("rollback_snapshot", ("/b/b", "s7", "s8")),
    ],
    "what was elsewhere with a row of its own is not what was shown in its old place": [
        *MOVED_OUT,
        Step("rename2", ("/c/o/x", "/a/r", 0)),
        Step("allow_snapshot", ("/a/r",)),
        Step("create_snapshots", (("/a/r",), "s4")),
        Step("rollback_snapshot", ("/a", "s3", "s9")),
    ],
    "also if it has been moved since then": [
        *MOVED_OUT,
        Step("rename2", ("/c/o/x", "/c/y", 0)),
        Step("rename2", ("/c/y", "/a/r", 0)),
        Step("allow_snapshot", ("/a/r",)),
        Step("create_snapshots", (("/a/r",), "s4")),
        Step("rollback_snapshot", ("/a", "s3", "s9")),
    ],
    "of a flag and of snapshots the latter are kept": [
        *MOVED_IN_BETWEEN,
        Step("create_snapshots", (("/a/d/x",), "s6")),
        Step("rollback_snapshot", ("/a", "s5", "s9")),
        Step("list_snapshottable"),
    ],
    "unless what has them is the one that was elsewhere": [
        *MOVED_IN_BETWEEN,
        Step("create_snapshots", (("/a/r",), "s6")),
        Step("rollback_snapshot", ("/a", "s5", "s9")),
        Step("list_snapshottable"),
    ],
    "what is shown through many roll-backs is the same as at first": [
        Step("mkdirs", ("/a/x",)),
        Step("mkdirs", ("/c/o",)),
        Step("allow_snapshot", ("/a",)),
        Step("create_snapshots", (("/a",), "s")),
        Step("rename2", ("/a/x", "/c/o/x", 0)),
        Step("rollback_snapshot", ("/a", "s", "")),
        Step("create_snapshots", (("/a",), "t0")),
        *(
            step
            for n in range(LAYERS_MANY + 2)
            for step in (
                Step("rollback_snapshot", ("/a", f"t{n}", "")),
                Step("create_snapshots", (("/a",), f"t{n + 1}")),
            )
        ),
        Step("allow_snapshot", ("/a/x",)),
        Step("create_snapshots", (("/a/x",), "s")),
        Step("rollback_snapshot", ("/a", "t0", "")),
    ],
    "an empty block that a snapshot has is given back": [
        *CREATED,
        Step("add_block", (PathOf(0), None, FileRef(0))),
        Step("complete", (PathOf(0), block(0), FileRef(0))),
        Step("allow_snapshot", ("/a",)),
        Step("allow_snapshot", (PathOf(0),)),
        Step("create_snapshots", (("/a",), "s3")),
        Step("append", (PathOf(0),)),
        Step("abandon_block", (PathOf(0), block(0), FileRef(0))),
        Step("rollback_snapshot", ("/a", "s3")),
    ],
    "what was opened by its id is found by another one after a roll-back": [
        *CREATED,
        Step("complete", (PathOf(0), None, FileRef(0))),
        Step("append", (InodePath(0, ""),)),
        Step("complete", (PathOf(0), None, FileRef(0))),
        Step("allow_snapshot", ("/a",)),
        Step("create_snapshots", (("/a",), "s1")),
        Step("rollback_snapshot", ("/a", "s1")),
        Step("append", (PathOf(0),)),
    ],
}


@pytest.mark.parametrize("name", SNAPSHOT_TRACES)
@pytest.mark.parametrize("control", ["optimistic", "pessimistic", "system-lock"])
def test_trace_with_snapshots(name: str, control: str) -> None:
    with open_on_server(CONFIGURATIONS[f"sqlite-{control}"], None, "") as product:
        divergence = replay(product, SNAPSHOT_TRACES[name], with_snapshots=True)
    assert divergence is None, divergence


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


@pytest.mark.parametrize("control", ["optimistic", "pessimistic", "system-lock"])
def test_nothing_is_kept_for_a_snapshot_that_another_namenode_has_deleted(
    postgres_server: PostgresServer, control: str
) -> None:
    """By one that was told nothing of it: neither that it was taken, nor that it is gone."""
    trace: Trace = [
        Step("mkdirs", ("/a/x",), namenode=1),
        Step("allow_snapshot", ("/",)),
        Step("create_snapshots", (("/",), "s1")),
        Step("delete_snapshot", ("/", "s1")),
        Step("advance", (SETTLING_MS,)),
        *(Step("reclaim"),) * 10,
        Step("set_permission", ("/a/x", 0o700), namenode=1),
        Step("mkdirs", ("/a/y",), namenode=1),
    ]
    configuration = CONFIGURATIONS[f"postgres-{control}-x2"]
    with open_on_server(configuration, postgres_server, "another") as product:
        divergence = replay(product, trace, with_snapshots=True)
    assert divergence is None, divergence


@pytest.mark.parametrize("control", ["optimistic", "pessimistic", "system-lock"])
def test_what_another_namenode_has_counted_stays_for_a_snapshot_of_before_a_roll_back(
    postgres_server: PostgresServer, control: str
) -> None:
    """The directory keeps its id at the roll-back; when it is reclaimed, the snapshot needs it."""
    trace: Trace = [
        Step("allow_snapshot", ("/a",), namenode=1),
        Step("mkdirs", ("/a/b/b/b/b",)),
        Step("create_snapshots", (("/a",), "s3"), namenode=1),
        Step("rollback_snapshot", ("/a", "s3", ""), namenode=1),
        Step("allow_snapshot", ("/a/b/b/b",), namenode=1),
        Step("create_snapshots", (("/a",), "s4"), namenode=1),
        Step("rollback_snapshot", ("/a", "s4", "")),
        Step("delete", ("/a/b/b",), (("recursive", True),)),
    ]
    configuration = CONFIGURATIONS[f"postgres-{control}-x2"]
    with open_on_server(configuration, postgres_server, "counted") as product:
        divergence = replay(product, trace, with_snapshots=True)
    assert divergence is None, divergence
