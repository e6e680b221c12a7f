"""`cairn snapshot`, on a real cluster."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.running import run as run_cairn

from cairnfs.cli.errors import CommandError
from cairnfs.cli.snapshot.schedule import describe, parse_keep
from cairnfs.client.filesystem import FileSystem, connect
from cairnfs.client.records import SnapshotSchedule
from cairnfs.testing.cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("snapshot") / "cluster", datanodes=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def fs(cluster: Cluster) -> Iterator[FileSystem]:
    with connect(cluster.uri) as fs:
        yield fs


@pytest.fixture
def directory(fs: FileSystem, request: pytest.FixtureRequest) -> str:
    """One of the test's own, of which snapshots may be taken."""
    path = f"/{request.node.name}"
    fs.mkdirs(path)
    fs.allow_snapshot(path)
    return path


def run(cluster: Cluster, *arguments: str, code: int = 0, **variables: str) -> str:
    """What `cairn snapshot` prints, on both streams."""
    return run_cairn(cluster, "snapshot", *arguments, code=code, **variables)


def run_json(cluster: Cluster, *arguments: str) -> list[Any]:
    return [json.loads(line) for line in run(cluster, *arguments, "--json").splitlines()]


def test_snapshots_are_allowed_taken_listed_and_deleted(cluster: Cluster, fs: FileSystem) -> None:
    fs.mkdirs("/life")
    said = run(cluster, "create", "/life", "--name", "s1", code=1)
    assert said.startswith("cairn: Directory is not a snapshottable directory: /life")
    assert run(cluster, "allow", "/life") == "Snapshots of /life may be taken\n"
    assert run(cluster, "list", "/life").startswith("/life has no snapshots; ")
    said = run(cluster, "create", "/life", "--name", "s1")
    assert said == "Created snapshot /life/.snapshot/s1\n"
    [by_time] = run_json(cluster, "create", "/life")
    assert re.fullmatch(r"/life/\.snapshot/s\d{8}-\d{6}\.\d{3}", by_time["snapshot"])

    header, first, second = run(cluster, "list", "/life").splitlines()
    assert header.split() == ["NAME", "TAKEN", "PATH"]
    assert first.split()[0] == "s1"
    assert second.split()[-1] == by_time["snapshot"]
    listed = run_json(cluster, "list", "/life")
    assert [each["path"] for each in listed] == ["/life/.snapshot/s1", by_time["snapshot"]]
    [directory] = [each for each in run_json(cluster, "list") if each["directory"] == "/life"]
    assert directory["snapshots"] == 2
    assert re.search(r"^/life +\S+ +2$", run(cluster, "list"), re.MULTILINE)

    said = run(cluster, "rename", "/life", "s1", "s2")
    assert said == "Renamed snapshot s1 of /life to s2\n"
    assert "has snapshot(s)" in run(cluster, "disallow", "/life", code=1)
    name = by_time["snapshot"].rpartition("/")[2]
    said = run(cluster, "delete", "/life", "s2", name)
    assert said == f"Deleted snapshot s2 of /life\nDeleted snapshot {name} of /life\n"
    assert run(cluster, "disallow", "/life") == "No more snapshots of /life may be taken\n"
    assert "/life" not in {each["directory"] for each in run_json(cluster, "list")}


