"""The machine's clock, as whoever is given it sees it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cairnfs.clock import SystemClock
from cairnfs.config import NameNodeSettings
from cairnfs.namenode.embedded import NameNodeThread
from cairnfs.namenode.opening import format_namespace


@pytest.fixture
def before_1970() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: -315_360_000_000_000_001)
        yield


def test_it_tells_milliseconds() -> None:
    before_s, now_ms, after_s = time.time(), SystemClock().now_ms(), time.time()
    assert before_s * 1000 - 1 <= now_ms <= after_s * 1000


def test_before_1970_is_1970(before_1970: None) -> None:
    assert SystemClock().now_ms() == 0


def test_a_namespace_of_before_1970(before_1970: None, tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/namespace.db"
    asyncio.run(format_namespace(url))
    with NameNodeThread(NameNodeSettings(url)) as namenode:
        client = namenode.client()
        client.mkdirs("/d")
        client.create("/d/f")
        client.allow_snapshot("/d")
        client.create_snapshot("/d", "")
        listing = client.get_listing("/d")
        assert listing is not None
        for status in (*listing.entries, client.get_file_info("/d"), client.get_file_info("/")):
            assert status is not None
            assert (status.mtime_ms, status.atime_ms) == (0, 0)
