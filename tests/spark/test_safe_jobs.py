"""Jobs that can be undone: output at once, directories that go back together, data as it was."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

import cairnfs
from cairnfs.errors import (
    FileNotFoundException,
    IllegalArgumentException,
    IOException,
    SnapshotException,
)
from cairnfs.spark import (
    as_of,
    atomic_output,
    guarded,
    pin_inputs,
    read,
    record_inputs,
    recorded_inputs,
    write_atomically,
)
from cairnfs.spark.inputs import RECORD_NAME, read_record
from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


@pytest.fixture
def fs(cluster: Cluster) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(cluster.uri) as fs:
        yield fs


@pytest.fixture
def tables(fs: cairnfs.FileSystem, cluster: Cluster, directory: str) -> Iterator[list[str]]:
    """Two directories with a file each, of which snapshots may be taken: their URLs."""
    paths = [f"{directory}/{name}" for name in ("orders", "customers")]
    for path in paths:
        fs.mkdirs(path)
        fs.allow_snapshot(path)
        with fs.create(f"{path}/part-0") as file:
            file.write(b"good")
    yield [f"{cluster.uri}{path}" for path in paths]
    for path in paths:
        for snapshot in fs.list_snapshots(path):
            fs.delete_snapshot(path, snapshot.status.name)


def damage(fs: cairnfs.FileSystem, *tables: str) -> None:
    for table in tables:
        with fs.create(f"{table}/part-0", overwrite=True) as file:
            file.write(b"bad")
        fs.create(f"{table}/part-1").close()


def content(fs: cairnfs.FileSystem, table: str) -> dict[str, bytes]:
    found = {}
    for status in fs.list_status(table):
        with fs.open(status.path) as file:
            found[status.name] = file.read()
    return found


GOOD = {"part-0": b"good"}
BAD = {"part-0": b"bad", "part-1": b""}


# Directories that go back together


def test_what_a_job_did_is_undone_everywhere_if_it_fails(
    fs: cairnfs.FileSystem, tables: list[str]
) -> None:
    def job() -> None:
        with guarded(*tables) as guard:
            damage(fs, *tables)
            assert content(fs, f"{tables[0]}/.snapshot/{guard.name}") == GOOD
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as failed:
        job()
    for table in tables:
        assert content(fs, table) == GOOD
        (kept,) = fs.list_snapshots(table)  # the guard itself is gone
        assert content(fs, kept.status.path) == BAD
        assert kept.status.path in failed.value.__notes__[0]


def test_what_succeeds_stays(fs: cairnfs.FileSystem, tables: list[str]) -> None:
    @guarded(*tables)
    def job(number: int) -> int:
        damage(fs, *tables)
        return number

    assert job(7) == 7
    for table in tables:
        assert content(fs, table) == BAD
        assert not fs.list_snapshots(table)
    with guarded(*tables, keep=True) as guard:
        pass
    assert [each.status.name for table in tables for each in fs.list_snapshots(table)] == [
        guard.name
    ] * 2


def test_a_run_that_was_killed_is_made_up_for(fs: cairnfs.FileSystem, tables: list[str]) -> None:
    attempt = guarded(*tables, job="nightly")
    attempt.__enter__()
    damage(fs, *tables)  # and there it ends
    with guarded(*tables, job="nightly"):
        for table in tables:
            assert content(fs, table) == GOOD
    fs.create_snapshot(tables[0], "guard-weekly")
    with pytest.raises(SnapshotException, match="not all of the directories"):
        guarded(*tables, job="weekly").__enter__()


def test_what_cannot_be_guarded_is_told_before_the_job_runs(
    fs: cairnfs.FileSystem, tables: list[str], directory: str
) -> None:
    fs.mkdirs(f"{directory}/plain")
    with pytest.raises(SnapshotException, match="plain"), guarded(*tables, f"{directory}/plain"):
        pytest.fail("it runs")
    with pytest.raises(IllegalArgumentException, match="no directory"), guarded():
        pytest.fail("it runs")
    assert not fs.list_snapshots(tables[0])


def test_all_go_back_or_none(fs: cairnfs.FileSystem, tables: list[str]) -> None:
    fs.create_snapshots(tables, "s")
    fs.delete_snapshot(tables[1], "s")
    damage(fs, *tables)
    with pytest.raises(SnapshotException, match="customers back to snapshot s"):
        fs.rollback_snapshots(tables, "s")
    with pytest.raises(SnapshotException, match="one is in the other"):
        fs.rollback_snapshots([tables[0], tables[0]], "s")
    with pytest.raises(IllegalArgumentException, match="a list"):
        fs.rollback_snapshots(tables[0], "s")
    assert content(fs, tables[0]) == BAD
    assert len(fs.list_snapshots(tables[0])) == 1


# Output that is there at once


def test_output_is_seen_when_it_is_whole(fs: cairnfs.FileSystem, tables: list[str]) -> None:
    table = tables[0]
    fs.create_snapshot(table, "before")
    with atomic_output(table) as place:
        damage(fs, place)
        assert content(fs, table) == GOOD
    assert content(fs, table) == BAD
    assert content(fs, f"{table}/.snapshot/before") == GOOD
    with pytest.raises(IllegalArgumentException, match="none of"), atomic_output(table, "merge"):
        pytest.fail("it runs")


def test_output_that_fails_leaves_nothing(fs: cairnfs.FileSystem, tables: list[str]) -> None:
    places = []

    def job() -> None:
        with atomic_output(f"{tables[0]}/", "append") as place:
            places.append(place)
            damage(fs, place)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        job()
    assert content(fs, tables[0]) == GOOD
    assert not fs.exists(places[0])


def test_spark_overwrites_a_table_that_has_snapshots(
    spark: SparkSession, fs: cairnfs.FileSystem, cluster: Cluster, directory: str
) -> None:
    """Which it cannot by itself: it would delete the directory."""
    table = f"{cluster.uri}{directory}/t"
    write_atomically(spark.range(6), table)
    fs.allow_snapshot(table)
    fs.create_snapshot(table, "s")
    by_parity = spark.range(10).selectExpr("id", "id % 2 AS odd")
    write_atomically(by_parity, table, partition_by=["odd"])
    assert spark.read.parquet(table).count() == 10
    write_atomically(by_parity.where("id = 3"), table, mode="append", partition_by=["odd"])
    assert spark.read.parquet(table).count() == 11
    few = by_parity.where("id = 4")
    write_atomically(few, table, mode="overwrite-partitions", partition_by=["odd"])
    assert spark.read.parquet(table).groupBy("odd").count().orderBy("odd").collect() == [
        (0, 1),
        (1, 6),
    ]
    assert read(spark).option("asof", "s").parquet(table).count() == 6
    fs.delete_snapshot(table, "s")


# Data as it was


def test_data_as_of_a_snapshot_or_a_time(
    fs: cairnfs.FileSystem, cluster: Cluster, tables: list[str], directory: str
) -> None:
    table = tables[0]
    fs.allow_snapshot(directory)
    fs.create_snapshot(directory, "above")
    time.sleep(0.01)  # times are told in milliseconds
    between = datetime.now(UTC)
    time.sleep(0.01)
    fs.create_snapshot(table, "own")
    inside = f"{cluster.uri}{directory}/.snapshot/above/orders/part-0"
    assert as_of(f"{table}/part-0", "above") == inside
    assert as_of(f"{table}/part-0", "own") == f"{table}/.snapshot/own/part-0"
    assert as_of(f"{table}/part-0", between) == inside
    assert as_of(f"{table}/part-0", between.isoformat()) == inside
    assert as_of(table, datetime.now(UTC)) == f"{table}/.snapshot/own"
    with pytest.raises(SnapshotException, match="no snapshot as old as 1999"):
        as_of(table, "1999-01-01")
    with pytest.raises(IllegalArgumentException, match=r"neither a time.*own \(of /tests"):
        as_of(table, "long ago")
    fs.delete_snapshot(directory, "above")


# What a result came from


def test_a_result_knows_its_inputs(
    fs: cairnfs.FileSystem, cluster: Cluster, tables: list[str], directory: str
) -> None:
    model = f"{cluster.uri}{directory}/model"
    inputs = pin_inputs({"orders": tables[0], "customers": tables[1]}, "model-7")
    damage(fs, *tables)
    record_inputs(model, inputs, learning_rate=0.1)
    found = recorded_inputs(model)
    assert found == inputs
    assert content(fs, found["orders"].url) == GOOD
    assert read_record(model).facts == {"learning_rate": 0.1}
    fs.delete_snapshot(tables[0], "model-7")
    with pytest.raises(SnapshotException, match="no snapshot model-7"):
        recorded_inputs(model)
    fs.create_snapshot(tables[0], "model-7")
    with pytest.raises(SnapshotException, match="is another one now"):
        recorded_inputs(model)
    with pytest.raises(FileNotFoundException, match="does not say what it came from"):
        recorded_inputs(tables[0])
    with fs.create(f"{model}/{RECORD_NAME}", overwrite=True) as file:
        file.write(b"{")
    with pytest.raises(IOException, match="damaged"):
        recorded_inputs(model)