def test_a_diff_is_for_people_and_for_programs(
    cluster: Cluster, fs: FileSystem, directory: str
) -> None:
    fs.mkdirs(f"{directory}/moved")
    fs.mkdirs(f"{directory}/deleted")
    fs.create_snapshot(directory, "s1")
    said = run(cluster, "diff", directory, "s1")
    assert said == f"From snapshot s1 to the present of {directory}: nothing has changed\n"
    fs.mkdirs(f"{directory}/new")
    fs.delete(f"{directory}/deleted")
    fs.rename(f"{directory}/moved", f"{directory}/there")
    fs.create_snapshot(directory, "s2")
    title, *lines = run(cluster, "diff", directory, "s1", "s2").splitlines()
    assert title == f"From snapshot s1 to snapshot s2 of {directory}:"
    assert sorted(lines) == ["+\t./new", "-\t./deleted", "M\t.", "R\t./moved -> ./there"]
    shown = run_json(cluster, "diff", directory, "s1")
    assert {"kind": "R", "path": "moved", "target": "there"} in shown
    assert {"kind": "M", "path": ".", "target": None} in shown
    back = run(cluster, "diff", directory, ".", "s1").splitlines()
    assert back[0] == f"From the present to snapshot s1 of {directory}:"
    assert "-\t./new" in back
    said = run(cluster, "diff", directory, "s1", "gone", code=1)
    assert said == f"cairn: Cannot find the snapshot of directory {directory} with name gone\n"


def test_back_to_a_snapshot_in_place_and_beside(
    cluster: Cluster, fs: FileSystem, directory: str
) -> None:
    fs.mkdirs(f"{directory}/kept")
    fs.create_snapshot(directory, "s1")
    fs.delete(f"{directory}/kept")
    said = run(cluster, "clone", directory, "s1", f"{directory}-clone")
    assert said == f"Cloned snapshot s1 of {directory} to {directory}-clone\n"
    assert fs.exists(f"{directory}-clone/kept")
    fs.rename(f"{directory}-clone/kept", f"{directory}-clone/other")
    said = run(cluster, "diff", f"{directory}-clone", ":origin")
    title = f"From the origin to the present of {directory}-clone:"
    assert said.splitlines() == [title, "M\t.", "R\t./kept -> ./other"]
    said = run(cluster, "rollback", directory, "s1")
    undo = f"Rolled {directory} back to snapshot s1; to undo that: cairn snapshot rollback"
    assert said.startswith(f"{undo} {directory} before-rollback-")
    assert fs.exists(f"{directory}/kept")
    [rolled_back] = run_json(cluster, "rollback", directory, said.split()[-1])
    assert not fs.exists(f"{directory}/kept")
    assert {rolled_back["safety_snapshot"], said.split()[-1], "s1"} == {
        each.status.name for each in fs.list_snapshots(directory)
    }
    said = run(cluster, "rollback", directory, "gone", code=1)
    assert said == (
        f"cairn: Cannot roll {directory} back to snapshot gone: it does not exist; those that do"
        f" are in {directory}/.snapshot\n"
    )
    said = run(cluster, "clone", directory, "s1", f"{directory}-clone", code=1)
    assert f"{directory}-clone already exists" in said


def test_mistakes_are_explained_in_one_line(
    cluster: Cluster, fs: FileSystem, directory: str
) -> None:
    said = run(cluster, "create", directory, "s1", code=1)
    assert "if 's1' is meant to be the snapshot's name: --name s1" in said
    for arguments, words in {
        ("create", "/missing"): "/missing",
        ("create", directory, "--name", "a/b"): "Invalid snapshot name: a/b",
        ("create", directory, "--name", ".snapshot"): ".snapshot",
        ("delete", directory, "gone"): "Cannot delete snapshot gone from path",
        ("rename", directory, "gone", "new"): "The snapshot gone does not exist",
        ("list", "/missing"): "/missing",
        ("list", "/"): "/",
        ("create", directory, "--name", os.fsdecode(b"\xff")): r"'\udcff': it is not UTF-8",
        ("create", os.fsdecode(b"/\xff")): r"'/\udcff': it is not UTF-8",
    }.items():
        said = run(cluster, *arguments, code=1)
        assert said.startswith("cairn: ")
        assert said.count("\n") == 1
        assert words in said
    said = run(cluster, "allow", directory, code=1, HADOOP_USER_NAME="ada")
    assert said.startswith("cairn: Access denied for user ada. Superuser privilege is required")
    said = run(cluster, "create", directory, code=1, HADOOP_USER_NAME="ada")
    assert "Permission denied. user=ada is not the owner" in said
    said = run(cluster, "list", code=0, HADOOP_USER_NAME="ada")
    assert said.startswith("No directory of ada may have snapshots")
    assert "ACTION" in run(cluster, code=2)
    assert fs.list_snapshots(directory) == []
    nobody = run(cluster, "list", "--fs", "hdfs://127.0.0.1:1", code=1)
    assert "nobody answers at hdfs://127.0.0.1:1, which --fs names" in nobody


