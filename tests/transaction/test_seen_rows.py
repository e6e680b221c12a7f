"""What is kept of a store of our own is bounded, whatever clients ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from cairnfs.testing.scratch import scratch_namespace
from cairnfs.transaction import seen_rows
from cairnfs.transaction.optimistic import OptimisticRunner


def test_pages_without_entries_are_not_kept_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen_rows, "PAGED_ENTRIES_MAX", 10)
    with scratch_namespace(tmp_path) as fs:
        for number in range(20):
            fs.mkdirs(f"/empty{number}")
        for number in range(20):
            fs.get_listing(f"/empty{number}")
            fs.get_listing("/empty0", b"after %d" % number)
        runner = fs.namenode.namenode.runner
        assert isinstance(runner, OptimisticRunner)
        assert runner._cache is not None
        assert 1 <= sum(map(len, runner._cache._pages.values())) <= 10
