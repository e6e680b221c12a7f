"""`cairn job`: what it prints, and how it fails."""

from __future__ import annotations

import json

import pytest
from tests.jobs.trees import read_tree, write

import cairnfs
from cairnfs.cli.main import main

pytestmark = pytest.mark.java


@pytest.fixture
def data(fs: cairnfs.FileSystem, monkeypatch: pytest.MonkeyPatch) -> cairnfs.FileSystem:
    write(fs, "/data/a", b"1" * 1000)
    write(fs, "/data/b/c", b"2" * 500)
    fs.allow_snapshot("/data")
    fs.create_snapshot("/data", "monday")
    monkeypatch.setenv("CAIRN_FS", fs.url)
    return fs


def run(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What it prints in this process, on the session that is there."""
    assert main(["job", *arguments]) == code
    out, err = capfd.readouterr()
    return err if code else out


@pytest.mark.usefixtures("spark")
def test_jobs_say_what_they_would_do_and_have_done(
    data: cairnfs.FileSystem,
    other: cairnfs.FileSystem,
    backups: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    said = run(capfd, "backup", "/data", "monday", backups, "--dry-run").splitlines()
    assert said[0] == f"Back up everything of /data in snapshot monday to {backups}/monday"
    assert [line.split() for line in said[1:]] == [
        ["ACTION", "KIND", "NUMBER", "BYTES", "SUCH", "AS"],
        ["copy", "file", "2", "1.5", "kB", "a"],
        ["read", "directory", "2", "-", "."],
    ]
    assert run(capfd, "backup", "/data", "monday", backups) == (
        f"Backed /data up as monday in {backups}: 2 files, 1.5 kB\n"
    )
    assert run(capfd, "backup", "/data", "monday", backups) == (
        f"monday in {backups} is complete already: 2 files\n"
    )
    write(data, "/data/b/c", b"3" * 70)
    data.create_snapshot("/data", "tuesday")
    told = json.loads(run(capfd, "backup", "/data", "tuesday", backups, "--json"))
    assert told.pop("seconds") > 0
    assert told == {
        "backup": "tuesday",
        "base": "monday",
        "files": 2,
        "directories": 2,
        "symlinks": 0,
        "bytes": 1070,
        "copied_files": 1,
        "copied_bytes": 70,
        "was_done": False,
    }
    assert run(capfd, "restore", backups, "/again") == (
        "Restored /again from backup tuesday: 2 files, 2 directories, 1.1 kB\n"
    )
    assert read_tree(data, "/again") == read_tree(data, "/data/.snapshot/tuesday")
    told = json.loads(run(capfd, "mirror", "/data", f"{other.url}/copy", "--dry-run", "--json"))
    assert told["title"] == f"Copy /data to {other.url}/copy"
    assert run(capfd, "mirror", "/data", f"{other.url}/copy") == (
        f"Made {other.url}/copy equal to /data: 4 created, 0 deleted, 0 moved, 0 modified;"
        " 2 files and 1.1 kB copied\n"
    )


@pytest.mark.usefixtures("data")
def test_mistakes_are_one_line(backups: str, capfd: pytest.CaptureFixture[str]) -> None:
    """And need no Spark to be told."""
    assert run(capfd, "backup", "/data", "never", backups, code=1) == (
        "cairn: /data has no snapshot 'never'; there are monday\n"
    )
    assert run(capfd, "restore", backups, "/data", code=1) == (
        f"cairn: there is no complete backup in {backups}\n"
    )
    said = run(capfd, "backup", "data", "monday", backups, code=1)
    assert said.startswith("cairn: 'data' is no absolute path")
    said = run(capfd, "backup", "/data", "monday", backups, "--conf", "x", code=1)
    assert said == "cairn: --conf x is not of the form NAME=VALUE\n"
    said = run(capfd, "--fs", "hdfs://127.0.0.1:9", "backup", "/d", "monday", backups, code=1)
    assert said.startswith("cairn: nobody answers at hdfs://127.0.0.1:9")
    assert "goes on where it was" not in said  # nothing had begun
