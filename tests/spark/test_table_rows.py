"""Each table beside what the API tells of the same files, on both stores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.spark.rows import Row, read_table

import cairnfs
from cairnfs.errors import (
    AccessControlException,
    FileNotFoundException,
    HdfsError,
    IllegalArgumentException,
    SnapshotException,
)
from cairnfs.spark.change_stream import ChangeStream
from cairnfs.spark.source import CairnDataSource
from cairnfs.spark.views import find_view, list_views, open_view
from cairnfs.testing.cluster import Cluster
from cairnfs.testing.postgres_server import PostgresServer

BLOCK_BYTES = 1 << 20


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """One NameNode with SQLite, or two with PostgreSQL; three DataNodes."""
    directory = tmp_path_factory.mktemp("tables") / "cluster"
    if request.param == "sqlite":
        with Cluster(directory) as cluster:
            yield cluster
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = f"tables{os.getpid()}"
    with Cluster(directory, namenodes=2, store=server.create_database(name)) as cluster:
        yield cluster
    server.drop_database(name)


@pytest.fixture
def url(cluster: Cluster) -> str:
    """All NameNodes, each of which may be asked."""
    return f"hdfs://{','.join(node.address for node in cluster.namenodes)}"


@pytest.fixture
def fs(url: str, directory: str) -> Iterator[cairnfs.FileSystem]:
    with cairnfs.connect(url) as fs:
        fs.mkdirs(directory)
        yield fs
        for view in list_views(fs):
            view.close()


def write(fs: cairnfs.FileSystem, path: str, size: int, **options: int) -> None:
    with fs.create(path, block_size=BLOCK_BYTES, **options) as file:
        file.write(b"x" * size)


def by_path(rows: list[Row], *names: str) -> dict[str, list[tuple[object, ...]]]:
    found: dict[str, list[tuple[object, ...]]] = {}
    for row in rows:
        found.setdefault(row["path"], []).append(tuple(row[name] for name in names))
    return found


def test_inodes(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    """Every NameNode reads its part of one view: nothing twice, nothing left out."""
    expected = {directory}
    for d in range(12):
        fs.mkdirs(f"{directory}/d{d}/empty")
        expected |= {f"{directory}/d{d}", f"{directory}/d{d}/empty"}
        for f in range(d):
            fs.create_symlink("/nowhere", f"{directory}/d{d}/l{f}")
            expected.add(f"{directory}/d{d}/l{f}")
    source_rows = read_table(f"{url}{directory}", "inodes", inodes="7")
    assert sorted(row["path"] for row in source_rows) == sorted(expected)
    below = {row["path"]: row["directories_below"] for row in source_rows}
    assert (below[directory], below[f"{directory}/d3"]) == (24, 1)
    assert below[f"{directory}/d3/l1"] is None


def test_storage_policies_are_those_that_hold(
    fs: cairnfs.FileSystem, url: str, directory: str
) -> None:
    """Their own or inherited ones; they are not among the attributes, as for callers of the API."""
    write(fs, f"{directory}/cold/d/file", 1)
    write(fs, f"{directory}/cold/warm", 1)
    write(fs, f"{directory}/plain", 1)
    fs.create_symlink("/nowhere", f"{directory}/link")
    fs.set_storage_policy(f"{directory}/cold", "COLD")
    fs.set_storage_policy(f"{directory}/cold/warm", "WARM")
    fs.set_permission(f"{directory}/cold/warm", 0o700)
    for user in (fs.user, "alice"):
        for top in (directory, f"{directory}/cold/d"):
            rows = read_table(f"{url}{top}", "inodes", "path", "storage_policy", user=user)
            for row in rows:
                is_link = row["path"] == f"{directory}/link"
                wanted = None if is_link else fs.get_storage_policy(row["path"]).name
                assert row["storage_policy"] == wanted, (user, row)
    assert read_table(f"{url}{directory}", "attributes") == []


def test_several_tables_are_of_one_moment(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    write(fs, f"{directory}/before", 1)
    with open_view(fs, directory) as view:
        write(fs, f"{directory}/after", 1)
        for table, paths in (
            ("inodes", {directory, f"{directory}/before"}),
            ("blocks", {f"{directory}/before"}),
        ):
            rows = read_table(f"{url}{directory}", table, "path", view=str(view.number))
            assert {row["path"] for row in rows} == paths
        with pytest.raises(IllegalArgumentException, match=f"is one of {directory}"):
            read_table(f"{url}/", "inodes", view=str(view.number))


def test_blocks(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    write(fs, f"{directory}/d/large", 2 * BLOCK_BYTES + 5)
    write(fs, f"{directory}/d/small", 3, replication=1)
    write(fs, f"{directory}/d/empty", 0)
    fs.allow_snapshot(directory)
    fs.create_snapshot(directory, "before")
    fs.truncate(f"{directory}/d/large", BLOCK_BYTES)
    large = fs.get_file_status(f"{directory}/d/large").id

    columns = ("index", "offset", "length", "state", "replication", "file_id")
    then = read_table(f"{url}{directory}/.snapshot/before", "blocks")
    assert by_path(then, *columns)[f"{directory}/.snapshot/before/d/large"] == [
        (0, 0, BLOCK_BYTES, "complete", 3, large),
        (1, BLOCK_BYTES, BLOCK_BYTES, "complete", 3, large),
        (2, 2 * BLOCK_BYTES, 5, "complete", 3, large),
    ]
    now = read_table(f"{url}{directory}", "blocks")
    assert by_path(now, *columns[:-1]) == {
        f"{directory}/d/large": [(0, 0, BLOCK_BYTES, "complete", 3)],
        f"{directory}/d/small": [(0, 0, 3, "complete", 1)],
    }
    located = fs.get_block_locations(f"{directory}/d/small")
    (small,) = by_path(now, "block_id")[f"{directory}/d/small"]
    assert small == (located[0].block_id,)
    fs.delete_snapshot(directory, "before")


def test_replicas(cluster: Cluster, fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    write(fs, f"{directory}/three", 10)
    write(fs, f"{directory}/one", 10, replication=1)
    path = f"{directory}/three"
    cluster.wait_until(
        lambda: len(read_table(f"{url}{directory}", "replicas")) == 4, "all replicas are known"
    )
    rows = read_table(f"{url}{directory}", "replicas")
    (places,) = cluster.replica_places(path)
    of_three = [row for row in rows if row["path"] == path]
    assert {row["datanode"].rpartition(":")[2] for row in of_three} == {
        str(place.port) for place in places
    }
    assert {row["block_id"] for row in of_three} == {place.block_id for place in places}
    assert {
        (row["state"], row["datanode_state"], row["storage_type"], row["length"]) for row in rows
    } == {("live", "live", "DISK", 10)}
    assert len({row["storage"] for row in of_three}) == 3
    counted = ("live_replicas", "staying_replicas", "corrupt_replicas", "excess_replicas")
    blocks = read_table(f"{url}{directory}", "blocks", "path", *counted)
    assert by_path(blocks, *counted) == {path: [(3, 3, 0, 0)], f"{directory}/one": [(1, 1, 0, 0)]}

    with fs.create(f"{directory}/open") as file:
        file.write(b"y")
        file.flush()
        rows = read_table(f"{url}{directory}", "replicas", "path", "state")
        assert {row["state"] for row in rows if row["path"].endswith("open")} == {"writing"}


def test_attributes(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    """What the API shows of each inode, and where it comes from."""
    name = "user.tier" + directory.rpartition("/")[2].replace("_", "")
    fs.declare_xattr(name, "follow-path")
    below = f"{directory}/below"
    write(fs, f"{below}/file", 1)
    write(fs, f"{below}/other/file", 1)
    fs.set_xattr(f"{below}/file", "user.own", b"\xff")
    fs.set_xattr(directory, name, b"warm")
    fs.set_xattr(f"{below}/other", name, b"cold")
    fs.mkdirs(f"{directory}/plain")
    fs.rename(f"{below}/other/file", f"{directory}/plain/file")
    fs.remove_xattr(f"{directory}/plain", name)

    # Also of a directory that inherits from above where it begins.
    for top in (directory, below):
        rows = read_table(f"{url}{top}", "attributes", inodes="2")
        found = {(row["path"], row["name"]): row["value"] for row in rows}
        paths = [row["path"] for row in read_table(f"{url}{top}", "inodes", "path")]
        assert found == {
            (path, attribute): value
            for path in paths
            for attribute, value in fs.get_xattrs(path).items()
        }
        assert len(rows) == len(found)
    sources = {row["path"]: row["source"] for row in rows if row["name"] == name}
    assert sources == {
        below: directory,
        f"{below}/file": directory,
        f"{below}/other": f"{below}/other",
    }
    (own,) = (row for row in rows if row["name"] == "user.own")
    assert (own["reach"], own["is_own"], own["text"]) == ("local", True, None)
    (inherited,) = (row for row in rows if row["path"] == below)
    assert (inherited["reach"], inherited["is_own"], inherited["text"]) == (
        *("follow-path", False),
        "warm",
    )


def test_only_attributes_that_one_may_see(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    write(fs, f"{directory}/readable", 1)
    write(fs, f"{directory}/secret", 1)
    for name in ("readable", "secret"):
        fs.set_xattr(f"{directory}/{name}", "user.a", b"1")
        fs.set_xattr(f"{directory}/{name}", "trusted.b", b"2")
    fs.set_permission(f"{directory}/secret", 0o600)
    rows = read_table(f"{url}{directory}", "attributes", user="alice")
    assert [(row["path"], row["name"]) for row in rows] == [(f"{directory}/readable", "user.a")]
    assert len(read_table(f"{url}{directory}", "attributes")) == 4


def test_snapshots(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    write(fs, f"{directory}/a/file", 10)
    write(fs, f"{directory}/b/file", 7, replication=1)
    for name in ("a", "b"):
        fs.allow_snapshot(f"{directory}/{name}")
    fs.create_snapshots([f"{directory}/a", f"{directory}/b"], "both")
    fs.create_snapshot(f"{directory}/b", "later")
    fs.delete(f"{directory}/a/file")
    rows = read_table(f"{url}{directory}", "snapshots")
    told = by_path(rows, "name", "files", "length", "referenced", "exclusive")
    assert told == {
        f"{directory}/a": [("both", 1, 10, 30, 30)],
        f"{directory}/b": [("both", 1, 7, 7, 0), ("later", 1, 7, 7, 0)],
    }
    txids = {(row["path"][-1], row["name"]): row["txid"] for row in rows}
    assert txids["a", "both"] == txids["b", "both"] < txids["b", "later"]
    assert read_table(f"{url}{directory}/b", "snapshots", "name") == [
        {"name": "both"},
        {"name": "later"},
    ]
    for row in rows:
        fs.delete_snapshot(row["path"], row["name"])


def test_leases(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    write(fs, f"{directory}/closed", 1)
    with fs.create(f"{directory}/open") as file:
        file.write(b"hello")
        file.flush()
        (row,) = read_table(f"{url}{directory}", "leases")
        assert (row["path"], row["user"], row["length"]) == (f"{directory}/open", fs.user, 5)
        assert row["holder"].startswith("DFSClient_cairnfs")
        assert row["since"] <= row["renewed"]
    assert read_table(f"{url}{directory}", "leases") == []
    with pytest.raises(AccessControlException, match="list leases"):
        read_table(f"{url}{directory}", "leases", user="alice")


def test_changes(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    write(fs, f"{directory}/d/a", 1)
    write(fs, f"{directory}/d/b", 1)
    fs.allow_snapshot(directory)
    fs.create_snapshot(directory, "s1")
    (s1,) = read_table(f"{url}{directory}", "snapshots", "txid")
    fs.rename(f"{directory}/d/a", f"{directory}/c")
    fs.delete(f"{directory}/d/b")
    fs.create_snapshot(directory, "s2")
    held = open_view(fs, directory)
    fs.mkdirs(f"{directory}/new")

    columns = ("change", "path", "other_path", "txid", "position")
    top = f"{url}{directory}"

    def absolute(path: str | None) -> str | None:
        return path and os.path.normpath(f"{directory}/{path}")

    wanted = [
        (change.kind.name, absolute(change.path), absolute(change.other), change.txid)
        for change in fs.snapshot_changes(directory, "s1", "s2")
    ]
    for options in (
        {"from": "s1", "to": "s2"},
        {"from": f"txid:{s1['txid']}", "to": "s2"},
        {"from": "s1", "to": f"view:{held.number}"},
    ):
        rows = read_table(top, "changes", **options)
        assert [
            (
                row["change"].upper().replace(" ", "_"),
                *(row[name] for name in ("path", "other_path", "txid")),
            )
            for row in rows
        ] == wanted
        assert [row["position"] for row in rows] == list(range(len(rows)))
    up_to_now = read_table(top, "changes", *columns, **{"from": "s2"})
    assert [row["path"] for row in up_to_now] == [f"{directory}/new"]
    below = read_table(f"{top}/d", "changes", "change", "path", **{"from": "s1", "to": "s2"})
    assert {(row["change"], row["path"]) for row in below} >= {("deleted", f"{directory}/d/b")}
    for name in ("s1", "s2"):
        fs.delete_snapshot(directory, name)


Offset = dict[str, Any]


def open_stream(url: str, **options: str) -> ChangeStream:
    source = CairnDataSource({"path": url, "table": "changes", **options})
    stream = source.streamReader(source.schema())
    assert isinstance(stream, ChangeStream)
    return stream


def read_batch(stream: ChangeStream, start: Offset, end: Offset) -> list[tuple[str, str]]:
    return [
        (row["change"], row["path"].rpartition("/")[2])
        for partition in stream.partitions(start, end)
        for batch in stream.read(partition)
        for row in batch.to_pylist()
        if row["change"] != "modified"
    ]


def test_a_stream_and_what_it_holds(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    """As Spark drives it: a batch that is run again is the same, and then it is let go."""
    stream = open_stream(f"{url}{directory}")
    first = stream.initialOffset()
    assert stream.latestOffset(first, None) == first
    assert stream.partitions(first, first) == []
    fs.mkdirs(f"{directory}/a")
    assert stream.initialOffset() == first
    lost = stream.latestOffset(first, None)  # which Spark was killed before it wrote down
    fs.mkdirs(f"{directory}/b")
    again = open_stream(f"{url}{directory}")
    second = again.latestOffset(first, None)
    assert first["txid"] < lost["txid"] < second["txid"]
    fs.delete(f"{directory}/a")
    for _ in range(2):
        assert read_batch(again, first, second) == [("created", "a"), ("created", "b")]
        assert held_by(fs, first) == {first["view"], second["view"]}
    third = again.latestOffset(second, None)
    again.commit(second)
    assert held_by(fs, first) == {second["view"], third["view"]}
    assert read_batch(again, second, third) == [("deleted", "a")]
    with pytest.raises(SnapshotException, match=f"after transaction {first['txid']} were let go"):
        again.partitions(first, second)
    for number in held_by(fs, first):
        find_view(fs, number).close()
    with pytest.raises(SnapshotException, match="Begin anew with another checkpoint"):
        again.latestOffset(third, None)


def held_by(fs: cairnfs.FileSystem, offset: Offset) -> set[int]:
    return {view.number for view in list_views(fs) if offset["stream"] in view.label}


def test_where_a_stream_begins(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    top = f"{url}{directory}"
    for name in ("s1", "s2"):
        fs.allow_snapshot(directory)
        fs.create_snapshot(directory, name)
        fs.mkdirs(f"{directory}/after {name}")
    txids = {row["name"]: row["txid"] for row in read_table(top, "snapshots")}
    for start, expected in (
        ("earliest", ["after s1", "after s2"]),
        ("s2", ["after s2"]),
        (f"txid:{txids['s2']}", ["after s2"]),
        ("latest", []),
    ):
        stream = open_stream(top, startingOffset=start)
        first = stream.initialOffset()
        last = stream.latestOffset(first, None)
        assert [path for _, path in read_batch(stream, first, last)] == expected, start
    for name in txids:
        fs.delete_snapshot(directory, name)
    for options, message in (
        ({"startingOffset": "nothing"}, "Cannot find the snapshot of"),
        ({"startingOffset": "txid:1"}, "as it was after transaction 1:"),
        ({"startingOffset": "earliest"}, "no snapshot of"),
        ({"startingOffset": "view:1"}, "a view is closed when its owner is done"),
        ({"holdHours": "soon"}, "holdHours='soon'"),
    ):
        with pytest.raises(HdfsError, match=message):
            open_stream(top, **options).initialOffset()
    source = CairnDataSource({"path": top})
    with pytest.raises(IllegalArgumentException, match="the table inodes is no stream"):
        source.streamReader(source.schema())


def test_what_cannot_be_read(fs: cairnfs.FileSystem, url: str, directory: str) -> None:
    write(fs, f"{directory}/secret/file", 1)
    fs.set_permission(f"{directory}/secret", 0o700)
    top = f"{url}{directory}"

    def refused(error: type[HdfsError], message: str, table: str, **options: str) -> None:
        with pytest.raises(error, match=message):
            read_table(top, table, **options)

    refused(IllegalArgumentException, "no table 'files', but inodes, blocks", "files")
    refused(IllegalArgumentException, "not told since when", "changes")
    refused(IllegalArgumentException, "'soon:1' is no moment", "changes", **{"from": "soon:1"})
    refused(SnapshotException, "Cannot find the snapshot of", "changes", **{"from": "nothing"})
    refused(SnapshotException, "as it was after transaction 1:", "changes", **{"from": "txid:1"})
    refused(FileNotFoundException, "There is no view 1:", "changes", **{"from": "view:1"})
    refused(AccessControlException, f"{directory}/secret", "blocks", user="alice")
    with pytest.raises(FileNotFoundException, match="Directory does not exist: /nothing"):
        read_table(f"{url}/nothing", "replicas")
    view = open_view(fs, directory)
    view.close()
    with pytest.raises(FileNotFoundException, match=f"There is no view {view.number}"):
        find_view(fs, view.number)