def test_how_many_are_kept_is_read() -> None:
    assert parse_keep("24h7d4w") == {"hourly": 24, "daily": 7, "weekly": 4}
    assert parse_keep("12m1y") == {"monthly": 12, "yearly": 1}
    for wrong in (None, "", "7", "d7", "7x", "7d 4w", "7d7d", "0h0d", "-1d", "7d4"):
        with pytest.raises(CommandError, match="keep"):
            parse_keep(wrong)
    assert describe(SnapshotSchedule("/d", **parse_keep("24h7d"))) == "24 hourly, 7 daily"


def test_space_is_shown_for_people_and_programs(
    cluster: Cluster, fs: FileSystem, directory: str
) -> None:
    assert run(cluster, "space", directory) == f"{directory} has no snapshots\n"
    with fs.create(f"{directory}/file", replication=1) as file:
        file.write(b"x" * 5000)
    fs.create_snapshot(directory, "s1")
    fs.delete(f"{directory}/file")
    fs.create_snapshot(directory, "s2")
    cluster.wait_until(
        lambda: fs.snapshot_space(directory, "s1")[0].exclusive_bytes > 0,
        "what was deleted counts as held by the snapshot",
    )
    header, *lines = run(cluster, "space", directory).splitlines()
    assert header.split("  ")[0] == "NAME"
    assert [line.split() for line in lines] == [
        ["s1", "5.0", "kB", "5.0", "kB"],
        ["s2", "0", "B", "0", "B"],
    ]
    assert run_json(cluster, "space", directory, "s1") == [
        {"name": "s1", "referenced_bytes": 5000, "exclusive_bytes": 5000}
    ]
    assert "no snapshot gone" in run(cluster, "space", directory, "gone", code=1)


def test_schedules_are_set_previewed_listed_and_removed(
    cluster: Cluster, fs: FileSystem, directory: str
) -> None:
    for name in ("auto-1", "auto-2", "mine"):
        fs.create_snapshot(directory, name)
    previewed = run(cluster, "schedule", "set", directory, "--keep", "1d", "--dry-run")
    assert previewed.splitlines() == [
        "keep    auto-2",
        "delete  auto-1",
        "1 kept, 1 deleted; nothing is done yet",
    ]
    assert run(cluster, "schedule", "list") == "There are no schedules\n"
    said = run(cluster, "schedule", "set", directory, "--keep", "24h7d", "--prefix", "kept")
    assert said == f"Of {directory}, 24 hourly, 7 daily snapshots are kept\n"
    [listed] = run_json(cluster, "schedule", "list")
    assert (listed["directory"], listed["hourly"], listed["prefix"]) == (directory, 24, "kept")
    assert "24 hourly, 7 daily  kept" in run(cluster, "schedule", "list")
    said = run(cluster, "schedule", "remove", directory)
    assert said == f"No more snapshots of {directory} are taken; those that there are stay\n"
    assert f"no schedule for {directory}" in run(cluster, "schedule", "remove", directory, code=1)
    said = run(cluster, "schedule", "remove", code=1)
    assert said == "cairn: say of which directory: cairn snapshot schedule remove DIRECTORY\n"
    assert {"auto-1", "auto-2", "mine"} <= {
        each.status.name for each in fs.list_snapshots(directory)
    }


