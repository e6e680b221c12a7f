"""The metadata of the file system as a DataFrame, at one moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

import cairnfs
from cairnfs.spark.views import list_views
from cairnfs.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.java

Load = Callable[..., "DataFrame"]


@pytest.fixture
def load(spark: SparkSession, cluster: Cluster, directory: str) -> Load:
    def load(path: str = directory, schema: str = "", **options: str) -> DataFrame:
        reader = spark.read.format("cairn").options(**options)
        if schema:
            reader = reader.schema(schema)
        return reader.load(f"{cluster.uri}{path}")

    return load


@pytest.fixture
def fs(cluster: Cluster, directory: str) -> Iterator[cairnfs.FileSystem]:
    """With a tree of 41 inodes, of which 30 are files, below the test's directory."""
    with cairnfs.connect(cluster.uri) as fs:
        for n in range(30):
            with fs.create(f"{directory}/d{n % 10}/f{n}") as file:
                file.write(b"x" * n)
        yield fs


def test_it_is_what_the_file_system_tells(
    fs: cairnfs.FileSystem, load: Load, directory: str
) -> None:
    expected = {}
    directories = fs.list_status(directory)
    files = [file for each in directories for file in fs.list_status(each.path)]
    for status in (fs.get_file_status(directory), *directories, *files):
        is_file = status.is_file
        expected[status.path] = (
            "file" if is_file else "directory",
            status.length_bytes if is_file else None,
            status.owner,
            status.mtime_ms,
        )
    rows = load(inodes="7").collect()
    found = {
        row.path: (row.kind, row.length, row.owner, round(row.modified.timestamp() * 1000))
        for row in rows
    }
    assert found == expected
    assert len(rows) == len(expected) == 41
    (top,) = [row for row in rows if row.path == directory]
    assert (top.files_below, top.directories_below, top.length_below) == (30, 10, 435)


def test_all_partitions_are_of_one_moment(
    fs: cairnfs.FileSystem, load: Load, directory: str
) -> None:
    rows = load(inodes="5", schema="parent string").rdd
    assert rows.getNumPartitions() >= 5  # which has opened the view
    for n in range(10):
        fs.delete(f"{directory}/d{n}", recursive=True)
    assert Counter(row.parent for row in rows.collect()) == {
        directory: 10,
        directory.rpartition("/")[0]: 1,
        **{f"{directory}/d{n}": 3 for n in range(10)},
    }


def test_filters_by_path_look_only_there(
    fs: cairnfs.FileSystem, load: Load, spark: SparkSession, directory: str
) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    paths = load(schema="path string, length bigint", pushdown="true")
    below = paths.where(paths.path.startswith(f"{directory}/d3/"))
    assert {row.path for row in below.collect()} == {f"{directory}/d3/f{n}" for n in (3, 13, 23)}
    assert paths.where(paths.path.startswith(f"{directory}/nothing/")).count() == 0
    assert {view.path for view in list_views(fs)} >= {f"{directory}/d3"}


def test_as_it_was(fs: cairnfs.FileSystem, load: Load, directory: str) -> None:
    """By the name of a snapshot, also of a directory above, or by a time."""
    fs.allow_snapshot(directory)
    fs.create_snapshot(directory, "s1")
    taken_ms = fs.list_snapshots(directory)[0].status.mtime_ms
    fs.delete(f"{directory}/d1", recursive=True)
    assert load().count() == 41 - 4
    assert load(asof="s1").count() == 41
    after = datetime.fromtimestamp(taken_ms / 1000 + 1).isoformat()
    assert load(f"{directory}/d1", table="blocks", asof=after).count() == 3
    with pytest.raises(Exception, match=f"neither a time.*nor a snapshot of {directory}"):
        load(asof="s2").count()
    with pytest.raises(Exception, match=r"asof is for the tables inodes, .* leases cannot be read"):
        load(table="leases", asof="s1").count()
    fs.delete_snapshot(directory, "s1")


def test_every_table_is_a_dataframe(fs: cairnfs.FileSystem, load: Load, directory: str) -> None:
    """What is in them is compared without Spark, in test_table_rows."""
    fs.set_xattr(f"{directory}/d0", "user.a", b"\xff")
    fs.allow_snapshot(directory)
    fs.create_snapshot(directory, "s1")
    fs.delete(f"{directory}/d1", recursive=True)
    with fs.create(f"{directory}/open"):
        rows = {
            "blocks": 26,  # a file of 30 is empty, three are gone
            "replicas": 26,  # or more: others are reported a moment later
            "attributes": 1,
            "snapshots": 1,
            "leases": 1,
            "changes": 2,
        }
        for table, count in rows.items():
            assert len(load(table=table, inodes="9", **{"from": "s1"}).collect()) >= count, table
    fs.delete_snapshot(directory, "s1")


def test_mistakes_are_told(fs: cairnfs.FileSystem, load: Load) -> None:
    with pytest.raises(Exception, match="no table 'files', but inodes"):
        load(table="files").count()
    with pytest.raises(Exception, match="no column 'size', but path"):
        load(schema="size bigint").count()
    with pytest.raises(Exception, match="column length of the table inodes is bigint, not string"):
        load(schema="length string").count()
    with pytest.raises(Exception, match="inodes='0'"):
        load(inodes="0").count()
    with pytest.raises(Exception, match="Directory does not exist: /nothing"):
        load("/nothing").count()
