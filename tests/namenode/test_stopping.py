"""A NameNode that stops does all there is to do for it, whatever fails of it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from cairnfs.clock import SystemClock
from cairnfs.config import NameNodeSettings
from cairnfs.namenode.namenode import NameNode
from cairnfs.namenode.opening import OpenStore, format_namespace, open_store
from cairnfs.testing.faults import SteppedStore
from cairnfs.transaction.runner import LoneMember


class LastingMember(LoneMember):
    async def leave(self) -> None:
        raise OSError("the others cannot be told")


class LastingStore(SteppedStore):
    async def close(self) -> None:
        await self.inner.close()
        raise OSError("the disk is gone")


def test_every_step_is_taken_and_every_failure_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def start_and_stop() -> None:
        url = f"sqlite:{tmp_path}/namespace.db"
        await format_namespace(url)
        settings = NameNodeSettings(url)
        opened = await open_store(settings)
        failing = OpenStore(LastingStore(opened.store), LastingMember(), opened.meta)
        namenode = NameNode(settings, failing, SystemClock())
        with pytest.raises(OSError, match="the others cannot be told"):
            await namenode.stop()
        with pytest.raises(Exception, match="closed"):
            await opened.store.meta()

    with caplog.at_level(logging.ERROR, "cairnfs.namenode"):
        asyncio.run(start_and_stop())
    told = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [str(error) for error in told] == ["the disk is gone"]
