"""What the engines give without us is measured on the tables as they are."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from benchmarks.bars import judge
from benchmarks.beside_raw import measure_beside_raw
from benchmarks.namespaces import POSTGRES, SQLITE, Namespaces
from benchmarks.raw import GROUP, measure_raw

from cairnfs.testing.postgres_server import PostgresServer


@pytest.mark.parametrize("kind", [SQLITE, POSTGRES])
def test_rows_are_put_into_the_real_tables(
    kind: str, tmp_path: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.raw.GROUPS_MAX", 5)
    namespaces = Namespaces(tmp_path, postgres_server)
    samples = asyncio.run(measure_raw(namespaces, kind, spread=4, seconds=10))
    assert [(each["what"], each["directories"]) for each in samples] == [
        *(("insert", 4), ("create", 4), ("insert", 1), ("create", 1)),
    ]
    assert all(each["per_s"] > GROUP for each in samples)


def test_creates_are_compared_with_inserts_of_the_same_turn(
    tmp_path: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.raw.GROUPS_MAX", 5)
    namespaces = Namespaces(tmp_path, postgres_server)
    measured = measure_beside_raw(namespaces, turns=2, seconds=0.1, progress=lambda text: None)
    found = asyncio.run(measured)
    rates = found["rates"]
    ratios = [a / b for a, b in zip(rates["create_one"], rates["insert_one"], strict=True)]
    assert found["one_over_insert"] == pytest.approx(sum(ratios) / 2, rel=0.01)
    bars = {bar.name: bar for bar in judge({"stores": ["postgres"], "beside_raw": found})}
    bar = bars["postgres: create, one directory, over the raw grouped insert"]
    assert bar.passed is (found["one_over_insert"] >= 0.25)
