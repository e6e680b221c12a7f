"""`usage` beside a walk over the same tree."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from tests.jobs.trees import write

import cairnfs
from cairnfs.cli.main import main
from cairnfs.client.records import FileStatus
from cairnfs.errors import (
    FileAlreadyExistsException,
    FileNotFoundException,
    IllegalArgumentException,
    SnapshotException,
)
from cairnfs.jobs import usage
from cairnfs.jobs.usage_tables import (
    AGE,
    DIRECTORY,
    GROWTH,
    OWNER,
    POLICY,
    SIZE,
    SMALL,
    TEMPERATURE,
)
from cairnfs.spark.views import list_views

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("spark")]

DAY_MS = 86_400_000
_META = '<meta charset="utf-8">'
_SVG = 'xmlns="http://www.w3.org/2000/svg"'
SMALL_BYTES = 1000


@pytest.fixture
def sales(fs: cairnfs.FileSystem) -> str:
    """Of several owners, ages and policies; one snapshot, s1, since which it has changed."""
    now_ms = time.time_ns() // 1_000_000
    for year in (2024, 2025):
        for month in ("jan", "feb"):
            for n in range(3):
                path = f"/data/sales/{year}/{month}/{n}"
                write(fs, path, b"x" * (400 * (n + 1)), replication=n + 1)
    write(fs, "/data/sales/large", b"y" * 100_000)
    write(fs, "/data/sales/empty", b"")
    fs.create_symlink("/nowhere", "/data/sales/2024/link")
    fs.mkdirs("/data/sales/ünïcode/none")
    fs.set_owner("/data/sales/2025/jan/0", "ada", "staff")
    fs.set_storage_policy("/data/sales/2024", "COLD")
    fs.set_storage_policy("/data/sales/2024/jan/1", "WARM")
    fs.set_times("/data/sales/2024/jan/0", now_ms - 400 * DAY_MS, now_ms - 400 * DAY_MS)
    fs.set_times("/data/sales/2024/jan/1", now_ms - 400 * DAY_MS, now_ms - 20 * DAY_MS)
    fs.set_times("/data/sales/2024/jan/2", now_ms - 3 * DAY_MS, now_ms - 3 * DAY_MS)
    fs.allow_snapshot("/data")
    fs.create_snapshot("/data", "s1")
    fs.delete("/data/sales/2024/feb", recursive=True)
    write(fs, "/data/sales/2025/feb/more", b"z" * 5000)
    fs.rename("/data/sales/large", "/data/sales/ünïcode/large")
    return f"{fs.url}/data/sales"


def walk(fs: cairnfs.FileSystem, top: str) -> list[FileStatus]:
    found, waiting = [], [fs.get_file_status(top)]
    while waiting:
        found.append(waiting.pop())
        if found[-1].is_directory:
            waiting += fs.list_status(found[-1].path)
    return found


def count_by_directory(found: list[FileStatus], top: str, depth: int) -> Counter[tuple[str, str]]:
    """Files, directories, bytes and space of directories, as a walk adds them up."""
    sums: Counter[tuple[str, str]] = Counter()
    for status in found:
        names = status.path[len(top) :].strip("/").split("/")
        if not status.is_directory:
            names.pop()
        for n in range(1, min(depth, len(names)) + 1):
            key = "/".join(names[:n])
            if key:
                sums[key, "files"] += status.is_file
                sums[key, "directories"] += status.is_directory
                sums[key, "bytes"] += status.length_bytes
                sums[key, "space"] += status.length_bytes * status.replication
    return sums


def test_it_is_what_a_walk_adds_up(fs: cairnfs.FileSystem, sales: str) -> None:
    found = walk(fs, "/data/sales")
    files = [status for status in found if status.is_file]
    report = usage(sales, small_bytes=SMALL_BYTES)
    total = report.total
    assert (total.files, total.directories, total.symlinks) == (12, len(found) - 13, 1)
    assert total.bytes == sum(status.length_bytes for status in files)
    assert total.space == sum(status.length_bytes * status.replication for status in files)
    assert total.blocks == 11
    assert total.space_before is None

    sums = count_by_directory(found, "/data/sales", depth=2)
    told = report.tables[DIRECTORY]
    assert {row.key for row in told} == {key for key, _ in sums}
    for row in told:
        for name in ("files", "directories", "bytes", "space"):
            assert getattr(row, name) == sums[row.key, name], (row, name)
    assert [row.space for row in told] == sorted((row.space for row in told), reverse=True)

    owners = {row.key: row for row in report.tables[OWNER]}
    assert owners["ada"].bytes == 400
    assert owners["ada"].files == 1
    assert sum(row.bytes for row in owners.values()) == total.bytes
    small = {row.key: (row.small_files, row.small_bytes) for row in report.tables[SMALL]}
    assert small == {
        "": (1, 0),
        "2024/jan": (2, 1200),
        "2025/jan": (2, 1200),
        "2025/feb": (2, 1200),
    }

    def files_by(name: str) -> dict[str, int]:
        return {row.key: row.files for row in report.tables[name]}

    assert files_by(SIZE) == {"empty": 1, "up to 64 KiB": 10, "up to 1 MiB": 1}
    assert files_by(AGE) == {"a day": 9, "a week": 1, "longer ago": 2}
    assert files_by(TEMPERATURE) == {"hot": 10, "warm": 1, "cold": 1}
    assert files_by(POLICY) == {"HOT": 9, "COLD": 2, "WARM": 1}


def test_growth_is_beside_what_there_is(fs: cairnfs.FileSystem, sales: str, tmp_path: Path) -> None:
    """Also of what is gone, and by a snapshot of a directory above."""
    output = f"file://{tmp_path}/usage"
    then, now = walk(fs, "/data/.snapshot/s1/sales"), walk(fs, "/data/sales")
    views = {view.number for view in list_views(fs)}  # of others
    report = usage(sales, since="s1", output=output, top=3)
    before = count_by_directory(then, "/data/.snapshot/s1/sales", depth=2)
    after = count_by_directory(now, "/data/sales", depth=2)
    assert report.total.files_before == sum(status.is_file for status in then)
    grown = {row.key: row.growth for row in report.tables[GROWTH]}
    expected = {key: after[key, "space"] - before[key, "space"] for key, _ in before | after}
    largest = sorted(expected.items(), key=lambda each: (-abs(each[1]), each[0]))[:3]
    assert grown == dict(largest)

    rows = pq.read_table(f"{tmp_path}/usage").to_pylist()
    kept = {
        row["key"]: row["space"] - row["space_before"] for row in rows if row["report"] == DIRECTORY
    }
    assert kept == expected, "the files have what was not told, too"
    (feb,) = [row for row in rows if (row["report"], row["key"]) == (DIRECTORY, "2024/feb")]
    assert (feb["files"], feb["files_before"]) == (0, 3)

    # Those of others may have run out meanwhile.
    assert {view.number for view in list_views(fs)} <= views, "the moments are let go"
    with pytest.raises(FileAlreadyExistsException, match="not empty"):
        usage(sales, output=output)


def test_what_there_was_and_what_snapshots_hold(fs: cairnfs.FileSystem, sales: str) -> None:
    fs.create_snapshot("/data", "s2")
    report = usage(f"{fs.url}/data", until="s1")
    then = fs.get_content_summary("/data/.snapshot/s1")
    assert report.total.files == then.files == 14
    assert report.total.directories == then.directories
    assert report.total.space == then.space_bytes
    assert report.total.bytes == then.length_bytes
    held = {(each.path, each.name): each for each in report.snapshots}
    space = {each.name: each for each in fs.snapshot_space("/data")}
    assert list(held) == [("/data", "s1"), ("/data", "s2")]
    for (_, name), each in held.items():
        assert each.exclusive == space[name].exclusive_bytes
        assert each.referenced == space[name].referenced_bytes
    assert held["/data", "s1"].exclusive == 400 * 1 + 800 * 2 + 1200 * 3
    assert held["/data", "s1"].files == 14


def run(capfd: pytest.CaptureFixture[str], fs: cairnfs.FileSystem, *arguments: str) -> str:
    """What the command prints."""
    assert main(["job", "--fs", fs.url, *arguments]) == 0
    return capfd.readouterr().out


def test_usage_is_tables_and_a_page(
    fs: cairnfs.FileSystem, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(fs, "/data/a", b"1" * 1000)
    write(fs, "/data/b/c", b"2" * 500)
    fs.allow_snapshot("/data")
    fs.create_snapshot("/data", "monday")
    write(fs, "/data/<b>/more", b"3" * 3000)
    page = tmp_path / "usage.html"
    said = run(capfd, fs, "usage", "/data", "--since", "monday", "--html", str(page)).splitlines()
    assert said[:2] == [
        "/data: 3 files and 3 directories, 4.5 kB, with all replicas 13.5 kB;"
        " 3 files are shorter than 1.0 MB",
        "since monday: +1 files, +9.0 kB",
    ]
    tables = [line.split() for line in said]
    assert ["DIRECTORY", "FILES", "SMALL", "SIZE", "WITH", "REPLICAS", "CHANGE"] in tables
    assert ["<b>", "1", "1", "3.0", "kB", "9.0", "kB", "+9.0", "kB"] in tables
    assert ["/data", "monday", "2", "1.5", "kB", "4.5", "kB", "0", "B"] in tables

    html = page.read_text()
    document = ElementTree.fromstring(html.removeprefix("<!DOCTYPE html>").replace(_META, ""))
    assert len(list(document.iter("{http://www.w3.org/2000/svg}svg"))) == 9
    assert {"http:", "https:"} & set(html.replace(_SVG, "").split("//")) == set(), "all is in it"
    assert "<b>" not in html
    told = json.loads(run(capfd, fs, "usage", "/data", "--json", "--top", "1"))
    assert told["total"]["space"] == 13_500
    assert [row["key"] for row in told["tables"]["directory"]] == ["<b>"]


def test_refusals(fs: cairnfs.FileSystem, sales: str) -> None:
    with pytest.raises(FileNotFoundException, match="Directory does not exist: /nothing"):
        usage(f"{fs.url}/nothing")
    with pytest.raises(SnapshotException, match="has a snapshot 'never'"):
        usage(sales, since="never")
    with pytest.raises(IllegalArgumentException, match="depth"):
        usage(sales, depth=0)
