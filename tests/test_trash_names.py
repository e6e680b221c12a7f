"""Names of checkpoints say when they were made."""

from __future__ import annotations

import pytest

from cairnfs.trash_names import checkpoint_names, parse_checkpoint

MINUTE_MS = 60_000


def test_names_and_times_are_inverses() -> None:
    moment_ms = 1_700_000_437_000
    names = checkpoint_names(moment_ms)
    assert len(set(names)) == len(names)
    assert {parse_checkpoint(name) for name in names} == {moment_ms}
    of_hadoop_1 = names[0][:10]
    assert parse_checkpoint(of_hadoop_1) == moment_ms // MINUTE_MS * MINUTE_MS


@pytest.mark.parametrize("name", ["Current", "", "1", "123456789012-", "999999999999", "²" * 12])
def test_other_names_are_no_checkpoints(name: str) -> None:
    assert parse_checkpoint(name) is None
