"""A report reaches one NameNode while a writer finishes the block with another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import msgspec
import pytest

from cairnfs.blocks.records import Block, BlockState, StorageNumber
from cairnfs.blocks.reports import ReplicaChange, ReportedReplica, receive_changes
from cairnfs.config import Control, NameNodeSettings
from cairnfs.namenode.embedded import ClientProtocol
from cairnfs.namenode.opening import format_namespace
from cairnfs.namesystem.file_blocks import add_block
from cairnfs.namesystem.inodes import InodeId
from cairnfs.namesystem.paths import FsPath
from cairnfs.testing.faults import COMMIT, TAKE_CLOCK
from cairnfs.testing.peers import WAIT_LIMIT_S, LocalPeer

DISK = StorageNumber(1)
LENGTH = 10
IDS_END = 1 << 62
BLOCKED_S = 0.25  # so long we watch a report that may be waiting for a lock


@pytest.fixture(params=Control, ids=lambda control: control.value)
def peers(
    request: pytest.FixtureRequest, postgres_dsn: str
) -> Iterator[tuple[LocalPeer, LocalPeer, str]]:
    """Two NameNodes on one store, and the step at which a call has run and not committed."""
    asyncio.run(format_namespace(postgres_dsn))
    settings = NameNodeSettings(postgres_dsn, control=request.param, duties=False)
    step = TAKE_CLOCK if request.param is Control.PESSIMISTIC else COMMIT
    with LocalPeer(settings) as one, LocalPeer(settings) as other:
        yield one, other, step


def begin_block(client: ClientProtocol, path: str, previous: Block | None = None) -> Block:
    """The next block of a file, as its writer describes it when it is written."""
    located = client._call(
        add_block,
        FsPath.parse(path),
        client.client_name,
        previous,
        InodeId(0),
        lambda file, policy_id: (DISK,),
    )
    return msgspec.structs.replace(
        located.block, length_bytes=LENGTH, state=BlockState.COMPLETE, targets=()
    )


def report(peer: LocalPeer, block: Block) -> None:
    change = ReplicaChange(DISK, ReportedReplica(block.id, block.generation_stamp, LENGTH))
    peer.thread.wait(peer.thread.namenode.call(receive_changes, [change], IDS_END))


def play(peers: tuple[LocalPeer, LocalPeer, str], writing: Callable[[], Any], block: Block) -> Any:
    """A writer's call with the first NameNode, while the other one takes the report."""
    one, other, step = peers
    one.pause_at(step)
    pool = ThreadPoolExecutor(2)
    written = pool.submit(writing)
    assert one.wait_until_paused(step)
    reported = pool.submit(report, other, block)
    wait([reported], BLOCKED_S)
    one.resume(step)
    reported.result(WAIT_LIMIT_S)
    return written.result(WAIT_LIMIT_S)


def test_a_block_that_is_reported_while_its_file_is_closed(
    peers: tuple[LocalPeer, LocalPeer, str],
) -> None:
    client = peers[0].client()
    client.create("/file")
    block = begin_block(client, "/file")
    is_closed = play(peers, lambda: client.complete("/file", block), block)
    assert is_closed or client.complete("/file", block)


def test_a_block_that_is_reported_while_the_next_is_begun(
    peers: tuple[LocalPeer, LocalPeer, str],
) -> None:
    client = peers[0].client()
    client.create("/file")
    first = begin_block(client, "/file")
    second = play(peers, lambda: begin_block(client, "/file", first), first)
    report(peers[1], second)
    assert client.complete("/file", second)
