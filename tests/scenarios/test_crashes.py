"""Nothing acknowledged is lost, whatever is killed: see `crash_run`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scenarios.crash_run import Result, run

SECONDS = 120.0


@pytest.mark.long
@pytest.mark.java
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_acknowledged_record_is_there(tmp_path: Path, seed: int) -> None:
    check(run(tmp_path, seed, SECONDS))


@pytest.mark.long
@pytest.mark.java
@pytest.mark.timeout(900)
def test_every_acknowledged_record_is_there_with_two_namenodes(
    tmp_path: Path, postgres_dsn: str
) -> None:
    check(run(tmp_path, 3, SECONDS, postgres_dsn))


def check(result: Result) -> None:
    print(result)
    assert not result.lost
    assert result.records > 100
    assert sum(result.faults.values()) > 10
