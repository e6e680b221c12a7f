"""A call that must not run twice does not, even if its first try is slow and its NameNode alive."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import pytest

from cairnfs.config import NameNodeSettings
from cairnfs.namenode.opening import format_namespace
from cairnfs.testing.faults import COMMIT
from cairnfs.testing.invariants import check_invariants
from cairnfs.testing.peers import LocalPeer


@pytest.fixture
def peers(postgres_dsn: str) -> Iterator[tuple[LocalPeer, LocalPeer]]:
    asyncio.run(format_namespace(postgres_dsn))
    settings = NameNodeSettings(postgres_dsn, duties=False, expiry_s=60)
    with LocalPeer(settings) as slow, LocalPeer(settings) as other:
        yield slow, other


def test_a_retry_elsewhere_overtakes_the_first_try(peers: tuple[LocalPeer, LocalPeer]) -> None:
    slow, other = peers
    key = (uuid.uuid4().bytes, 7)
    slow.pause_at(COMMIT)
    first_try = slow.start("create", "/f", overwrite=True, key=key)
    assert slow.wait_until_paused(COMMIT)

    retried = other.call("create", "/f", overwrite=True, key=key, is_retry=True)
    slow.resume(COMMIT)

    assert first_try.result(60).id == retried.id, "the first try has made another file"
    assert other.call("get_file_info", "/f").id == retried.id
    assert other.call("get_content_summary", "/").files == 1
    other.thread.wait(check_invariants(other.store.inner))


def test_a_rename_that_is_overtaken_is_not_done_again(peers: tuple[LocalPeer, LocalPeer]) -> None:
    slow, other = peers
    other.call("mkdirs", "/a")
    other.call("create", "/a/f")
    key = (uuid.uuid4().bytes, 1)
    slow.pause_at(COMMIT)
    first_try = slow.start("rename", "/a/f", "/a/g", key=key)
    assert slow.wait_until_paused(COMMIT)

    assert other.call("rename", "/a/f", "/a/g", key=key, is_retry=True) is True
    other.call("create", "/a/f")  # what the first try, run again, would find
    other.call("delete", "/a/g")
    slow.resume(COMMIT)

    assert first_try.result(60) is True
    assert other.call("get_file_info", "/a/f") is not None
    assert other.call("get_file_info", "/a/g") is None