def test_changes(cluster: Cluster, fs: FileSystem, directory: str) -> None:
    fs.mkdirs(f"{directory}/old")
    fs.create_snapshot(directory, "s1")
    same = run(cluster, "diff", directory, "s1", "--changes")
    assert same == f"From snapshot s1 to the present of {directory}: nothing has changed\n"
    fs.rename(f"{directory}/old", f"{directory}/new")
    fs.mkdirs(f"{directory}/made")
    lines = run(cluster, "diff", directory, "s1", "--changes").splitlines()
    assert lines[0] == f"From snapshot s1 to the present of {directory}:"
    assert [line.split("\t")[1:] for line in lines[1:]] == [
        ["MOVED_OUT", "./old -> ./new"],
        ["CREATED  ", "./made"],
        ["MOVED_IN ", "./new <- ./old"],
    ]
    out, made, come = run_json(cluster, "diff", directory, "s1", ".", "--changes", "--json")
    assert (out["kind"], out["path"], out["other"]) == ("MOVED_OUT", "old", "new")
    assert (made["type"], made["content"]) == ("DIRECTORY", False)
    assert out["txid"] == come["txid"] < made["txid"]
    wrong = run(cluster, "diff", directory, "nothing", "--changes", code=1)
    assert "with name nothing" in wrong
    fs.delete_snapshot(directory, "s1")


def test_the_root_snapshot(cluster: Cluster, fs: FileSystem, directory: str) -> None:
    assert "no root snapshot; `cairn snapshot root create`" in run(cluster, "root", "status")
    fs.disallow_snapshot(directory)
    fs.mkdirs(f"{directory}/kept")
    said = run(cluster, "root", "create", "--name", "upgrade")
    assert re.fullmatch(r"Created root snapshot /\.snapshot/upgrade of transaction \d+\n", said), (
        said
    )
    fs.delete(f"{directory}/kept")
    fs.mkdirs(f"{directory}/a/b")
    said = run(cluster, "root", "status")
    assert "Root snapshot: /.snapshot/upgrade\nTaken: " in said
    assert re.search(r"Since then: [1-9]\d* transactions\n +THEN +NOW\n", said)

    fs.allow_snapshot(f"{directory}/a/b")
    fs.create_snapshot(f"{directory}/a/b", "own")
    hindrance = f"would remove {directory}/a/b, which has snapshots of its own"
    assert hindrance in run(cluster, "root", "status")
    assert hindrance in run(cluster, "root", "rollback", code=1)
    fs.delete_snapshot(f"{directory}/a/b", "own")

    said = run(cluster, "root", "rollback")
    undo = "Rolled / back to the root snapshot; to undo that: cairn snapshot rollback / "
    assert said.startswith(undo + "before-rollback-")
    safety = said.split()[-1]
    assert [each.name for each in fs.list_status(directory)] == ["kept"]
    [told] = run_json(cluster, "root", "status")
    assert told["root_snapshot"]["snapshot"]["safety_snapshots"] == [safety]
    assert told["root_snapshot"]["hindrances"] == []
    assert f"Given up by a roll-back: /.snapshot/{safety}" in run(cluster, "root", "status")

    said = run(cluster, "root", "finalize", "--wait")
    assert said == f"Finalized the root snapshot; deleted of /: {safety}, upgrade\n"
    assert fs.snapshot_work().is_done
    assert run(cluster, "root", "status").startswith("There is no root snapshot")


def test_mistakes_with_the_root_snapshot(cluster: Cluster) -> None:
    for action in ("rollback", "finalize"):
        assert "There is no root snapshot of /" in run(cluster, "root", action, code=1)
    assert "takes no --name" in run(cluster, "root", "status", "--name", "x", code=1)
    assert "nothing to --wait for" in run(cluster, "root", "create", "--wait", code=1)
    said = run(cluster, "root", "create", code=1, HADOOP_USER_NAME="stranger")
    assert "Access denied for user stranger" in said
    run(cluster, "root", "create", "--name", "one")
    said = run(cluster, "root", "create", code=1)
    assert "There is a root snapshot, one of transaction" in said
    said = run(cluster, "delete", "/", "one", code=1)
    assert "The snapshot one of / cannot be deleted: it is the root snapshot" in said
    run(cluster, "root", "finalize")
