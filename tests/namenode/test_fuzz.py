"""Random calls are answered, whatever is in them."""

from __future__ import annotations

from pathlib import Path

from tests.namenode.fuzz import fuzz
from tests.namenode.rpc import FixedGroups, running_server

from cairnfs.testing.scratch import scratch_namespace


def test_random_calls_are_answered_with_names(tmp_path: Path) -> None:
    with (
        scratch_namespace(tmp_path) as scratch,
        running_server(scratch, FixedGroups(alice=("staff",))) as server,
    ):
        outcomes = fuzz(server, 3000, seed=1)
    assert outcomes["answered"] > 100
